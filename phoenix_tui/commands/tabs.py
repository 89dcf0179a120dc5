"""A group of sheets on the screen: each tab is what its own command shows, below the row of their names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual.content import Content

from engine.executor.requests import ENGINE_ERRORS
from phoenix_tui.commands.bare import NoticeSheets
from phoenix_tui.commands.run import CommandContext, load_function
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.tabs import tabs_of, title_of
from phoenix_tui.modals.tabs import Tabs
from phoenix_tui.modals.text_sheet import TextSheet

if TYPE_CHECKING:
    from phoenix_tui.modals.base import PhoenixScreen, Result, Sheet
    from phoenix_tui.widgets.notices import Notifier


class TabSheets(NoticeSheets):
    """Sheets and notices of one tab. The first sheet has the row of tabs, and so has each with its title that follows;
    the others are opened from it, and lead back to it. A notice in place of a sheet is shown as one.
    """

    def __init__(self, screen: PhoenixScreen[None], tabs: Tabs, toasts: Notifier) -> None:
        super().__init__(screen, toasts)
        self._tabs = tabs
        self._own: tuple[type[object], str | None] | None = None
        """Class and title of the first sheet; None before it."""
        self._reading: asyncio.Future[None] | None = None
        self.goes_back = False
        """True when the tab is to be shown again: a sheet that was opened from it was left."""

    async def show(self, sheet: Sheet[Result]) -> Result | None:
        """Show a sheet and return its result; None after Esc, and where another tab is wanted."""
        is_own = self._join(sheet)
        result = await super().show(sheet)
        self.goes_back = not is_own and not result
        return result

    def read(self, heading: str, text: Content, hang: int = 0) -> None:
        """Show text to read."""
        self.open()
        sheet = TextSheet(heading, text, hang)
        self.goes_back = not self._join(sheet)
        self._reading = self._screen.app.push_screen(sheet, wait_for_dismiss=True)

    async def wait_until_left(self, title: str) -> None:
        """Wait until the tab is left; where no sheet came, its notices are one."""
        if not self.is_open:
            self.read(title, Content(self.take_notices()))
        if self._reading is not None:
            await self._reading

    def _join(self, sheet: Sheet[Result]) -> bool:
        """Give the row of tabs to a sheet of the tab itself."""
        self._own = self._own or (type(sheet), sheet.title)
        is_own = (type(sheet), sheet.title) == self._own and self._tabs.wanted is None
        if is_own:
            self._tabs.join(sheet)
        return is_own


async def show_tabs(ctx: CommandContext, group: str, first: str) -> None:
    """Show the tab `first`, empty for the first of all, and those that are wanted after it, until one is closed."""
    tabs, front = tabs_of(group), ScreenFrontEnd(ctx)
    names = [tab.name for tab in tabs]
    row = Tabs([tab.tab for tab in tabs], names.index(first or names[0]))
    try:
        while True:
            tab, row.names = tabs[row.place], [title_of(one, front) for one in tabs]
            sheets = TabSheets(ctx.screen, row, ctx.toasts)
            inside = replace(ctx, sheets=sheets, toasts=sheets)
            try:
                await (await load_function(tab))(inside, "")
            except ENGINE_ERRORS as error:
                inside.tell(str(error), bad=True)
            await sheets.wait_until_left(tab.tab)
            if row.wanted is None and not sheets.goes_back:
                return
            row.go_on(row.place if row.wanted is None else row.wanted)
    finally:
        row.paint()
