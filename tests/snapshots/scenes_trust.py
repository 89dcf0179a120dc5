"""The extensions of a folder: not answered yet, used, changed, very long names."""

from __future__ import annotations

from typing import Final

from phoenix_tui.modals.text_sheet import TextSheet
from tests.snapshots.booth import LARGE, SMALL, Booth
from tests.support.extended_folder import board, extended, write
from tests.support.shell import Shell


async def opened(shell: Shell) -> None:
    await shell.type("/trust")
    await shell.pilot.press("escape", "enter")
    await shell.until(lambda: shell.is_page("Extensions of this folder"))


async def trust(place: Booth) -> None:
    """The list before and after an answer, the difference of a changed script, a name that does not fit."""
    async with place.opened(services={"trust": board(place.home)}) as shell:
        await opened(shell)
        await place.take(shell, "empty", (SMALL,))
    extended(place.cwd)
    async with place.opened(services={"trust": board(place.home)}) as shell:
        await opened(shell)
        await place.take(shell, "new", (SMALL, LARGE))
        await shell.pilot.press("y")
        await shell.until(lambda: "Used from now on" in shell.text)
        await place.take(shell, "used", (SMALL,))
        await shell.pilot.press("escape")
        write(place.cwd / "scripts/lint.py", "print('worse')\n")
        write(place.cwd / f".claude/commands/{'very-long-' * 20}name.md", "x")
        await opened(shell)
        await place.take(shell, "changed", (SMALL, LARGE))
        await shell.pilot.press("s")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        await place.take(shell, "difference", (SMALL,))


SCENES: Final = {"trust": trust}
