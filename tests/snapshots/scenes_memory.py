"""The notes of the project and of the user: none, some, one deleted, one read."""

from __future__ import annotations

from typing import Final

from phoenix_tui.modals.text_sheet import TextSheet
from tests.snapshots.booth import SMALL, Booth
from tests.support.fake_notes import notes_below, some_notes


async def memory(place: Booth) -> None:
    """The list, a deletion with its undo, a note."""
    async with place.opened(services={"notes": notes_below(place.home / "none")}) as shell:
        await shell.type("/memory")
        await shell.pilot.press("escape", "enter")
        await shell.until(lambda: shell.is_page("Notes"))
        await place.take(shell, "empty", (SMALL,))
    notes = await some_notes(place.home, place.cwd)
    async with place.opened(services={"notes": notes}) as shell:
        await shell.type("/memory")
        await shell.pilot.press("escape", "enter")
        await shell.until(lambda: shell.is_page("Notes"))
        await place.take(shell, "list")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        await place.take(shell, "read", (SMALL,))
        await shell.pilot.press("escape")
        await shell.pilot.press("x")
        await shell.until(lambda: "deleted" in shell.text)
        await place.take(shell, "deleted", (SMALL,))


SCENES: Final = {"memory": memory}
