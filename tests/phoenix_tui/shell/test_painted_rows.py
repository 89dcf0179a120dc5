"""A row that was painted goes when another takes its place, without waiting for a collection."""

from __future__ import annotations

import gc

from textual.strip import Strip

from tests.phoenix_tui.shell.conftest import OpenLive
from tests.support.shell import ScreenDriver


async def repainted(shell: ScreenDriver, times: int) -> int:
    """Number of rows in memory after repeated paints of a whole screen."""
    for _ in range(times):
        for widget in shell.screen.query("*"):
            widget.refresh()
        await shell.pilot.pause()
    return sum(type(one) is Strip for one in gc.get_objects())


async def test_painting_again_and_again_leaves_no_rows(open_live: OpenLive) -> None:
    async with open_live(paints=True) as shell:
        gc.collect()
        gc.disable()
        try:
            before = await repainted(shell, 5)
            after = await repainted(shell, 30)
        finally:
            gc.enable()
        assert after - before < 10  # a row that is being written more or less; 30 screens have 700


def test_a_row_is_cut_as_textual_cuts_it() -> None:
    row = Strip.blank(10)
    assert [list(part) for part in row.divide([3, 10])] == [list(part) for part in (row.crop(0, 3), row.crop(3, 10))]
    assert row.divide([10]) == [row]
    assert row.divide([10, 25]) == [row]
    assert row.divide([12]) == []
