"""What is said in passing: it does not lie over a sheet that comes later."""

from __future__ import annotations

import time
from typing import Any

from phoenix_tui.screens.help_sheet import HelpSheet


def long_ago(shell: Any) -> None:
    """As if all that stands there had been there for a while."""
    shell.screen._told = {text: time.monotonic() - 3 for text in shell.screen._told}


async def test_what_was_said_goes_when_a_sheet_comes_and_can_be_said_again(open_shell: Any) -> None:
    async with open_shell() as shell:
        shell.screen.tell("In the trash.")
        await shell.until(lambda: shell.toasts == ["In the trash."])
        long_ago(shell)
        await shell.pilot.press("f1")
        await shell.until(lambda: isinstance(shell.app.screen, HelpSheet) and not shell.toasts)
        shell.screen.tell("In the trash.")
        await shell.until(lambda: shell.toasts == ["In the trash."])


async def test_what_was_said_just_before_a_sheet_came_and_a_trouble_stay(open_shell: Any) -> None:
    async with open_shell() as shell:
        now = time.monotonic()
        shell.screen._told = {"soon": now + 60}
        shell.screen.tell("Kept for this conversation.")
        await shell.pilot.press("f1")
        await shell.until(lambda: isinstance(shell.app.screen, HelpSheet) and shell.toasts)
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.app.screen is shell.screen)
        shell.screen.tell("The disk is full.", bad=True)
        await shell.until(lambda: list(shell.screen.query("Toast.-error")))
        long_ago(shell)
        await shell.pilot.press("f1")
        await shell.until(lambda: isinstance(shell.app.screen, HelpSheet))
        await shell.pilot.pause()
        assert "The disk is full." in shell.toasts
