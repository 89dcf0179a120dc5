"""The card of a supervisor's decision, driven by keys (SPEC DEC-17, SDK-09)."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from engine.machine.effects import Strategy
from engine.machine.messages import Usage
from engine.machine.states import AwaitingLlm, Routing
from engine.records import RunPriority
from engine.records.runs import CallPurpose, CallSum, ModelUsage, RunAgents, RunRecord, Totals
from engine.updates import AnswerAlone, Route, RouteAgent, RouteCard, StartAgents
from phoenix_tui.modals.text_sheet import EditSheet
from phoenix_tui.widgets.route_panel import RoutePanel, as_text, from_text
from phoenix_tui.widgets.status_line import StatusLine
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import RUN, FakeConversation
from tests.support.shell import Shell

EXPLORE = RouteAgent("explore", "find where requests are retried", RunPriority.HIGH)
REVIEW = RouteAgent("review", "review the diff against main")
ROUTE = Route(Strategy.PARALLEL, (EXPLORE, REVIEW), "two parts that need nothing of each other", 0.87)
MORE = "abcdefghij"
HELD = RouteCard("card-1", ROUTE, starts_at=0.0)


async def routed(shell: Shell, card: RouteCard = HELD) -> FakeConversation:
    """A conversation whose supervisor has decided; the card takes letters at once."""
    conversation = await shell.say("retry and review")
    conversation.become(AwaitingLlm(1, RUN, Routing()))
    conversation.routing.offer(card)
    await shell.until(lambda: shell.dock.route)
    panel(shell).clock = SteppedClock(card.starts_at - 2.5 if card.starts_at else 0.0)
    panel(shell).gate.since = -100.0
    shell.answering.since = -100.0
    shell.answering.typed_at = -100.0
    await shell.until(lambda: "87% sure" in shell.text)
    return conversation


def panel(shell: Shell) -> RoutePanel:
    found = shell.dock.route
    assert found is not None
    return found


@pytest.mark.parametrize("size", [(60, 20), (120, 40)])
async def test_the_card_says_who_would_do_what_and_why(open_shell: OpenShell, size: tuple[int, int]) -> None:
    async with open_shell(size) as shell:
        await routed(shell)
        assert "2 agents in parallel · 87% sure" in shell.text
        assert "needs your decision" in shell.text
        assert "1 explore (high)  find where requests are retried" in shell.text
        assert "2 review  review the diff against main" in shell.text
        assert "why: two parts that need nothing of each other" in shell.text
        assert "y starts now   n main model alone   e edits" in shell.text
        assert "y starts · Esc stops" in shell.status
        assert "routing: 2 agents, waits for you" in shell.status


@pytest.mark.parametrize(
    ("key", "verdict"),
    [("y", StartAgents()), ("enter", StartAgents()), ("n", AnswerAlone())],
)
async def test_a_key_on_an_empty_line_decides(shell: Shell, key: str, verdict: StartAgents | AnswerAlone) -> None:
    conversation = await routed(shell)
    await shell.press(key, until=lambda: conversation.routing.answers)
    assert conversation.routing.answers == [verdict]
    assert conversation.cancelled == 0
    await shell.until(lambda: "87% sure" not in shell.text)


async def test_what_is_being_written_answers_nothing(shell: Shell) -> None:
    conversation = await routed(shell)
    await shell.type("a", until=lambda: shell.composer.text == "a")
    await shell.type("yne", until=lambda: shell.composer.text == "ayne")
    assert conversation.routing.answers == []


@pytest.mark.parametrize("focus", [False, True])
async def test_esc_stops_the_run_and_no_model_is_asked(shell: Shell, focus: bool) -> None:
    conversation = await routed(shell)
    if focus:
        await shell.press("up", until=lambda: panel(shell).has_focus)
    await shell.press("escape", until=lambda: conversation.cancelled == 1)
    assert conversation.routing.answers == []


async def test_an_agent_is_dropped_and_the_rest_start(shell: Shell) -> None:
    conversation = await routed(shell)
    await shell.press("up", until=lambda: panel(shell).has_focus)
    await shell.press("x", shows="one agent · 87% sure")
    await shell.until(lambda: "routing: 1 agent, waits for you" in shell.status)
    assert "find where requests" not in shell.text
    await shell.press("y", until=lambda: conversation.routing.answers)
    assert conversation.routing.answers == [StartAgents((REVIEW,))]
    await shell.until(lambda: shell.composer.has_focus)


async def test_without_any_agent_the_main_model_answers(shell: Shell) -> None:
    conversation = await routed(shell)
    await shell.press("up", until=lambda: panel(shell).has_focus)
    await shell.press("x", "x", until=lambda: conversation.routing.answers)
    assert conversation.routing.answers == [AnswerAlone()]


async def test_tasks_are_edited_as_text(shell: Shell) -> None:
    conversation = await routed(shell)
    await shell.press("e", shows="`## PROFILE` starts an agent")
    await shell.type(" and tests", "ctrl+s", until=lambda: conversation.routing.answers)
    changed = replace(REVIEW, task="review the diff against main and tests")
    assert conversation.routing.answers == [StartAgents((EXPLORE, changed))]


async def test_what_cannot_be_started_stands_there_again_as_it_was_written(shell: Shell) -> None:
    conversation = await routed(shell)
    conversation.routing.refusal = "There is no profile 'nosuch'."
    await shell.press("e", until=lambda: isinstance(shell.top, EditSheet))
    await shell.type(MORE, "ctrl+s", until=lambda: conversation.routing.refusal in shell.toasts)
    await shell.until(lambda: f" main{MORE}" in shell.text)
    conversation.routing.refusal = ""
    await shell.press("ctrl+s", until=lambda: conversation.routing.answers)
    changed = replace(REVIEW, task="review the diff against main" + MORE)
    assert conversation.routing.answers == [StartAgents((EXPLORE, changed))]


async def test_a_late_answer_is_refused_in_words(shell: Shell) -> None:
    conversation = await routed(shell)
    conversation.routing.refusal = "This decision is no longer open."
    await shell.press("y", until=lambda: "This decision is no longer open." in shell.toasts)


async def test_the_countdown_runs_on_card_and_status_line(shell: Shell) -> None:
    await routed(shell, replace(HELD, starts_at=1e9))
    await shell.until(lambda: "starts in 3 s" in shell.text)
    status: StatusLine = shell.parts.status
    status.clock = SteppedClock(1e9 - 2.5)
    await shell.until(lambda: "routing: 2 agents, starts in 3 s" in shell.status)


async def test_many_agents_with_long_tasks_leave_the_conversation_its_rows(open_shell: OpenShell) -> None:
    agents = tuple(RouteAgent("code", f"task {n} " + "宽 wide words " * 60) for n in range(10))
    async with open_shell((60, 20)) as shell:
        await routed(shell, replace(HELD, route=replace(ROUTE, agents=agents, reasoning="why " * 200)))
        assert panel(shell).size.height <= 8
        assert "+7 more" in shell.text
        await shell.press("up", until=lambda: panel(shell).has_focus)
        await shell.press(*["down"] * 9, shows="10 code  task 9")


async def test_a_conversation_that_comes_back_into_view_shows_its_card(shell: Shell) -> None:
    conversation = await routed(shell)
    other = shell.engine.seed("another", messages=2)
    await shell.open(other)
    await shell.until(lambda: "87% sure" not in shell.text)
    await shell.open(conversation)
    await shell.until(lambda: "87% sure" in shell.text)


async def test_a_new_conversation_has_no_card_of_another(shell: Shell) -> None:
    conversation = await routed(shell)
    await shell.press("ctrl+n", until=lambda: "87% sure" not in shell.text)
    await shell.type("yes", until=lambda: shell.composer.text == "yes")
    assert conversation.routing.answers == []


async def test_route_is_turned_on_and_off_and_shown_while_on(open_shell: OpenShell) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.command("/route on")
        await shell.until(lambda: shell.conversation.record.supervisor)
        await shell.until(lambda: " · route · " in shell.status)
        await shell.until(lambda: any("A supervisor now chooses who answers" in toast for toast in shell.toasts))
        await shell.command("/route")
        await shell.until(lambda: not shell.conversation.record.supervisor)
        await shell.until(lambda: "route" not in shell.status)
        await shell.command("/route start")
        await shell.until(lambda: "No supervisor's decision is open." in shell.toasts)
        await shell.command("/route sideways")
        await shell.until(lambda: any("Give on or off" in toast for toast in shell.toasts))


async def test_turned_on_it_says_why_nothing_is_routed_yet(shell: Shell) -> None:
    await shell.active.current()
    shell.conversation.routing.why_alone = "demo/guide runs on this machine"
    await shell.command("/route on")
    await shell.until(lambda: any("answers alone, because demo/guide runs" in toast for toast in shell.toasts))


def a_run(**changes: object) -> RunRecord:
    decision = {
        "strategy": "parallel",
        "agents": [{"agentName": "explore", "taskDescription": "look around", "priority": "normal"}],
        "reasoning": "two parts",
        "confidence": 0.87,
        "outcome": "changed",
    }
    made = RunRecord(
        id="run-1",
        type="general",
        prompt="retry and review",
        strategy=Strategy.PARALLEL,
        decision_json=json.dumps(decision),
        status="success",
        error="",
        artifacts=("retry.py",),
        usage=Usage(1_200, 300),
        by_model=(ModelUsage("big", Usage(1_000, 200), 0.05, 2), ModelUsage("small", Usage(200, 100), 0.01, 1)),
        cost_usd=0.06,
        iterations=2,
        started_at=0.0,
        seconds=72.0,
        agents=RunAgents(2, 1, 4_000, 0.2, ("retry.py", "notes.md")),
    )
    return replace(made, **changes)


async def test_cost_tells_of_the_last_run_and_of_any_other(open_shell: OpenShell) -> None:
    async with open_shell((120, 40)) as shell:
        await shell.say("retry and review")
        shell.engine.past_runs = [a_run(), a_run(id="run-0", prompt="before", status="cancelled", agents=None)]
        shell.engine.call_sums = [
            CallSum(CallPurpose.REPLY, Totals(900, 80, cost_usd=0.01), 3, cancelled=1),
            CallSum(CallPurpose.ROUTING, Totals(200, 10, cost_usd=0.0), 1),
        ]
        shell.screen.action_command("cost")
        await shell.until(lambda: "Last run" in shell.text)
        assert "replies: 3 calls (1 stopped), 900 in, 80 out, $0.01" in shell.text
        assert "routing: 1 call, 200 in, 10 out, $0.00" in shell.text
        assert "answered by: 2 agents in parallel" in shell.text
        assert "the supervisor: agents in parallel, 87% sure; you changed it" in shell.text
        assert "small: 1 call, 200 in, 100 out, $0.01" in shell.text
        assert "its 2 sub-agents, in addition: 1 succeeded, 4.0k tokens, $0.20" in shell.text
        assert "files written: 2 files" in shell.text
        await shell.press("escape")
        shell.screen.action_command("cost runs")
        await shell.until(lambda: "Runs of this conversation" in shell.text)
        await shell.press("down", "enter", shows="Run details")
        assert "cancelled · before" in shell.text


def test_edited_text_reads_back_and_keeps_what_stands_between() -> None:
    first = RouteAgent("explore", "first\n\n- a list\n# a heading", RunPriority.CRITICAL)
    agents = (first, RouteAgent("project/own", "second"))
    assert from_text(as_text(agents)) == agents
    assert from_text("words without an agent") == ()
    assert from_text("## code\n\n## review\nlook") == (RouteAgent("review", "look"),)
