"""The panes of a screen: who stands where, who has the dock, and how that changes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from textual import events
from textual.widget import Widget

from phoenix_tui.labels import label
from phoenix_tui.panes.column import ConversationColumn
from phoenix_tui.panes.layout import PaneLayout, Stand
from phoenix_tui.panes.memory import Panes, remember
from phoenix_tui.panes.widgets import PaneFoot, PaneTabs, SideRule, Tab, TopRule
from phoenix_tui.screens.desk import Desk
from phoenix_tui.screens.parts import Parts, Teller
from phoenix_tui.screens.visible import Visible
from phoenix_tui.surface import ConversationSurface
from phoenix_tui.unsent import parsed
from phoenix_tui.widgets.status_line import Status
from phoenix_tui.widgets.title_row import TitleRow
from phoenix_tui.widgets.transcript.view import TranscriptView

MOST: Final = 4
"""Panes. A fifth has no room at 200x60, nobody reads five streams, and each may cost 16 frames a second."""


@dataclass(slots=True, eq=False)
class Pane:
    """The widgets of one conversation, and what follows it while another pane has the dock."""

    title: TitleRow
    transcript: TranscriptView
    foot: PaneFoot
    side: SideRule = field(default_factory=SideRule)
    top: TopRule = field(default_factory=TopRule)
    visible: Visible | None = None
    """None while the desk follows it, and for an empty pane."""

    @property
    def own(self) -> tuple[Widget, ...]:
        """What it has for as long as there are panes."""
        return self.foot, self.side, self.top


class Split:
    """Two to four panes; exactly one has the dock. Changing the focus stops no run (`screens.desk.Beside`)."""

    def __init__(self, column: ConversationColumn, parts: Parts, desk: Desk, tell: Teller) -> None:
        self._column = column
        self._parts = parts
        self._desk = desk
        self._tell = tell
        self._plain = desk.launch.plain
        self._panes = [Pane(parts.title, parts.transcript, self._foot())]
        self._turning = False
        """Whether the focus goes to another pane: what is followed is then kept."""
        self._one_at_a_time = asyncio.Lock()
        self.focus = 0
        self.tabs = PaneTabs(plain=self._plain)

    @property
    def stands(self) -> tuple[Stand, ...]:
        """For the layout."""
        welcome = self._parts.welcome
        return tuple(
            Stand(
                pane.title,
                (pane.transcript, welcome) if place == self.focus else (pane.transcript,),
                *pane.own,
            )
            for place, pane in enumerate(self._panes)
        )

    @property
    def count(self) -> int:
        """How many panes there are."""
        return len(self._panes)

    @property
    def ids(self) -> tuple[str, ...]:
        """The conversations from left to right; an empty pane has none."""
        return tuple(conversation.id for conversation in map(self._in_pane, range(self.count)) if conversation)

    async def add(self, conversation: ConversationSurface | None) -> None:
        """One more pane right of the one in focus, which gets the dock; empty without a conversation."""
        async with self._one_at_a_time:
            if self.count == MOST:
                self._tell(f"There are {MOST} panes already: /close puts one away.", bad=True)
                return
            await self._insert(self.focus + 1)
            await self._turn(self.focus + 1, conversation)

    async def add_behind(self, conversation: ConversationSurface, place: int) -> None:
        """One more pane at `place`, which does not get the dock."""
        async with self._one_at_a_time:
            pane = await self._insert(place)
            pane.visible = Visible(conversation, self._of(pane), self._tell)
            pane.visible.step_back(pane.foot)
            self._watch(pane.visible)
            await pane.visible.start()
            self._arrange()

    async def go(self, place: int) -> None:
        """Give the dock to this pane."""
        async with self._one_at_a_time:
            if place != self.focus and place < self.count:
                await self._turn(place, self._in_pane(place))

    async def step(self, by: int) -> None:
        """Give the dock to the next pane, or to the one before."""
        await self.go((self.focus + by) % self.count)

    async def close(self) -> None:
        """Put the pane in focus away; its conversation runs on."""
        async with self._one_at_a_time:
            gone = self.focus
            place = gone + 1 if gone + 1 < self.count else gone - 1
            await self._turn(place, self._in_pane(place))
            await self._remove(self._panes[gone])

    async def bring(self, conversation_id: str) -> bool:
        """Go to the pane that shows this conversation; False where none does."""
        for place in range(self.count):
            shown = self._in_pane(place)
            if place != self.focus and shown is not None and shown.id == conversation_id:
                await self.go(place)
                return True
        return False

    def keeps(self, visible: Visible) -> bool:
        """Take over what the pane in focus follows, where the focus goes elsewhere."""
        if self._turning:
            pane = self._panes[self.focus]
            pane.visible = visible
            visible.step_back(pane.foot)
        return self._turning

    def waiting(self, conversation: ConversationSurface) -> Visible | None:
        """What follows this conversation in the pane that has the focus now."""
        pane = self._panes[self.focus]
        visible, pane.visible = pane.visible, None
        if visible is None or visible.conversation is not conversation:
            visible = Visible(conversation, self._parts, self._tell)
            self._watch(visible)
        else:
            visible.step_forward(self._parts)
        return visible

    def pressed(self, event: events.Click) -> None:
        """A click into another pane gives it the dock."""
        x, y = event.screen_x, event.screen_y
        for place, pane in enumerate(self._panes):
            widgets = (pane.title, pane.transcript, pane.foot)
            if place != self.focus and any(widget.is_on_screen and widget.region.contains(x, y) for widget in widgets):
                self._column.run_worker(self.go(place), group="panes")
                return

    def _foot(self) -> PaneFoot:
        return PaneFoot(plain=self._plain)

    def _of(self, pane: Pane) -> Parts:
        return replace(self._parts, title=pane.title, transcript=pane.transcript)

    def _in_pane(self, place: int) -> ConversationSurface | None:
        if place == self.focus:
            return self._desk.conversation
        visible = self._panes[place].visible
        return visible.conversation if visible is not None else None

    async def _insert(self, place: int) -> Pane:
        """Mount the widgets of a pane; with the first further one the layout begins."""
        parts, column = self._parts, self._column
        pane = Pane(TitleRow(plain=self._plain), TranscriptView(), self._foot())
        pane.transcript.display = False
        with column.app.batch_update():
            if self.count == 1:
                await column.mount(*self._panes[0].own, self.tabs)
            await column.mount(pane.title, pane.transcript, before=parts.welcome)
            await column.mount(*pane.own)
            self._panes.insert(place, pane)
            if place <= self.focus:
                self.focus += 1
            if self.count == 2:
                self._begin()
        return pane

    def _begin(self) -> None:
        desk = self._desk
        desk.beside = self
        self._column.pressed = self.pressed
        self._column.arranged = PaneLayout(self, self._parts.dock)
        if desk.visible is not None:
            self._watch(desk.visible)

    def _end(self) -> None:
        self._desk.beside = None
        self._column.pressed = None
        self._column.arranged = None
        self._parts.dock.make_room(0)
        title = self._panes[0].title
        title.heading = replace(title.heading, glyph=None, aside=False)

    async def _remove(self, pane: Pane) -> None:
        place = self._panes.index(pane)
        if pane.visible is not None:
            pane.visible.noticed = _nothing
            pane.visible.stop()
        with self._column.app.batch_update():
            self._panes.pop(place)
            if place < self.focus:
                self.focus -= 1
            gone: list[Widget] = [pane.title, pane.transcript, *pane.own]
            if self.count == 1:
                self._end()
                gone += [*self._panes[0].own, self.tabs]
            await self._column.remove_children(gone)
        self._arrange()

    async def _turn(self, place: int, conversation: ConversationSurface | None) -> None:
        """Give the dock to a pane, and show a conversation in it, or none."""
        desk, parts = self._desk, self._parts
        before = self._panes[self.focus]
        before.foot.status = Status()
        with self._column.app.batch_update():
            self._turning = True
            try:
                await desk.put_away()
            finally:
                self._turning = False
            self.focus = place
            parts.title, parts.transcript = self._panes[place].title, self._panes[place].transcript
            if conversation is not None:
                await desk.show(conversation)
            else:
                await desk.begin()
            self._arrange()

    def _watch(self, visible: Visible) -> None:
        visible.noticed = self._notice

    def _notice(self) -> None:
        """Something happened in a pane: its title, its foot and the tabs say so."""
        self._say()
        for pane in self._panes:
            record = pane.visible.conversation.record if pane.visible is not None else None
            if record is not None and (record.deleted or record.archived):
                self._column.run_worker(self._drop(pane), group="panes")

    async def _drop(self, pane: Pane) -> None:
        async with self._one_at_a_time:
            if pane in self._panes and self._panes[self.focus] is not pane:
                await self._remove(pane)

    def _arrange(self) -> None:
        self._column.refresh(layout=True)
        self._say()
        self._column.run_worker(self._remember(), group="panes")

    def _say(self) -> None:
        if self.count == 1:
            return
        tabs: list[Tab] = []
        for place, pane in enumerate(self._panes):
            focused = place == self.focus
            status = self._parts.status.status if focused else pane.foot.status
            glyph = label(status.state, status.moment).glyph
            pane.title.heading = replace(pane.title.heading, glyph=glyph, aside=not focused)
            pane.foot.note = _note(pane.visible.conversation) if pane.visible is not None else ""
            tabs.append(Tab(pane.title.heading.title, glyph))
        self.tabs.tabs, self.tabs.chosen = tuple(tabs), self.focus

    async def _remember(self) -> None:
        launch, ids = self._desk.launch, self.ids
        current = self._desk.conversation
        focus = ids.index(current.id) if current is not None and current.id in ids else 0
        try:
            await asyncio.to_thread(remember, launch.state_folder, Path(launch.cwd), Panes(ids, focus))
        except OSError as error:
            self._tell(f"The panes cannot be remembered: {error.strerror}.", bad=True)


def _note(conversation: ConversationSurface) -> str:
    """What waits for the user in a pane, in one line."""
    question = conversation.question
    if question is not None:
        return question.request.summary
    return parsed(conversation.record.draft).text


def _nothing() -> None:
    """The pane is gone."""
