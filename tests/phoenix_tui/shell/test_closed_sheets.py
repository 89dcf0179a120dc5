"""A sheet that was closed leaves nothing: neither what it painted nor its widgets."""

from __future__ import annotations

import gc
import weakref

import pytest
from textual import events

from phoenix_tui.modals.opening import KILOBYTES
from phoenix_tui.modals.rows_sheet import HelpSheet
from phoenix_tui.modals.text_sheet import LineSheet
from tests.phoenix_tui.shell.conftest import OpenLive
from tests.support.shell import ScreenDriver
from tools import shedding


async def opened_and_closed(shell: ScreenDriver) -> list[weakref.ref[object]]:
    """References to the rows of a sheet that was painted, and to the sheet, last."""
    await shell.pilot.press("f1")
    await shell.until(lambda: shell.top is not shell.screen)
    sheet = shell.top
    held: list[weakref.ref[object]] = [weakref.ref(one._styles_cache) for one in (sheet, *sheet.query("*"))]
    held.append(weakref.ref(sheet))
    del sheet
    await shell.pilot.press("escape")
    await shell.until(lambda: shell.top is shell.screen)
    return held


async def test_a_closed_sheet_and_all_that_it_painted_go(open_live: OpenLive) -> None:
    async with open_live(paints=True) as shell:
        held = await opened_and_closed(shell)
        await opened_and_closed(shell)  # the newest one is still known as the last that had the focus
        assert len(held) > 3
        await shell.until(lambda: gc.collect() >= 0 and not any(one() is not None for one in held))


@pytest.mark.parametrize("way", [("f1",), ("question_mark",), ("slash", *"help", "enter")])
async def test_enter_closes_the_help_however_often_it_is_pressed(open_live: OpenLive, way: tuple[str, ...]) -> None:
    async with open_live() as shell:
        for _ in range(2):
            await shell.pilot.press(*way)
            await shell.until(lambda: isinstance(shell.top, HelpSheet))
            for _ in range(3):
                shell.app.post_message(events.Key("enter", "\r"))
            await shell.until(lambda: shell.top is shell.screen)


async def test_a_sheet_is_closed_once_and_takes_those_above_it_along(open_live: OpenLive) -> None:
    async with open_live() as shell:
        below, above = LineSheet("below"), LineSheet("above")
        answers: list[tuple[str, str | None]] = []
        shell.app.push_screen(below, lambda text: answers.append(("below", text)))
        shell.app.push_screen(above, lambda text: answers.append(("above", text)))
        await shell.until(lambda: shell.top is above)
        below.dismiss("done")
        below.dismiss("again")
        above.dismiss("late")
        await shell.until(lambda: shell.top is shell.screen and len(answers) == 2)
        await shell.type("still here")
        assert shell.composer.text == "still here"
        assert answers == [("above", None), ("below", "done")]


async def test_what_refers_to_itself_is_collected_after_some_sheets(
    open_live: OpenLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shedding, "DUE_AT", 2 * KILOBYTES)
    async with open_live(paints=True) as shell:
        gc.disable()
        try:
            sheets = [(await opened_and_closed(shell))[-1] for _ in range(2)]
            await shell.until(lambda: not any(one() is not None for one in sheets[:-1]))
        finally:
            gc.enable()
