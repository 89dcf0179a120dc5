"""A widget that is being removed loses its children first: what looks for them then is no fault of Phoenix."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.find_sheet import FindSheet
from tests.support.fake_engine import FakeEngine
from tests.support.waiting import poll


class Lingering(Widget):
    """Delays the removal of its screen until a test lets it go."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def on_unmount(self) -> None:
        await self.let.wait()


async def open_find_bar(shell: Any) -> FindSheet:
    await shell.pilot.press("ctrl+f")
    await shell.until(lambda: isinstance(shell.top, FindSheet) and shell.top.query("#heading"))
    sheet = shell.top
    assert isinstance(sheet, FindSheet)
    return sheet


async def half_removed(shell: Any, sheet: Sheet[Any]) -> Lingering:
    """Dismiss the sheet, and stop where its widgets have gone and it has not."""
    lingering = Lingering()
    await sheet.mount(lingering)
    sheet.dismiss()
    assert await poll(lambda: not sheet.query("#heading"))
    return lingering


async def gone(shell: Any, sheet: Sheet[Any]) -> bool:
    return await poll(lambda: not sheet.is_attached and not sheet.is_running) and isinstance(shell.top, Screen)


async def test_a_worker_that_draws_on_a_sheet_half_removed_ends_nothing(open_shell: Any, engine: FakeEngine) -> None:
    answered = asyncio.Event()

    async def late() -> None:
        await answered.wait()
        sheet.query_one("#heading", Static)

    async with open_shell() as shell:
        await shell.open(engine.seed("one", messages=4))
        sheet = await open_find_bar(shell)
        worker = sheet.run_worker(late())
        lingering = await half_removed(shell, sheet)
        answered.set()
        assert await poll(lambda: worker.is_finished)
        assert isinstance(worker.error, NoMatches)
        lingering.let.set()
        assert await gone(shell, sheet)
        await shell.type("still here")
        await shell.until(lambda: shell.composer.text == "still here")
        assert (shell.app._exception, shell.app.shutdown.crash_note) == (None, "")


async def test_the_find_bar_draws_no_answer_that_comes_while_it_leaves(open_shell: Any, engine: FakeEngine) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def find(*_: object) -> tuple[()]:
        asked.set()
        await answered.wait()
        return ()

    async with open_shell() as shell:
        await shell.open(engine.seed("one", messages=4))
        sheet = await open_find_bar(shell)
        sheet._library = type("Slow", (), {"find": staticmethod(find)})()
        await shell.type("x")
        await asked.wait()
        worker = next(one for one in shell.app.workers if one.group == "find" and not one.is_finished)
        lingering = await half_removed(shell, sheet)
        answered.set()
        assert await poll(lambda: worker.is_finished)
        assert worker.error is None
        lingering.let.set()
        assert await gone(shell, sheet)


async def test_the_screen_outlives_what_a_removed_widget_asked_it_to_call(open_shell: Any) -> None:
    class Removed(Static):
        def look(self) -> None:
            called.set()
            self.query_one("#nothing")

    called = asyncio.Event()
    async with open_shell() as shell:
        widget = Removed()
        await shell.screen.mount(widget)
        await widget.remove()
        shell.screen.call_after_refresh(widget.look)
        shell.screen.refresh()
        await asyncio.wait_for(called.wait(), 10)
        await shell.type("still here")
        await shell.until(lambda: shell.composer.text == "still here")
        assert (shell.app._exception, shell.app.shutdown.crash_note) == (None, "")


async def in_a_worker(screen: Any, look: Callable[[], Awaitable[None]]) -> None:
    screen.run_worker(look())


async def after_a_refresh(screen: Any, look: Callable[[], Awaitable[None]]) -> None:
    screen.call_after_refresh(look)
    screen.refresh()


@pytest.mark.parametrize("run", [in_a_worker, after_a_refresh])
async def test_the_same_fault_of_a_screen_that_stays_is_a_crash(open_shell: Any, run: Any) -> None:
    async def look() -> None:
        shell.screen.query_one("#nothing")

    with pytest.raises(Exception, match="#nothing"):
        async with open_shell() as shell:
            await run(shell.screen, look)
            assert await poll(lambda: shell.app.shutdown.crash_note)
    assert "#nothing" not in shell.app.shutdown.crash_note
