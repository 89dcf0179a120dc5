"""Skills and command files in the popup while their files are still being looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from phoenix_tui.features.custom_commands import CustomCommands
from phoenix_tui.widgets import completer
from phoenix_tui.widgets.completer import CustomSource
from phoenix_tui.widgets.completion_popup import Completion
from tests.phoenix_tui.shell.conftest import OpenLive
from tests.phoenix_tui.writing.test_custom_completions import custom, one
from tests.support.waiting import poll


class SlowSource:
    """Finds a command once the test lets it."""

    def __init__(self, found: CustomCommands) -> None:
        self.found = found
        self.released = asyncio.Event()

    def now(self) -> CustomCommands | None:
        return self.found

    async def look(self) -> None:
        await self.released.wait()
        self.found = custom(one("fix-issue", "Fixes it."))

    async def values(self, line: str) -> Sequence[Completion]:
        return ()

    async def mentions(self, query: str) -> Sequence[Completion]:
        await self.released.wait()
        return ()


async def test_letters_typed_before_the_files_were_looked_at_leave_no_command_out(open_live: OpenLive) -> None:
    async with open_live() as shell:
        source = SlowSource(custom())
        shell.dock.completer.offer_custom(CustomSource(source.now, source.look, source.values))
        await shell.type("/fix")
        assert "Fixes it." not in shell.text
        source.released.set()
        await shell.until(lambda: "Fixes it." in shell.text)


async def test_letters_behind_tab_stay_behind_what_it_puts_in(open_live: OpenLive) -> None:
    async with open_live() as shell:
        source = SlowSource(custom(one("fix-issue", "Fixes it.")))
        shell.dock.completer.offer_custom(CustomSource(source.now, source.look, source.values))
        await shell.type("/fix")
        assert "Fixes it." in shell.text
        typing = asyncio.ensure_future(shell.pilot.press("tab", "1", "2"))
        assert not await poll(lambda: shell.composer.text != "/fix", 0.1)
        source.released.set()
        await typing
        await shell.until(lambda: shell.composer.text == "/fix-issue 12")


@pytest.mark.parametrize(
    ("typed", "becomes"),
    [
        pytest.param("/renam", "/rename es", id="a command on offer is taken"),
        pytest.param("/fix", "/fix-issue es", id="a command file on offer is taken"),
        pytest.param("/none", "/nonees", id="nothing is on offer"),
        pytest.param("@none", "@nonees", id="files are still listed"),
    ],
)
async def test_newer_completions_that_do_not_come_hold_neither_tab_nor_the_letters_behind_it(
    open_live: OpenLive, monkeypatch: pytest.MonkeyPatch, typed: str, becomes: str
) -> None:
    monkeypatch.setattr(completer, "SETTLES", 0.05)
    async with open_live() as shell:
        source = SlowSource(custom(one("fix-issue", "Fixes it.")))
        shell.dock.completer.offer_custom(CustomSource(source.now, source.look, source.values))
        shell.dock.completer.mentions = source.mentions
        await shell.type(typed)
        await shell.pilot.press("tab", "e", "s")
        await shell.until(lambda: shell.composer.text == becomes)


async def test_tab_puts_nothing_into_another_draft_that_came_into_view(open_live: OpenLive) -> None:
    async with open_live() as shell:
        source = SlowSource(custom(one("fix-issue", "Fixes it.")))
        shell.dock.completer.offer_custom(CustomSource(source.now, source.look, source.values))
        await shell.type("/fix")
        typing = asyncio.ensure_future(shell.pilot.press("tab"))
        assert not await poll(lambda: shell.composer.text != "/fix", 0.1)
        shell.composer.load("/another")
        source.released.set()
        await typing
        assert shell.composer.text == "/another"
