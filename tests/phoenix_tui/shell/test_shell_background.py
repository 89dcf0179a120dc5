"""A key, a command and a hint send what runs to the background; where one writes the key moves in the text."""

from __future__ import annotations

from typing import Any

import pytest

from engine.machine.messages import ToolCall
from engine.machine.states import State, ToolExecuting, ToolRound
from engine.updates import StateChanged
from phoenix_tui.keys import active_keys
from phoenix_tui.keys.keymap import to_textual
from phoenix_tui.text.agent_text import leaving_question
from tests.support.fake_engine import RUN, FakeConversation
from tools.contract import JobInfo

NOTHING_RUNS = "No running command can be sent to the background."
RUNS_ON = "It continues in the background; /jobs lists it."


def executing(name: str = "bash") -> State:
    return ToolExecuting(1, RUN, ToolRound("m", ToolCall("1", name, "{}")))


async def with_command(shell: Any, *, seconds: float = 0.0, name: str = "bash") -> FakeConversation:
    """A conversation whose command has run for so long."""
    conversation: FakeConversation = await shell.say("go")
    conversation.jobs.runs = name == "bash"
    conversation.play(StateChanged(executing(name), conversation.engine.now - seconds))
    await shell.pilot.pause()
    return conversation


@pytest.mark.parametrize("focus", ["composer", "list", "transcript"])
async def test_the_key_sends_what_runs_to_the_background_from_any_focus(open_shell: Any, focus: str) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await with_command(shell)
        parts = shell.parts
        wanted = {"composer": shell.composer, "list": shell.rows, "transcript": parts.transcript}
        shell.screen.set_focus(wanted[focus])
        await shell.pilot.press("ctrl+b")
        await shell.until(lambda: RUNS_ON in shell.toasts)
        assert conversation.jobs.let_go == 1
        assert conversation.cancelled == 0


async def test_in_a_text_the_key_goes_a_character_back(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await with_command(shell)
        await shell.type("ab")
        await shell.pilot.press("ctrl+b", "x")
        await shell.until(lambda: shell.composer.text == "axb")
        assert conversation.jobs.let_go == 0
        shell.screen.set_focus(shell.transcript)
        await shell.pilot.press("ctrl+b")
        await shell.until(lambda: conversation.jobs.let_go == 1)


async def test_a_key_of_ones_own_counts_where_one_writes_too(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await with_command(shell)
        shell.app.set_keymap(to_textual({"background": "f9"}))
        try:
            await shell.type("ab")
            await shell.pilot.press("ctrl+b", "x", "f9")
            await shell.until(lambda: conversation.jobs.let_go == 1)
            assert shell.composer.text == "axb"
        finally:
            active_keys.take({})


async def test_where_nothing_runs_that_is_said(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.pilot.press("ctrl+b")
        await shell.until(lambda: "Nothing is running." in shell.toasts)
        conversation = await shell.say("go")
        conversation.answer_with("Done.")
        await shell.pilot.press("ctrl+b")
        await shell.until(lambda: NOTHING_RUNS in shell.toasts)


@pytest.mark.parametrize("name", ["/background", "/bg"])
async def test_the_command_does_what_the_key_does(open_shell: Any, name: str) -> None:
    async with open_shell() as shell:
        conversation = await with_command(shell)
        await shell.type(f"{name} ")
        await shell.pilot.press("enter")
        await shell.until(lambda: conversation.jobs.let_go == 1)
        assert RUNS_ON in shell.toasts


async def test_while_the_model_thinks_the_key_says_that_no_command_runs(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.say("go")
        await shell.pilot.press("ctrl+b")
        await shell.until(lambda: NOTHING_RUNS in shell.toasts)


async def test_the_status_line_names_the_key_once_it_takes_long(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await with_command(shell)
        assert "backgrounds" not in shell.status
        conversation.play(StateChanged(executing(), conversation.engine.now - 6))
        await shell.until(lambda: "background" in shell.status)
        assert shell.status.endswith("Ctrl+B backgrounds · Esc stops")
        await shell.type("next")
        await shell.until(lambda: "Tab queues · Ctrl+S stops and sends · Esc stops" in shell.status)
        assert "backgrounds" not in shell.status


async def test_no_other_tool_can_be_sent_there(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await with_command(shell, seconds=60, name="search")
        assert "backgrounds" not in shell.status


async def test_the_hint_names_the_key_in_force_and_gives_way_where_there_is_no_room(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        try:
            await with_command(shell, seconds=6)
            shell.app.set_keymap(to_textual({"background": "f9"}))
            await shell.until(lambda: shell.status.endswith("F9 backgrounds · Esc stops"))
            shell.app.set_keymap(to_textual({"background": "none"}))
            await shell.until(lambda: "background" not in shell.status)
            shell.app.set_keymap({})
            await shell.pilot.resize_terminal(40, 20)
            await shell.until(lambda: "Esc stops" in shell.text and "background" not in shell.text)
        finally:
            active_keys.take({})


async def test_jobs_are_counted_and_an_end_is_said_once(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        running = JobInfo("job-1", conversation.id, "make \x1b[2Jall", True, None, 3.0)
        conversation.jobs.become(running)
        await shell.until(lambda: "1 in background" in shell.status)
        ended = JobInfo("job-1", conversation.id, "make all", False, 2, 9.0)
        conversation.jobs.become(ended)
        await shell.until(lambda: "Background command ended, exit 2: make all" in shell.toasts)
        conversation.jobs.become(ended, JobInfo("job-2", conversation.id, "serve", True, None, 0.0))
        await shell.until(lambda: "1 in background" in shell.status)
        assert len(shell.toasts) == 1
        conversation.jobs.become(ended, JobInfo("job-2", conversation.id, "serve", False, None, 4.0))
        await shell.until(lambda: "Background command ended, killed: serve" in shell.toasts)


async def test_who_quits_is_asked_about_what_runs_in_the_background_of_any_conversation(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.answer_with("Done.")
        conversation.jobs.become(JobInfo("job-1", conversation.id, "serve", True, None, 1.0))
        await shell.type("/new")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.in_view is None)
        await shell.pilot.press("ctrl+q")
        await shell.until(lambda: "1 background command is still active. Quit and stop it?" in shell.text)
        await shell.pilot.press("n")
        await shell.until(lambda: "Quit" not in shell.text)
        assert shell.exits == []
        conversation.jobs.become(JobInfo("job-1", conversation.id, "serve", False, 0, 1.0))
        await shell.pilot.press("ctrl+q")
        await shell.until(lambda: shell.exits)


@pytest.mark.parametrize(
    ("runs", "jobs", "words"),
    [
        (0, 0, ""),
        (1, 0, "1 run is still active. Quit and stop it?"),
        (2, 0, "2 runs are still active. Quit and stop them?"),
        (0, 1, "1 background command is still active. Quit and stop it?"),
        (0, 3, "3 background commands are still active. Quit and stop them?"),
        (1, 1, "1 run and 1 background command are still active. Quit and stop all?"),
        (2, 3, "2 runs and 3 background commands are still active. Quit and stop all?"),
    ],
)
def test_the_question_names_what_would_end(runs: int, jobs: int, words: str) -> None:
    assert leaving_question(runs, jobs) == words
