"""Panes in one screen: the pane with the dock, and its changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual import events
from textual.widget import Widget

from engine.ports import ConversationChanges
from phoenix_tui.panes.column import ConversationColumn, PaneEvents
from phoenix_tui.panes.row import Pane, PaneRow
from phoenix_tui.panes.saved_panes import Panes, remember
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.widgets.status_line import StatusValues
from phoenix_tui.workspace.active_conversation import ActiveConversation, PaneHost
from phoenix_tui.workspace.conversation_view import ConversationView
from phoenix_tui.workspace.widgets import WorkspaceWidgets

if TYPE_CHECKING:
    from engine.conversation import Conversation

MOST: Final = 4
"""Largest number of panes. A fifth has no room at 200x60, and each may cost 16 frames a second."""


class Split(PaneHost, PaneEvents):
    """Two to four panes; exactly one has the dock. Changing the focus stops no run (`active_conversation.PaneHost`)."""

    def __init__(
        self, column: ConversationColumn, parts: WorkspaceWidgets, active: ActiveConversation, toasts: Notifier
    ) -> None:
        self._column = column
        self._parts = parts
        self._active = active
        self._toasts = toasts
        self.row = PaneRow(column, parts, plain=active.launch.plain)
        self._turning = False
        """True while the focus moves to another pane: subscriptions are then kept."""
        self._one_write_at_a_time = asyncio.Lock()

    @property
    def count(self) -> int:
        return len(self.row.panes)

    @property
    def shown(self) -> list[Conversation | None]:
        focus = self.row.focus
        return [
            self._active.conversation if place == focus else pane.conversation
            for place, pane in enumerate(self.row.panes)
        ]

    async def add(self, conversation: Conversation | None) -> None:
        """One more pane right of the one in focus, which gets the dock; empty without a conversation."""
        async with self._active.leaving():
            if self.count == MOST:
                self._toasts.tell(f"{MOST} panes are already open; /close closes one.", bad=True)
                return
            place = self.row.focus + 1
            await self._insert(place)
            await self._turn(place, conversation)

    async def add_behind(self, conversation: Conversation, place: int) -> None:
        """One more pane at `place`, which does not get the dock."""
        async with self._active.changing:
            pane = await self._insert(place)
            parts = replace(self._parts, title=pane.title, view=pane.transcript)
            pane.visible = visible = ConversationView(conversation, parts, self._toasts)
            visible.step_back(pane.foot)
            visible.panes = self
            await visible.start()
            await conversation.change(ConversationChanges(unread=False))
            self._show_change()

    async def go(self, place: int) -> None:
        async with self._active.leaving():
            if place != self.row.focus and place < self.count:
                await self._turn(place, self.shown[place])

    async def step(self, by: int) -> None:
        async with self._active.leaving():
            await self.go((self.row.focus + by) % self.count)

    async def close(self) -> None:
        async with self._active.leaving():
            gone = self.row.panes[self.row.focus]
            place = self.row.focus + 1 if self.row.focus + 1 < self.count else self.row.focus - 1
            await self._turn(place, self.shown[place])
            await self._remove(gone)

    async def bring(self, conversation_id: str) -> bool:
        """Go to the pane that shows this conversation; False where none does."""
        async with self._active.leaving():
            for place, one in enumerate(self.shown):
                if place != self.row.focus and one is not None and one.id == conversation_id:
                    await self.go(place)
                    return True
        return False

    def keeps(self, visible: ConversationView) -> bool:
        if self._turning:
            pane = self.row.panes[self.row.focus]
            pane.visible = visible
            visible.step_back(pane.foot)
        return self._turning

    def waiting(self, conversation: Conversation) -> ConversationView | None:
        """The subscription to this conversation in the pane that has the focus now."""
        pane = self.row.panes[self.row.focus]
        visible, pane.visible = pane.visible, None
        if visible is None or visible.conversation is not conversation:
            visible = ConversationView(conversation, self._parts, self._toasts)
            visible.panes = self
        self._column.call_later(self._show_change)  # the other conversation of this pane must be remembered too
        return visible

    def conversation_of(self, view: Widget, current: Conversation | None) -> Conversation | None:
        shown = zip(self.row.panes, self.shown, strict=True)
        return next((one for pane, one in shown if pane.transcript is view), None)

    async def _insert(self, place: int) -> Pane:
        """Insert a pane; the conversation in view shares the screen once there is a second one."""
        pane = await self.row.insert(place)
        self._active.beside, self._column.panes, self._active.index.beside = self, self, lambda: self.row.visible
        if self._active.visible is not None:
            self._active.visible.panes = self
        return pane

    async def _remove(self, pane: Pane) -> None:
        if pane.visible is not None:
            pane.visible.panes = PaneEvents()
            pane.visible.stop()
        await self.row.remove(pane)
        if self.count == 1:
            self._active.beside, self._column.panes, self._active.index.beside = PaneHost(), PaneEvents(), tuple
        self._show_change()

    async def _turn(self, place: int, conversation: Conversation | None) -> None:
        """Give the dock to a pane, and show a conversation in it, or none."""
        active, row = self._active, self.row
        row.panes[row.focus].foot.status = StatusValues()
        with self._column.at_once():
            self._turning = True
            try:
                await active.put_away()
            finally:
                self._turning = False
            row.turn(place)
            try:
                await (active.show(conversation) if conversation is not None else active.begin())
            finally:
                self._show_change()

    def focus_clicked(self, event: events.Click) -> None:
        place = self.row.find_clicked(event)
        if place is not None:
            self._column.run_worker(self.go(place), group="panes")

    def follow_resize(self) -> None:
        """Update after a resize: tabs may appear, and other panes become visible."""
        self.row.say()
        self._active.index.recount()

    def show_state(self) -> None:
        """Update title, foot and tabs after an event in a pane; a pane of a removed conversation closes."""
        self.row.say()
        for pane in self.row.panes:
            record = pane.conversation.record if pane.conversation is not None else None
            if record is not None and (record.deleted or record.archived):
                self._column.run_worker(self._drop(pane), group="panes")

    async def _drop(self, pane: Pane) -> None:
        async with self._active.changing:
            if pane in self.row.panes and self.row.panes[self.row.focus] is not pane:
                await self._remove(pane)

    def _show_change(self) -> None:
        self.row.say()
        self._column.call_after_refresh(self._active.index.recount)  # the visible panes are known after drawing
        self._column.run_worker(self._remember(), group="panes")

    async def _remember(self) -> None:
        launch = self._active.launch
        async with self._one_write_at_a_time:
            ids, current = tuple(one.id for one in self.shown if one is not None), self._active.conversation
            focus = ids.index(current.id) if current is not None else 0
            try:
                await asyncio.to_thread(remember, launch.state_folder, launch.cwd, Panes(ids, focus))
            except OSError as error:
                self._toasts.tell(f"The pane layout cannot be saved: {error.strerror}.", bad=True)
