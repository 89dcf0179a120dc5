"""Vim keys of the composer, and completions of shell lines and scripts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from phoenix_tui.features.custom_commands import CustomCommands
from phoenix_tui.widgets import completer
from phoenix_tui.widgets.completer import CustomSource
from phoenix_tui.widgets.completion_popup import Completion
from phoenix_tui.widgets.vim import Mode
from tests.phoenix_tui.shell.conftest import OpenLive
from tests.phoenix_tui.writing.test_shell_completions import custom, one
from tests.support.live_shell import LiveShell
from tests.support.shell import Shell
from tests.support.waiting import poll

pytestmark = pytest.mark.usefixtures("tab_waits")

ROOT = Path(__file__).parents[3]


def rule(shell: Any) -> str:
    return str(shell.screen.query_one("#rule").border_title or "")


async def vim_on(shell: Any) -> None:
    await shell.enter("/vim on", until=lambda: rule(shell) == "INSERT")


async def test_vim_is_off_and_a_command_turns_it_on_at_once_and_keeps_it(shell: Shell) -> None:
    assert (shell.composer.vim.keys, rule(shell)) == (None, "")
    await vim_on(shell)
    assert shell.settings == [("vim", "true")]
    await shell.enter("/vim off", until=lambda: rule(shell) == "" and "to normal" not in shell.status)
    assert (shell.composer.vim.keys, shell.settings[-1]) == (None, ("vim", "false"))


async def test_escape_leads_to_normal_and_there_it_clears_the_draft(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        await shell.until(lambda: rule(shell) == "INSERT" and "Esc to normal" in shell.status)
        await shell.type("one two")
        await shell.press("escape", until=lambda: rule(shell) == "NORMAL" and "Esc Esc clears" in shell.status)
        await shell.press("b", "d", "w", "u", "ctrl+r", until=lambda: shell.composer.text == "one ")
        await shell.press("2", until=lambda: rule(shell) == "NORMAL 2" and "Esc cancels the command" in shell.status)
        await shell.press("escape", "escape", "escape")
        await shell.until(lambda: shell.composer.text == "" and rule(shell) == "INSERT")


async def test_enter_sends_in_normal_and_a_slash_on_an_empty_line_begins_a_command(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        await shell.type("hello")
        await shell.press("escape", "enter", until=lambda: [said for said, _ in shell.conversation.said] == ["hello"])
        assert shell.composer.vim.keys.mode is Mode.INSERT
        await shell.until(lambda: "Ctrl+C stops · Esc to normal" in shell.status)
        await shell.press("escape", "slash", "h", "e", "l", "p")
        await shell.until(lambda: shell.composer.text == "/help" and shell.composer.keys.completing)


async def test_what_is_selected_in_visual_is_deleted_over_lines(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one\ntwo\nthree")
        await shell.press("escape", "g", "g", "v", "j", "l", until=lambda: rule(shell) == "VISUAL")
        assert shell.composer.selected_text == "one\nt"
        await shell.press("d", until=lambda: (shell.composer.text, rule(shell)) == ("o\nthree", "NORMAL"))


async def test_a_change_is_repeated_with_what_was_written_and_undone_as_one(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one two three")
        await shell.press("escape", "0", "c", "w", "a", "b", "escape", "w", "full_stop")
        await shell.until(lambda: shell.composer.text == "ab ab three")
        await shell.press("u", until=lambda: shell.composer.text == "ab two three")
        await shell.press("u", until=lambda: shell.composer.text == "one two three")
        await shell.press("ctrl+r", until=lambda: shell.composer.text == "ab two three")
        await shell.press("ctrl+r", until=lambda: shell.composer.text == "ab ab three")


async def test_what_is_written_anew_is_no_change_to_repeat(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one two three")
        await shell.press("escape", "0", "c", "w", "a", "b", "escape")
        await shell.until(lambda: shell.composer.text == "ab two three")
        shell.composer.load("four five six")
        await shell.press("x", "escape", "0", "full_stop", until=lambda: shell.composer.text == "ab five sixx")


async def test_a_change_in_which_the_cursor_went_elsewhere_is_not_repeated(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one two three")
        await shell.press("escape", "0", "c", "w", "a", "right", "right", "b", "escape")
        await shell.until(lambda: shell.composer.text == "a tbwo three")
        await shell.press("0", "full_stop")
        await shell.until(lambda: rule(shell) == "NORMAL" and shell.composer.vim.keys.state.change == "")
        assert shell.composer.text == "a tbwo three"


async def test_whole_lines_are_selected_and_put_elsewhere(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one\ntwo\nthree")
        await shell.press("escape", "g", "g", "l", "V", "j")
        await shell.until(lambda: rule(shell) == "VISUAL LINE" and shell.composer.selected_text == "one\ntw")
        await shell.press("d", "p", until=lambda: (shell.composer.text, rule(shell)) == ("three\none\ntwo", "NORMAL"))


async def test_the_list_keeps_its_own_escape(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        await shell.until(lambda: "Esc to normal" in shell.status)
        await shell.press("ctrl+l", until=lambda: shell.rows.has_focus and "Esc to normal" not in shell.status)
        await shell.press("escape", until=lambda: shell.composer.has_focus and "Esc to normal" in shell.status)
        assert shell.composer.vim.keys.mode is Mode.INSERT


def test_nothing_of_vim_is_loaded_before_it_is_wanted() -> None:
    program = "import sys, phoenix_tui.app; print(*(name for name in sys.modules if 'vim' in name))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


class SlowSource:
    """Finds a command once the test lets it."""

    def __init__(self, found: CustomCommands) -> None:
        self.found = found
        self.released = asyncio.Event()

    def now(self) -> CustomCommands | None:
        return self.found

    async def look(self) -> None:
        await self.released.wait()
        self.found = custom(one("fix-issue", "Fixes it."))

    async def values(self, line: str) -> Sequence[Completion]:
        return ()

    async def mentions(self, query: str) -> Sequence[Completion]:
        await self.released.wait()
        return ()


async def test_letters_typed_before_the_files_were_looked_at_leave_no_command_out(live: LiveShell) -> None:
    source = SlowSource(custom())
    live.dock.completer.offer_custom(CustomSource(source.now, source.look, source.values))
    await live.type("/fix")
    assert "Fixes it." not in live.text
    source.released.set()
    await live.until(lambda: "Fixes it." in live.text)


async def test_letters_behind_tab_stay_behind_what_it_puts_in(live: LiveShell) -> None:
    source = SlowSource(custom(one("fix-issue", "Fixes it.")))
    live.dock.completer.offer_custom(CustomSource(source.now, source.look, source.values))
    await live.type("/fix")
    assert "Fixes it." in live.text
    typing = asyncio.ensure_future(live.press("tab", "1", "2"))
    assert not await poll(lambda: live.composer.text != "/fix", 0.1)
    source.released.set()
    await typing
    await live.until(lambda: live.composer.text == "/fix-issue 12")


@pytest.mark.parametrize(
    ("typed", "becomes"),
    [
        pytest.param("/renam", "/rename es", id="a command on offer is taken"),
        pytest.param("/fix", "/fix-issue es", id="a command file on offer is taken"),
        pytest.param("/none", "/nonees", id="nothing is on offer"),
        pytest.param("@none", "@nonees", id="files are still listed"),
    ],
)
async def test_newer_completions_that_do_not_come_hold_neither_tab_nor_the_letters_behind_it(
    open_live: OpenLive, monkeypatch: pytest.MonkeyPatch, typed: str, becomes: str
) -> None:
    monkeypatch.setattr(completer, "SETTLES", 0.05)
    async with open_live() as shell:
        source = SlowSource(custom(one("fix-issue", "Fixes it.")))
        shell.dock.completer.offer_custom(CustomSource(source.now, source.look, source.values))
        shell.dock.completer.mentions = source.mentions
        await shell.type(typed, "tab", "e", "s", until=lambda: shell.composer.text == becomes)


async def test_tab_puts_nothing_into_another_draft_that_came_into_view(live: LiveShell) -> None:
    source = SlowSource(custom(one("fix-issue", "Fixes it.")))
    live.dock.completer.offer_custom(CustomSource(source.now, source.look, source.values))
    await live.type("/fix")
    typing = asyncio.ensure_future(live.press("tab"))
    assert not await poll(lambda: live.composer.text != "/fix", 0.1)
    live.composer.load("/another")
    source.released.set()
    await typing
    assert live.composer.text == "/another"


async def test_tab_completes_from_the_folder_of_the_line_and_enter_runs_what_is_written(
    open_shell: Any, tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "inner file.txt").touch()
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.terminal.folder = str(tmp_path / "deep")
        await shell.type("!cat inn", shows="Enter runs the line as it is written")
        await shell.shows("inner\\ file.txt")
        await shell.lacks("Tab for you only")
        await shell.press("tab", until=lambda: shell.composer.text == "!cat inner\\ file.txt ")
        await shell.type("inn", shows="Enter runs the line as it is written")
        await shell.press("enter", until=lambda: conversation.queue.waiting)
        assert conversation.queue.waiting[0].text == "!cat inner\\ file.txt inn"


async def test_tab_on_the_mark_alone_still_says_who_reads_the_output(shell: Shell) -> None:
    await shell.say("go")
    await shell.type("!", shows="Tab for you only")
    await shell.press("tab", until=lambda: shell.composer.text == "!!")
