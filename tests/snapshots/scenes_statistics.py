"""Statistics over all conversations: every page, an empty database, and plain signs."""

from __future__ import annotations

from functools import partial
from typing import Final

from phoenix_tui.modals.statistics_sheet import PAGES, StatisticsSheet
from tests.snapshots.booth import SMALL, Booth
from tests.support.fake_statistics import FakeStatistics, some_statistics
from tests.support.shell import Shell


async def opened(shell: Shell, argument: str = "") -> None:
    await shell.type(f"/stats {argument}".rstrip())
    await shell.pilot.press("escape", "enter")
    await shell.until(lambda: isinstance(shell.top, StatisticsSheet) and "reading…" not in shell.text)


def shows(shell: Shell, name: str) -> bool:
    return name in shell.text and "reading…" not in shell.text


async def statistics(place: Booth) -> None:
    """An empty database, then each page."""
    async with place.opened(services={"statistics": FakeStatistics()}) as shell:
        await opened(shell)
        await place.take(shell, "empty", (SMALL,))
    async with place.opened(services={"statistics": some_statistics()}) as shell:
        await opened(shell)
        for place_of_page, name in enumerate(PAGES):
            if place_of_page:
                await shell.pilot.press("right")
                await shell.until(partial(shows, shell, f"[{name}]"))
            await place.take(shell, name.lower())


async def plain(place: Booth) -> None:
    """The heat map without signs beyond ASCII."""
    async with place.opened(services={"statistics": some_statistics()}, plain=True) as shell:
        await opened(shell, "day")
        await place.take(shell, "days", (SMALL,))


SCENES: Final = {"statistics": statistics, "statistics-plain": plain}
