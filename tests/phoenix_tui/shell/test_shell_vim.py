"""Vim's keys in the composer: off until they are wanted, and Esc says what it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from phoenix_tui.widgets.vim import Mode

ROOT = Path(__file__).parents[3]


def rule(shell: Any) -> str:
    return str(shell.screen.query_one("#rule").border_title or "")


async def vim_on(shell: Any) -> None:
    await shell.type("/vim on")
    await shell.pilot.press("enter")
    await shell.until(lambda: rule(shell) == "INSERT")


async def test_vim_is_off_and_a_command_turns_it_on_at_once_and_keeps_it(open_shell: Any) -> None:
    async with open_shell() as shell:
        assert (shell.composer.vim.keys, rule(shell)) == (None, "")
        await vim_on(shell)
        assert shell.settings == [("vim", "true")]
        await shell.type("/vim off")
        await shell.pilot.press("enter")
        await shell.until(lambda: rule(shell) == "" and "to normal" not in shell.status)
        assert (shell.composer.vim.keys, shell.settings[-1]) == (None, ("vim", "false"))


async def test_escape_leads_to_normal_and_there_it_clears_the_draft(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        await shell.until(lambda: rule(shell) == "INSERT" and "Esc to normal" in shell.status)
        await shell.type("one two")
        await shell.pilot.press("escape")
        await shell.until(lambda: rule(shell) == "NORMAL" and "Esc Esc clears" in shell.status)
        await shell.pilot.press("b", "d", "w", "u", "ctrl+r")
        await shell.until(lambda: shell.composer.text == "one ")
        await shell.pilot.press("2")
        await shell.until(lambda: rule(shell) == "NORMAL 2" and "Esc cancels the command" in shell.status)
        await shell.pilot.press("escape", "escape", "escape")
        await shell.until(lambda: shell.composer.text == "" and rule(shell) == "INSERT")


async def test_enter_sends_in_normal_and_a_slash_on_an_empty_line_begins_a_command(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        await shell.type("hello")
        await shell.pilot.press("escape", "enter")
        await shell.until(lambda: [said for said, _ in shell.conversation.said] == ["hello"])
        assert shell.composer.vim.keys.mode is Mode.INSERT
        await shell.until(lambda: "Ctrl+C stops · Esc to normal" in shell.status)
        await shell.pilot.press("escape", "slash", "h", "e", "l", "p")
        await shell.until(lambda: shell.composer.text == "/help" and shell.composer.keys.completing)


async def test_what_is_selected_in_visual_is_deleted_over_lines(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one\ntwo\nthree")
        await shell.pilot.press("escape", "g", "g", "v", "j", "l")
        await shell.until(lambda: rule(shell) == "VISUAL")
        assert shell.composer.selected_text == "one\nt"
        await shell.pilot.press("d")
        await shell.until(lambda: (shell.composer.text, rule(shell)) == ("o\nthree", "NORMAL"))


async def test_a_change_is_repeated_with_what_was_written_and_undone_as_one(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one two three")
        await shell.pilot.press("escape", "0", "c", "w", "a", "b", "escape", "w", "full_stop")
        await shell.until(lambda: shell.composer.text == "ab ab three")
        await shell.pilot.press("u")
        await shell.until(lambda: shell.composer.text == "ab two three")
        await shell.pilot.press("u")
        await shell.until(lambda: shell.composer.text == "one two three")
        await shell.pilot.press("ctrl+r")
        await shell.until(lambda: shell.composer.text == "ab two three")
        await shell.pilot.press("ctrl+r")
        await shell.until(lambda: shell.composer.text == "ab ab three")


async def test_what_is_written_anew_is_no_change_to_repeat(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one two three")
        await shell.pilot.press("escape", "0", "c", "w", "a", "b", "escape")
        await shell.until(lambda: shell.composer.text == "ab two three")
        shell.composer.load("four five six")
        await shell.pilot.press("x", "escape", "0", "full_stop")
        await shell.until(lambda: shell.composer.text == "ab five sixx")


async def test_a_change_in_which_the_cursor_went_elsewhere_is_not_repeated(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one two three")
        await shell.pilot.press("escape", "0", "c", "w", "a", "right", "right", "b", "escape")
        await shell.until(lambda: shell.composer.text == "a tbwo three")
        await shell.pilot.press("0", "full_stop")
        await shell.until(lambda: rule(shell) == "NORMAL" and shell.composer.vim.keys.state.change == "")
        assert shell.composer.text == "a tbwo three"


async def test_whole_lines_are_selected_and_put_elsewhere(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        shell.composer.load("one\ntwo\nthree")
        await shell.pilot.press("escape", "g", "g", "l", "V", "j")
        await shell.until(lambda: rule(shell) == "VISUAL LINE" and shell.composer.selected_text == "one\ntw")
        await shell.pilot.press("d", "p")
        await shell.until(lambda: (shell.composer.text, rule(shell)) == ("three\none\ntwo", "NORMAL"))


async def test_the_list_keeps_its_own_escape(open_shell: Any) -> None:
    async with open_shell(vim=True) as shell:
        await shell.until(lambda: "Esc to normal" in shell.status)
        await shell.pilot.press("ctrl+l")
        await shell.until(lambda: shell.rows.has_focus and "Esc to normal" not in shell.status)
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.composer.has_focus and "Esc to normal" in shell.status)
        assert shell.composer.vim.keys.mode is Mode.INSERT


def test_nothing_of_vim_is_loaded_before_it_is_wanted() -> None:
    program = "import sys, phoenix_tui.app; print(*(name for name in sys.modules if 'vim' in name))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
