"""A supervisor's decision in the machine (SPEC STM-02)."""

from __future__ import annotations

from engine.machine.effects import (
    AbortLlm,
    Compact,
    ExecTool,
    RequestLlm,
    SaveMessage,
    SaveNotice,
    SaveRoute,
    Strategy,
)
from engine.machine.events import RouteDecided, UserCancelled, UserMessage
from engine.machine.messages import LastMessage, NewMessage, Origin, Role, TextBlock, ToolCall, ToolUseBlock
from engine.machine.states import AwaitingLlm, CompactingContext, ToolExecuting
from tests.support.moves import Driver


def routing(*, compact_due: bool = False) -> Driver:
    """A conversation whose supervisor decides."""
    message = NewMessage("m", Role.USER, Origin.HUMAN, (TextBlock("hi"),))
    sent = UserMessage(message, LastMessage.NONE, "run", 250, supervisor=True, compact_due=compact_due)
    return Driver().on(sent)


def test_a_decision_is_recorded_and_told_of_before_the_main_model_is_asked() -> None:
    driver = routing()
    driver.on(RouteDecided(driver.gen, "m2", decision_json='{"confidence": 0.2}', note="Routing: alone"))
    assert driver.effect(SaveRoute) == SaveRoute("run", Strategy.SINGLE, '{"confidence": 0.2}')
    assert driver.effect(SaveNotice).text == "Routing: alone"
    assert driver.has(RequestLlm)


def test_a_decision_for_agents_becomes_a_call_of_the_supervisor_that_runs_unasked() -> None:
    driver = routing()
    call = ToolCall("route_1", "spawn_agents", "{}")
    driver.on(RouteDecided(driver.gen, "m2", call, Strategy.PARALLEL, "{}", "Routing: 2 agents"))
    saved = driver.effect(SaveMessage).message
    assert (saved.id, saved.role, saved.origin) == ("m2", Role.ASSISTANT, Origin.SUBAGENT)
    assert saved.blocks == (ToolUseBlock("route_1", "spawn_agents", "{}"),)
    assert driver.effect(SaveRoute).strategy is Strategy.PARALLEL
    assert driver.effect(ExecTool).approved
    assert isinstance(driver.state, ToolExecuting)
    assert driver.state.run.iteration == 1


def test_a_full_window_is_summarized_after_the_decision() -> None:
    driver = routing(compact_due=True)
    driver.on(RouteDecided(driver.gen, "m2"))
    assert driver.has(Compact)
    assert isinstance(driver.state, AwaitingLlm)
    assert driver.state.phase == CompactingContext()


def test_a_late_decision_changes_nothing() -> None:
    driver = routing()
    gen = driver.gen
    driver.on(UserCancelled("m3"))
    assert driver.has(AbortLlm)
    idle = driver.state
    driver.on(RouteDecided(gen, "m2", ToolCall("route_1", "spawn_agents", "{}")))
    assert driver.state == idle
