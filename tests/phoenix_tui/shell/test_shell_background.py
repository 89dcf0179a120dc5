"""Commands in the background, /jobs and /debug."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.diagnostics import Diagnostics
from engine.machine.messages import ToolCall
from engine.machine.states import State, ToolExecuting, ToolRound
from engine.updates import StateChanged
from phoenix_tui.keys import active_keys
from phoenix_tui.keys.keymap import to_textual
from phoenix_tui.modals.jobs_sheet import JobsSheet
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.text.agent_text import leaving_question
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import RUN, FakeConversation
from tests.support.shell import Shell
from tools.contract import Captured, JobInfo

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
        await shell.press("ctrl+b", until=lambda: RUNS_ON in shell.toasts)
        assert conversation.jobs.let_go == 1
        assert conversation.cancelled == 0


async def test_in_a_text_the_key_goes_a_character_back(shell: Shell) -> None:
    conversation = await with_command(shell)
    await shell.type("ab", "ctrl+b", "x", until=lambda: shell.composer.text == "axb")
    assert conversation.jobs.let_go == 0
    shell.screen.set_focus(shell.transcript)
    await shell.press("ctrl+b", until=lambda: conversation.jobs.let_go == 1)


async def test_a_key_of_ones_own_counts_where_one_writes_too(shell: Shell) -> None:
    conversation = await with_command(shell)
    shell.app.set_keymap(to_textual({"background": "f9"}))
    try:
        await shell.type("ab", "ctrl+b", "x", "f9", until=lambda: conversation.jobs.let_go == 1)
        assert shell.composer.text == "axb"
    finally:
        active_keys.take({})


async def test_where_nothing_runs_that_is_said(shell: Shell) -> None:
    await shell.press("ctrl+b", until=lambda: "Nothing is running." in shell.toasts)
    conversation = await shell.say("go")
    conversation.answer_with("Done.")
    await shell.press("ctrl+b", until=lambda: NOTHING_RUNS in shell.toasts)


@pytest.mark.parametrize("name", ["/background", "/bg"])
async def test_the_command_does_what_the_key_does(shell: Shell, name: str) -> None:
    conversation = await with_command(shell)
    await shell.enter(f"{name} ", until=lambda: conversation.jobs.let_go == 1)
    assert RUNS_ON in shell.toasts


async def test_while_the_model_thinks_the_key_says_that_no_command_runs(shell: Shell) -> None:
    await shell.say("go")
    await shell.press("ctrl+b", until=lambda: NOTHING_RUNS in shell.toasts)


async def test_the_status_line_names_the_key_once_it_takes_long(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await with_command(shell)
        assert "backgrounds" not in shell.status
        conversation.play(StateChanged(executing(), conversation.engine.now - 6))
        await shell.until(lambda: "background" in shell.status)
        assert shell.status.endswith("Ctrl+B backgrounds · Esc stops")
        await shell.type("next", until=lambda: "Tab queues · Ctrl+S stops and sends · Esc stops" in shell.status)
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


async def test_who_quits_is_asked_about_what_runs_in_the_background_of_any_conversation(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.answer_with("Done.")
    conversation.jobs.become(JobInfo("job-1", conversation.id, "serve", True, None, 1.0))
    await shell.enter("/new", until=lambda: shell.in_view is None)
    await shell.press("ctrl+q", shows="1 background command is still active. Quit and stop it?")
    await shell.press("n", until=lambda: "Quit" not in shell.text)
    assert shell.exits == []
    conversation.jobs.become(JobInfo("job-1", conversation.id, "serve", False, 0, 1.0))
    await shell.press("ctrl+q", until=lambda: shell.exits)


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


async def with_jobs(shell: Any, count: int = 3) -> FakeConversation:
    """A conversation with `count` jobs; every second one has failed. The sheet is open."""
    conversation: FakeConversation = await shell.say("go")
    conversation.answer_with("Done.")
    for number in range(1, count + 1):
        conversation.jobs.printed[f"job-{number}"] = Captured(b"".join(b"%d of %d\n" % (n, number) for n in range(30)))
    conversation.jobs.become(*(job(conversation, number, runs=number % 2 == 1) for number in range(1, count + 1)))
    await shell.type("/jobs", "space", "enter")
    await shell.until(lambda: isinstance(shell.top, JobsSheet) and "background command" in shell.text)
    return conversation


def job(conversation: FakeConversation, number: int, *, runs: bool) -> JobInfo:
    return JobInfo(f"job-{number}", conversation.id, f"serve {number}", runs, None if runs else 7, 72.0)


async def test_each_says_how_it_stands_and_the_newest_shows_its_last_lines(shell: Shell) -> None:
    await with_jobs(shell)
    await shell.until(lambda: "3 background commands · 2 running   Enter shows output · x stops" in shell.text)
    rows = [" ".join(row.split()) for row in shell.text.splitlines() if "serve" in row]
    assert rows == [
        "serve 1 running 1 m 12 s",
        "serve 2 exit 7 after 1 m 12 s",
        "› serve 3 running 1 m 12 s",
    ]
    assert "29 of 3" in shell.text
    await shell.press("up", shows="29 of 2")


async def test_x_ends_the_chosen_one_and_no_ended_one(shell: Shell) -> None:
    conversation = await with_jobs(shell)
    await shell.press("x", shows=("serve 3", "killed after 1 m 12 s"))
    assert [one.running for one in conversation.jobs.all()] == [True, False, False]
    await shell.press("up", "x", until=lambda: "The command has already ended." in shell.toasts)


async def test_enter_reads_it_from_its_end_and_comes_back_to_the_list(shell: Shell) -> None:
    await with_jobs(shell)
    await shell.press("enter", until=lambda: isinstance(shell.top, TextSheet) and "29 of 3" in shell.text)
    assert "\n 2 of 3" not in shell.text
    await shell.press("q", until=lambda: isinstance(shell.top, JobsSheet))


async def test_many_leave_room_for_what_one_prints(open_shell: Any) -> None:
    async with open_shell((80, 24)) as shell:
        await with_jobs(shell, 40)
        await shell.until(lambda: "29 of 40" in shell.text and "27 of 40" in shell.text)
        assert "serve 40" in shell.text
        await shell.press(*["up"] * 39, shows=("› serve 1 ", "29 of 1"))


async def test_what_it_prints_is_shown_without_its_escape_sequences(shell: Shell) -> None:
    conversation = await with_jobs(shell, 1)
    conversation.jobs.printed["job-1"] = Captured(b"\x1b]52;c;aGk=\x07a \x1b[31mred\x1b[0m [b]line[/b]\n")
    await shell.until(lambda: "a red [b]line[/b]" in shell.text)


async def test_without_any_that_is_said(shell: Shell) -> None:
    await shell.say("go")
    await shell.type("/jobs")
    await shell.press("space", "enter", shows="This conversation has no background commands.")
    assert shell.toasts == []


async def typed(shell: Shell, text: str) -> None:
    await shell.type(text, "escape", "enter")


async def test_a_file_is_chosen_and_its_end_is_read_without_control_characters_and_keys(
    open_shell: OpenShell, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "phoenix.jsonl").write_text('{"message": "\x1b[2Jhello sk-ant-planted-0123456789"}\n')
    (folder / "other.txt").write_text("not a record")
    async with open_shell(size=(100, 30), diagnostics=Diagnostics(folder)) as shell:
        await typed(shell, "/debug")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))
        assert "phoenix.jsonl" in shell.text
        assert "other.txt" not in shell.text
        await shell.press("enter", until=lambda: isinstance(shell.top, TextSheet))
        assert "hello [redacted]" in shell.text
        assert "\x1b" not in shell.text


async def test_without_records_a_sentence_says_so(open_shell: OpenShell, tmp_path: Path) -> None:
    async with open_shell(diagnostics=Diagnostics(tmp_path / "none")) as shell:
        await typed(shell, "/debug")
        await shell.until(lambda: "Nothing was recorded yet" in shell.text)
    async with open_shell() as shell:
        await typed(shell, "/debug")
        await shell.until(lambda: "Nothing is recorded for debugging here." in shell.text)
