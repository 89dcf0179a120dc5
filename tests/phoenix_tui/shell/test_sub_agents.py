"""Sub-agents on the screen: rows while they work, what Esc stops, the way into one and back, questions, hints."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine import agent_texts
from engine.machine.messages import ToolCall
from engine.machine.states import AgentOutcome, AgentStatus, AgentTask, AwaitingLlm, Idle, Requesting
from engine.updates import AgentView
from phoenix_tui.modals.agents_sheet import AgentsSheet, ApprovalsSheet
from phoenix_tui.widgets.answer_gate import GRACE
from phoenix_tui.widgets.question_panel import QuestionPanel
from phoenix_tui.widgets.status_line import Heading
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.snapshots.told import Teller, call
from tests.support.clocks import SteppedClock
from tests.support.fake_agents import RUNS, agent, waits_for
from tests.support.fake_engine import RUN, FakeConversation, FakeEngine, question
from tests.support.shell import Shell
from tools.contract import AgentsDisplay


def rows(background: bool = False) -> tuple[AgentView, ...]:
    began = time.time() - 41
    return (
        agent("a1", "find-tests", began, RUNS, activity='grep "def test_" src/', background=background),
        agent("a2", "read the docs", began, background=background),
        agent("a3", "check the pool", 0.0, Idle(0), turn=0, tokens=0, cost_usd=0.0, background=background),
    )


@asynccontextmanager
async def at_work(
    open_shell: OpenShell, engine: FakeEngine, size: tuple[int, int] = (80, 24)
) -> AsyncGenerator[tuple[Shell, FakeConversation]]:
    """A parent that waits for three."""
    parent = engine.seed("api-retry", messages=2)
    async with open_shell(size) as shell:
        await shell.open(parent)
        views = rows()
        parent.become(waits_for(*views))
        for view in views:
            engine.sub_agents.put(parent, view)
        await shell.until(lambda: "check the pool" in shell.text)
        yield shell, parent


async def test_rows_say_who_does_what_and_go_with_the_run(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with at_work(open_shell, engine) as (shell, parent):
        assert "sub-agents 0/3 done" in shell.text
        assert '◇ find-tests      ▸ grep "def test_" src/' in shell.text
        assert "waiting to start" in shell.text
        engine.sub_agents.end(parent.id, "a1", text="7 files named\nand more")
        await shell.until(lambda: "✓ find-tests      7 files named" in shell.text)
        engine.sub_agents.end(parent.id, "a2", AgentStatus.TIMEOUT, "half", "timed out")
        await shell.until(lambda: "✗ read the docs   timed out (partial kept)" in shell.text)
        engine.sub_agents.end(parent.id, "a3", AgentStatus.CANCELLED, reason="cancelled")
        parent.become(AwaitingLlm(2, RUN, Requesting()))
        await shell.until(lambda: "sub-agents 3/3 done" in shell.text)
        panel = shell.dock.agents
        assert panel is not None
        assert not panel.ticking
        parent.answer_with("All are back.")
        await shell.until(lambda: not panel.display)


async def test_the_status_line_says_what_esc_stops_and_esc_stops_it(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with at_work(open_shell, engine) as (shell, parent):
        await shell.until(lambda: "Esc stops 3 sub-agents" in shell.status)
        await shell.press("escape", until=lambda: parent.cancelled == 1)


async def test_with_the_parent_at_rest_esc_stops_those_in_the_background(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    parent = engine.seed("api-retry", messages=2)
    async with open_shell() as shell:
        await shell.open(parent)
        for view in rows(background=True)[:2]:
            engine.sub_agents.put(parent, view)
        await shell.until(lambda: "ready · 2 running" in shell.status)
        assert "Esc stops 2 sub-agents" in shell.status
        engine.sub_agents.waiting[parent.id] = 2
        await shell.press("escape", until=lambda: engine.sub_agents.stopped == ["a1", "a2"])
        await shell.until(lambda: "ready · 2 results waiting" in shell.status)
        assert (parent.cancelled, "? help" in shell.status) == (1, True)
        await shell.press("escape")  # while results wait: a new one must begin nothing
        await shell.until(lambda: parent.cancelled == 2)


async def test_a_sub_agents_transcript_names_it_takes_hints_and_esc_stops_it_alone(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with at_work(open_shell, engine, (120, 40)) as (shell, parent):
        await shell.press("alt+n", shows="find-tests (sub-agent of api-retry) 1 of 3")
        await shell.press("alt+n", shows="read the docs (sub-agent of api-retry) 2 of 3")
        assert "┃ Type a hint for this sub-agent" in shell.text
        assert "Esc stops this sub-agent" in shell.status
        head, own, more, _ = shell.text.splitlines()[-6:-2]
        assert "sub-agents 0/3 done" in head
        assert head.rstrip().endswith("Alt+U parent · Alt+P Alt+N others · Alt+S shows all")
        assert "read the docs" in own
        assert "turn 3/20" in own
        assert more.rstrip().endswith("s ago")
        await shell.enter("look in pool", until=lambda: engine.sub_agents.hints == [("a2", "look in pool")])
        await shell.until(lambda: "· your hint will be read with the next step: look in pool" in shell.text)
        await shell.until(lambda: not shell.composer.text)
        await shell.press("escape", until=lambda: engine.sub_agents.stopped == ["a2"])
        assert parent.cancelled == 0
        await shell.until(lambda: "Esc returns to its parent" in shell.status)
        await shell.press("escape", until=lambda: shell.conversation is parent)
        await shell.press("alt+p", until=lambda: shell.conversation.id == "a3")
        await shell.press("alt+u", until=lambda: shell.conversation is parent)


async def goes(shell: Shell, key: str, conversation_id: str) -> None:
    """A key, and the conversation it leads to."""
    await shell.press(key, until=lambda: shell.conversation.id == conversation_id)


async def test_from_the_parent_the_keys_go_to_those_at_work_and_from_there_to_all(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with at_work(open_shell, engine) as (shell, parent):
        for ended in ("a1", "a3"):
            engine.sub_agents.end(parent.id, ended, text="found")
        for key, reached in (("alt+n", "a2"), ("alt+u", parent.id), ("alt+p", "a2"), ("alt+p", "a1")):
            await goes(shell, key, reached)


async def test_the_sheet_opens_stops_hints_and_shows_beside(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with at_work(open_shell, engine, (160, 40)) as (shell, parent):
        engine.sub_agents.end(parent.id, "a1", text="7 files named")
        await shell.press("alt+s", until=lambda: isinstance(shell.top, AgentsSheet) and "3 sub-agents" in shell.text)
        assert "2 running" in shell.text
        await shell.press("x", until=lambda: "The sub-agent has already ended." in shell.toasts)
        await shell.press("down", "x", until=lambda: engine.sub_agents.stopped == ["a2"])
        await shell.press("down", "h", shows="Hint for check the pool")
        await shell.enter("begin", until=lambda: engine.sub_agents.hints == [("a3", "begin")])
        await shell.until(lambda: isinstance(shell.top, AgentsSheet))
        await shell.press("X", until=lambda: engine.sub_agents.stopped == ["a2", "a3"])
        await shell.press("vertical_line", until=lambda: shell.conversation.id == "a3")
        await shell.until(lambda: "check the pool (sub-agent of api-retry) 3 of 3" in shell.text)
        assert "api-retry" in shell.text
        await shell.press("alt+s", until=lambda: isinstance(shell.top, AgentsSheet))
        await shell.press("up", "up", "enter", until=lambda: shell.conversation.id == "a1")


async def test_a_question_of_a_sub_agent_is_docked_in_its_parent_and_answered_there(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with at_work(open_shell, engine) as (shell, parent):
        engine.sub_agents.ask(parent, "a1", question(asker="find-tests (sub-agent of api-retry)"))
        await shell.until(lambda: "find-tests (sub-agent of api-retry): Run a command?" in shell.text)
        await shell.until(lambda: "asks you" in shell.text and "y s a n r answer" in shell.status)
        panel = shell.screen.query_one(QuestionPanel)
        panel.focus()
        panel.press("y")
        child = engine.opened["a1"]
        await shell.until(lambda: child.answers)
        assert (child.answers[0][1].choice, parent.answers) == (ApprovalChoice.ONCE, [])
        engine.sub_agents.put(parent, replace(rows()[0], state=RUNS))
        await shell.until(lambda: not panel.display)


async def test_it_stands_in_the_list_and_in_the_queue_of_approvals(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with at_work(open_shell, engine, (120, 40)) as (shell, parent):
        await shell.until(lambda: "0/3 agents" in shell.text)
        engine.sub_agents.ask(parent, "a1", question(asker="find-tests (sub-agent of api-retry)"))
        await shell.until(lambda: "needs you" in shell.text)
        await shell.until(lambda: "◆ api-retry      needs you" in shell.text)
        await shell.press("alt+a", until=lambda: isinstance(shell.top, ApprovalsSheet))
        await shell.until(lambda: "find-tests (sub-agent of api-retry)  bash" in shell.text)


@asynccontextmanager
async def sheet_with_two_that_ask(
    open_shell: OpenShell, engine: FakeEngine
) -> AsyncGenerator[tuple[Shell, AgentsSheet, Callable[[], None]]]:
    """The second and the first ask; what is given lets the time pass in which a question takes no letter."""
    async with at_work(open_shell, engine, (140, 30)) as (shell, parent):
        lines = "\n".join(f"echo {line}" for line in range(60))
        for agent_id, command, asked in (("a2", "make docs", 20.0), ("a1", lines, 30.0)):
            made = question(command, call=ToolCall(f"call-{agent_id}", "bash", "{}"), asked=asked)
            engine.sub_agents.ask(parent, agent_id, replace(made, asker=f"{agent_id} (sub-agent of api-retry)"))
        await shell.press("alt+s", until=lambda: isinstance(sheet := shell.top, AgentsSheet) and sheet.question.display)
        sheet, clock = shell.top, SteppedClock(1_000.0)
        assert isinstance(sheet, AgentsSheet)
        panel: Any = sheet.question
        panel.gate.since, panel.gate.clock = clock.seconds, clock

        def wait() -> None:
            clock.seconds += GRACE

        yield shell, sheet, wait


async def test_the_question_of_the_chosen_one_is_read_whole_and_answered_in_the_sheet(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with sheet_with_two_that_ask(open_shell, engine) as (shell, sheet, wait):
        await shell.until(lambda: "› ◆ read the docs" in shell.text)
        assert "◆ Run a command?" in shell.text
        assert "2 ask you   y n answers · D denies all" in shell.text
        await shell.press("y")
        await shell.pilot.pause()
        assert engine.opened["a2"].answers == []
        wait()
        await shell.press("y")
        await shell.until(lambda: engine.opened["a2"].answers == [("call-a2", ApprovalAnswer(ApprovalChoice.ONCE))])
        await shell.press("up", shows=("echo 0", "rows 1-"))
        await shell.press("n", *["pagedown"] * 9, shows="echo 59")
        assert engine.opened["a1"].answers == []
        wait()
        await shell.press("r", *"not today", "enter")
        denied = ApprovalAnswer(ApprovalChoice.DENY, reason="not today")
        await shell.until(lambda: engine.opened["a1"].answers == [("call-a1", denied)])
        await shell.until(lambda: not sheet.question.display)
        assert "y n answers" not in shell.text


async def test_letters_of_an_answer_do_nothing_beside_one_that_does_not_ask_and_all_are_denied_at_once(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with sheet_with_two_that_ask(open_shell, engine) as (shell, sheet, wait):
        await shell.press("down", until=lambda: not sheet.question.display)
        wait()
        await shell.press("y", "n", "r", "D")
        await shell.press("up", until=lambda: sheet.question.display)
        assert [engine.opened[one].answers for one in ("a1", "a2", "a3")] == [[], [], []]
        await shell.press("D", *"wait", "enter", until=lambda: "2 denied." in shell.toasts)
        told = {answer for one in ("a1", "a2") for _, answer in engine.opened[one].answers}
        assert told == {ApprovalAnswer(ApprovalChoice.DENY, reason="wait")}


async def test_a_line_for_a_reason_goes_with_a_question_that_is_gone(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with sheet_with_two_that_ask(open_shell, engine) as (shell, sheet, wait):
        wait()
        await shell.press("r", until=lambda: sheet.question.has_class("-filling"))
        engine.opened["a2"].cancel()
        engine.sub_agents.end(shell.conversation.id, "a2", AgentStatus.CANCELLED, reason="cancelled")
        await shell.until(lambda: not sheet.question.display)
        await shell.press("escape", until=lambda: shell.top is shell.screen)


async def test_those_of_earlier_days_are_listed(open_shell: OpenShell, engine: FakeEngine) -> None:
    parent = engine.seed("api-retry", messages=2)
    engine.sub_agents.put(parent, rows()[0])
    engine.sub_agents.end(parent.id, "a1", text="7 files named")
    async with open_shell() as shell:
        await shell.open(parent)
        assert "sub-agents" not in shell.text
        await shell.type("/agents", "escape", "enter")
        await shell.until(lambda: isinstance(shell.top, AgentsSheet) and "1 sub-agent" in shell.text)
        assert "✓ find-tests   " in shell.text
        assert "  7 files named   " in shell.text


async def test_without_any_the_command_says_how_one_comes_to_be(shell: Shell, engine: FakeEngine) -> None:
    await shell.open(engine.seed("alone", messages=2))
    await shell.press("alt+s", shows="This conversation has no sub-agents.")
    await shell.press("escape", until=lambda: shell.top is shell.screen)
    await shell.press("alt+u", until=lambda: any("has no parent" in toast for toast in shell.toasts))


@asynccontextmanager
async def returned(open_shell: OpenShell, engine: FakeEngine) -> AsyncGenerator[Shell]:
    """A parent whose two sub-agents are back."""
    parent = engine.seed("api-retry")
    async with open_shell((100, 30)) as shell:
        await shell.open(parent)
        spawn = call("spawn-1", "spawn_agents", tasks=[{"task": "find-tests"}, {"task": "read the docs"}])
        teller = Teller(parent)
        teller.prompt("look")
        teller.wants("", spawn)
        for view in rows()[:2]:
            engine.sub_agents.put(parent, view)
            engine.sub_agents.end(parent.id, view.id, text="found")
        outcomes = [AgentOutcome(one, AgentStatus.SUCCESS, "found") for one in ("a1", "a2")]
        tasks = [AgentTask("a1", "find-tests"), AgentTask("a2", "read the docs")]
        display = AgentsDisplay(agent_texts.ends(tasks, outcomes))
        teller.ran(spawn, "2 sub-agents", agent_texts.aggregate(tasks, outcomes), display)
        teller.says("Both are back.")
        await shell.until(lambda: "2 sub-agents succeeded" in shell.text)
        yield shell


async def test_enter_on_the_call_opens_the_list_of_its_sub_agents(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with returned(open_shell, engine) as shell:
        transcript = shell.transcript
        await shell.press("alt+up", "up")
        await shell.until(lambda: (found := transcript.blocks.target()) is not None and found.name == "spawn_agents")
        await shell.press("enter", until=lambda: isinstance(shell.top, AgentsSheet) and "› ✓ find-tests" in shell.text)
        await shell.press("down", "enter", until=lambda: shell.conversation.id == "a2")


async def test_a_click_on_a_row_of_the_call_opens_that_sub_agent(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with returned(open_shell, engine) as shell:
        transcript = shell.transcript
        line = next(place for place, text in enumerate(shell.text.split("\n")) if "✓ read the docs" in text)
        await shell.pilot.click(transcript, offset=(6, line - transcript.region.y))
        await shell.until(lambda: shell.conversation.id == "a2")


async def test_a_click_on_a_row_opens_it_and_one_on_the_heading_folds_the_panel(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with at_work(open_shell, engine) as (shell, _):
        panel = shell.dock.agents
        assert panel is not None
        await shell.pilot.click(panel, offset=(3, 0))
        await shell.until(lambda: "◇ sub-agents 0/3 done" in shell.text and "find-tests  " not in shell.text)
        await shell.pilot.click(panel, offset=(3, 0))
        await shell.until(lambda: "◇ find-tests" in shell.text)
        await shell.pilot.click(panel, offset=(3, 2))
        await shell.until(lambda: shell.conversation.id == "a2")


async def test_what_would_change_a_sub_agents_transcript_is_refused(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with at_work(open_shell, engine) as (shell, _):
        await shell.press("alt+n", until=lambda: shell.conversation.id == "a1")
        shell.screen.action_command("delete")
        await shell.until(lambda: any("/delete does not work" in toast for toast in shell.toasts))
        assert not shell.conversation.record.deleted


async def test_one_that_waits_to_start_shows_its_task_and_is_still_there_when_left(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with at_work(open_shell, engine) as (shell, _):
        await shell.press("alt+p", shows="↳ task  check the pool")
        await shell.press("alt+u", until=lambda: shell.conversation.id != "a3")
        assert not engine.opened["a3"].record.deleted


async def test_ten_take_no_more_room_than_a_few_and_those_that_ask_come_first(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    parent = engine.seed("api-retry", messages=2)
    async with open_shell((60, 20)) as shell:
        await shell.open(parent)
        for number in range(10):
            engine.sub_agents.put(parent, agent(f"b{number}", f"task {number}", time.time() - 5, background=True))
        await shell.until(lambda: "+7 more" in shell.text)
        engine.sub_agents.ask(parent, "b9", question(asker="task 9 (sub-agent of api-retry)"))
        await shell.until(lambda: "◆ task 9    asks: " in shell.text)
        assert "+7 more" in shell.text


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (80, "find every test (sub-agent of check tests, docs and the queu…) 1 of 3"),
        (60, "find every test (sub-agent of check tests, do…) 1 of 3"),
        (42, "find every test (sub-agent) 1 of 3"),
    ],
)
async def test_a_sub_agents_own_title_outlasts_that_of_its_parent(
    open_shell: OpenShell, columns: int, row: str
) -> None:
    async with open_shell((columns, 20)) as shell:
        parent = "check tests, docs and the queu…"
        shell.parts.title.heading = Heading("find every test", "~/src/relay", parent=parent, place="1 of 3")
        await shell.until(lambda: re.sub(r"(Ctrl\+L list|\^L) *$", "", shell.text.split("\n")[0]).strip() == row)
