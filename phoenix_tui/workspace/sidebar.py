"""The list of conversations: beside the one in view, or over it on a narrow screen."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from phoenix_tui.keys.active_keys import BACK, CLOSES
from phoenix_tui.lifecycle.threads import load
from phoenix_tui.widgets.bases import run_latest
from phoenix_tui.widgets.conversation_list import EMPTY_LIST, ZOOMED, ConversationList
from phoenix_tui.widgets.status_line import LIST_FROM

if TYPE_CHECKING:
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.widgets.list_preview import ListPreview
    from phoenix_tui.workspace.startup import Startup
    from phoenix_tui.workspace.widgets import WorkspaceWidgets

WIDE_FROM: Final = 160
LIST_WIDTH, WIDE_LIST = 29, 31
"""Widths of the list in `styles/workspace.tcss`."""
NARROW: Final = "-narrow"
BREAKPOINTS: Final = [(0, NARROW), (LIST_FROM, "-with-list"), (WIDE_FROM, "-wide")]
"""Columns from which the screen has a class."""
OVER: Final = "-list-over"
PREVIEW_FROM: Final = 120
"""Columns of the screen from which half of the zoomed list is a preview."""
SETTLED: Final = 0.08
"""Seconds for which a row stays chosen before its conversation is read: a held key passes many rows."""
HALVED: Final = "-halved"
"""Class of a zoomed list beside its preview."""


class Sidebar:
    """Gives the list room and the keys, and both back."""

    def __init__(
        self, screen: PhoenixScreen[None], rows: ConversationList, parts: WorkspaceWidgets, ready: Startup
    ) -> None:
        self._screen = screen
        self.rows = rows
        self._parts = parts
        self._ready = ready
        self._panel: ListPreview | None = None
        """Preview of the chosen conversation; made with the first one."""

    def go(self, number: int) -> None:
        order = self.rows.model.order
        if number <= len(order):
            if self.rows.has_focus:
                self.leave()
            self._ready.then(lambda ctx: ctx.active.open(order[number - 1]))

    def toggle(self) -> None:
        if self.rows.has_focus:
            self.leave()
            return
        narrow = self._screen.has_class(NARROW)
        self.rows.remove_class(EMPTY_LIST)
        self._screen.set_class(narrow, OVER)
        self._screen.show_esc_hint(CLOSES if narrow else BACK)
        self._screen.set_focus(self.rows)
        self._ready.then(lambda ctx: ctx.active.index.reload())  # another Phoenix may have been at work

    def leave(self) -> None:
        """Give the focus back to the composer; the list covers nothing any more."""
        self._screen.remove_class(OVER)
        self._screen.show_esc_hint("")
        self._screen.set_focus(self._parts.dock.composer)

    @property
    def is_over(self) -> bool:
        return self._screen.has_class(OVER) and self._screen.has_class(NARROW)

    @property
    def esc_hint(self) -> str:
        """Action of Esc on it; empty when it hides nothing and has no focus."""
        return CLOSES if self.is_over else BACK if self.rows.has_focus else ""

    def follow_resize(self) -> None:
        """Update the action of Esc after a resize: the list may now be beside the conversation."""
        # A screen under a sheet is current too, but there Esc closes the sheet.
        is_open = self._screen.app.screen is self._screen and not self._parts.dock.composer.keys.completing
        if is_open and self._parts.status.status.esc_hint == CLOSES:
            self._screen.show_esc_hint(self.esc_hint)
        if self.rows.has_class(ZOOMED):
            self.preview(self.rows.model.chosen)

    def preview(self, conversation_id: str) -> None:
        """Show the newest messages of a conversation beside the zoomed list; empty: end that."""
        shown = bool(conversation_id) and self._screen.app.size.width >= PREVIEW_FROM
        self.rows.set_class(shown, HALVED)
        if self._panel is not None:
            self._panel.display = shown
        run_latest(self._screen, partial(self._read, conversation_id if shown else ""), "preview")

    async def _read(self, conversation_id: str) -> None:
        ctx = self._ready.ctx_in_use
        if not conversation_id or ctx is None:
            return
        await asyncio.sleep(SETTLED)
        module = await load("phoenix_tui.widgets.list_preview")
        messages = await ctx.active.services.engine.bulk.newest(conversation_id, module.ENOUGH)
        summary = ctx.active.index.summary(conversation_id)
        if summary is None:
            return
        if self._panel is None:
            self._panel = module.ListPreview()
            await self._screen.query_one("#body").mount(self._panel, after=self.rows)
        self._panel.show(summary, messages)

    def width(self, columns: int) -> int:
        """Cells that it takes beside the conversation on a screen that wide."""
        if columns < LIST_FROM or self.rows.has_class(ZOOMED) or self.rows.has_class(EMPTY_LIST):
            return 0
        return LIST_WIDTH if columns < WIDE_FROM else WIDE_LIST
