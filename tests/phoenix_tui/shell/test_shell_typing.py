"""Typing into a running shell line: every key goes to its program, and Esc Esc gives them back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clocks import SteppedClock
from tools.terminal.values import TerminalModes

GIVES_BACK = "your keys go to the program · Esc Esc or Ctrl+] returns"


async def typing(shell: Any) -> Any:
    """The terminal of a running line, to which the keys go."""
    conversation = await shell.say("go")
    conversation.terminal.modes = TerminalModes()
    await shell.pilot.press("ctrl+right_square_bracket")
    await shell.shows(GIVES_BACK)
    return conversation.terminal


def still(shell: Any) -> SteppedClock:
    """Stop the clock of the two presses."""
    clock = SteppedClock(1000.0)
    shell.screen.shell_typing.use(clock)
    return clock


async def test_every_key_goes_to_the_program(open_shell: Any) -> None:
    async with open_shell() as shell:
        terminal = await typing(shell)
        await shell.pilot.press("l", "s", "enter", "ctrl+c", "up", "tab", "q", "ctrl+q", "f1")
        assert b"".join(terminal.typed) == b"ls\r\x03\x1b[A\tq\x11\x1bOP"
        await shell.shows("Your keys go to the command above")
        assert shell.composer.text == ""


async def test_one_esc_reaches_it_and_a_second_gives_the_keys_back(open_shell: Any) -> None:
    async with open_shell() as shell:
        terminal = await typing(shell)
        clock = still(shell)
        await shell.pilot.press("escape")
        clock.seconds += 0.6
        await shell.pilot.press("escape")
        assert terminal.typed == [b"\x1b", b"\x1b"]
        clock.seconds += 0.4
        await shell.pilot.press("escape")
        await shell.lacks(GIVES_BACK)
        assert terminal.typed == [b"\x1b", b"\x1b"]
        assert shell.composer.has_focus
        await shell.pilot.press("x")
        await shell.until(lambda: shell.composer.text == "x")


async def test_the_key_again_gives_them_back(open_shell: Any) -> None:
    async with open_shell() as shell:
        terminal = await typing(shell)
        await shell.pilot.press("ctrl+right_square_bracket")
        await shell.lacks(GIVES_BACK)
        await shell.shows("Type your next message")
        assert terminal.typed == []


async def test_keys_right_behind_the_key_go_to_the_program(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.terminal.modes = TerminalModes()
        await shell.press_at_once("ctrl+right_square_bracket", "y", "enter")
        await shell.until(lambda: b"".join(conversation.terminal.typed) == b"y\r")


async def test_what_is_typed_on_after_its_end_is_no_message(open_shell: Any) -> None:
    async with open_shell() as shell:
        terminal = await typing(shell)
        clock = still(shell)
        await shell.pilot.press("s", "e")
        terminal.modes = None
        await shell.pilot.press("c", "enter")
        assert b"".join(terminal.typed) == b"se"
        assert shell.composer.text == ""
        clock.seconds += 1
        await shell.pilot.press("h", "i")
        await shell.until(lambda: shell.composer.text == "hi")


async def test_without_a_line_in_a_terminal_it_says_so(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.say("go")
        await shell.pilot.press("ctrl+right_square_bracket")
        await shell.until(lambda: "No shell line of yours runs in a terminal here." in shell.toasts)


@pytest.mark.parametrize(("folder", "shown"), [("", "shell · the model"), ("/x/y", "shell in /x/y · the model")])
async def test_the_composer_names_the_folder_of_the_next_line(open_shell: Any, folder: str, shown: str) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.terminal.folder = folder
        await shell.type("!")
        await shell.shows(shown)
