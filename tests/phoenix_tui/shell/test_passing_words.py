"""Passing notices: none lies over a sheet that opens later."""

from __future__ import annotations

from typing import Any

from phoenix_tui.modals.rows_sheet import HelpSheet
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import FakeEngine


def long_ago(shell: Any) -> None:
    """Age all visible notices by some seconds."""
    shell.screen.toasts.clock = SteppedClock(shell.screen.toasts.clock.monotonic() + 3)


async def test_what_was_said_goes_when_a_sheet_comes_and_can_be_said_again(open_shell: Any) -> None:
    async with open_shell() as shell:
        shell.tell("In the trash.")
        await shell.until(lambda: shell.toasts == ["In the trash."])
        long_ago(shell)
        await shell.pilot.press("f1")
        await shell.until(lambda: isinstance(shell.top, HelpSheet) and not shell.toasts)
        shell.tell("In the trash.")
        await shell.until(lambda: shell.toasts == ["In the trash."])


async def test_what_was_said_just_before_a_sheet_came_and_a_trouble_stay(open_shell: Any) -> None:
    async with open_shell() as shell:
        shell.screen.toasts.clock = SteppedClock()  # on a machine of any speed
        shell.tell("Kept for this conversation.")
        await shell.pilot.press("f1")
        await shell.until(lambda: isinstance(shell.top, HelpSheet) and shell.toasts)
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.top is shell.screen)
        shell.tell("The disk is full.", bad=True)
        await shell.until(lambda: list(shell.screen.query("Toast.-error")))
        long_ago(shell)
        await shell.pilot.press("f1")
        await shell.until(lambda: isinstance(shell.top, HelpSheet))
        await shell.pilot.pause()
        assert "The disk is full." in shell.toasts


async def test_what_was_said_of_one_conversation_goes_with_it_but_not_what_came_with_the_change(
    open_shell: Any, engine: FakeEngine
) -> None:
    one, two = engine.seed("one", messages=2), engine.seed("two", messages=2)
    async with open_shell() as shell:
        await shell.open(one)
        shell.tell("Removed from the queue.")
        shell.tell("It has no branches.", bad=True)
        await shell.until(lambda: len(list(shell.screen.query("Toast"))) == 2)
        long_ago(shell)
        await shell.open(two)
        await shell.until(lambda: not shell.toasts)
        shell.tell("Back from the trash.")
        await shell.until(lambda: list(shell.screen.query("Toast")))
        await shell.open(one)
        assert shell.toasts == ["Back from the trash."]
        shell.app.notify("keymap.toml:1: no key", severity="error")
        await shell.until(lambda: len(list(shell.screen.query("Toast"))) == 2)
        long_ago(shell)
        await shell.open(two)
        assert "keymap.toml:1: no key" in shell.toasts


async def test_what_is_said_loses_no_letter_where_it_fills_the_screen(open_shell: Any) -> None:
    async with open_shell((60, 20)) as shell:
        for letters in (57, 58, 60):
            words = ("eleven said " * 6)[: letters - 1] + "Z"
            shell.tell(words)
            await shell.until(lambda words=words: words in shell.toasts)
        await shell.until(lambda: shell.text.count("Z") == 3)
        toasts = list(shell.screen.query("Toast"))
        assert all(toast.region.right <= 60 and toast.region.x >= 0 for toast in toasts)
