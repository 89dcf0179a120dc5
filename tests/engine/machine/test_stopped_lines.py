"""A stopped line of the user keeps its output; the model reads of its own stopped call what it always did."""

from __future__ import annotations

import pytest

from engine.machine.effects import FinishRun, RunStatus, SaveMessage, SaveNotice, SaveToolResult
from engine.machine.events import CancelDeadlinePassed, StoppedOutput, ToolAborted, UserCancelled, UserShell
from engine.machine.messages import LastMessage, StopReason, TextBlock, ToolCall, ToolResult, ToolStatus
from engine.machine.states import Idle
from tests.support.moves import Driver, calls, reply, user

OUTPUT = StoppedOutput("half\n[stopped by the user after 3 s]", '{"shown": 1}', truncated=True, note="a note")
KEPT = ToolResult("t1", OUTPUT.text, ToolStatus.CANCELLED, (), OUTPUT.display_json, truncated=True)


def stopped_line(send: bool) -> Driver:
    shell = UserShell("m-sh", ToolCall("t1", "bash", "{}"), "run-1", send, LastMessage.ANSWER, "make")
    return Driver().on(shell).on(UserCancelled("m-c", elapsed=3))


@pytest.mark.parametrize("send", [True, False])
@pytest.mark.parametrize("late", [True, False], ids=["at the deadline", "once it is dead"])
def test_a_stopped_line_keeps_its_output_also_for_the_model_that_was_to_read_it(send: bool, late: bool) -> None:
    driver = stopped_line(send)
    gen = driver.gen
    driver.on(CancelDeadlinePassed(gen, "m-r", OUTPUT) if late else ToolAborted(gen, "t1", "m-r", output=OUTPUT))
    assert isinstance(driver.state, Idle)
    assert driver.effect(SaveToolResult).result == KEPT
    assert driver.effect(SaveNotice).text == "a note", "no second row says that it was stopped"
    assert driver.effect(FinishRun).status is RunStatus.CANCELLED
    if send:
        saved = driver.effect(SaveMessage)
        assert (saved.message.blocks, saved.new_turn) == ((TextBlock(f"$ make\n{OUTPUT.text}"),), True)
    assert driver.has(SaveMessage) is send


@pytest.mark.parametrize("job", ["", "job-1"])
def test_a_line_without_output_and_one_that_runs_on_are_not_told_to_the_model(job: str) -> None:
    driver = stopped_line(True)
    driver.on(ToolAborted(driver.gen, "t1", "m-r", job=job, output=OUTPUT if job else None))
    assert driver.effect(SaveToolResult).result.text.startswith("Cancelled by user")
    assert not driver.has(SaveMessage)
    assert driver.effect(SaveNotice).text == "Stopped by you after 3 s"


def test_the_model_reads_nothing_of_its_own_stopped_call_and_the_screen_shows_its_output() -> None:
    driver = Driver().on(user()).on(reply(1, *calls("t1"), stop=StopReason.TOOL_USE)).on(UserCancelled("m-c"))
    driver.on(ToolAborted(driver.gen, "t1", "m-r", output=OUTPUT))
    assert driver.results() == [("t1", "Cancelled by user", True)]
    assert driver.effect(SaveToolResult).result.display_json == OUTPUT.display_json
