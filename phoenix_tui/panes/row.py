"""The widgets of all panes: their number, clicks, titles and feet."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace
from textual import events
from textual.widget import Widget

from engine.api.conversation import ConversationApi
from phoenix_tui.features.draft_codec import parsed
from phoenix_tui.panes.column import ConversationColumn
from phoenix_tui.panes.layout import PaneLayout, PaneWidgets, regions
from phoenix_tui.panes.widgets import PaneFoot, PaneTab, PaneTabs, SideRule, TopRule
from phoenix_tui.text.labels import label
from phoenix_tui.widgets.status_line import TitleRow
from phoenix_tui.widgets.transcript.view import TranscriptView
from phoenix_tui.workspace.conversation_view import ConversationView
from phoenix_tui.workspace.widgets import WorkspaceWidgets
from tools.clean import reveal_line

PANES_CLASS: Final = "-panes"
"""Set on the screen while there are panes: the list keeps to its narrow form."""


@dataclass(slots=True, eq=False)
class Pane:
    """The widgets of one conversation, and its subscription while another pane has the dock."""

    title: TitleRow
    transcript: TranscriptView
    foot: PaneFoot
    side: SideRule = field(default_factory=SideRule)
    top: TopRule = field(default_factory=TopRule)
    visible: ConversationView | None = None
    """View of the pane; None while it has the focus, and for an empty pane."""

    @property
    def own(self) -> tuple[Widget, ...]:
        """Widgets of the pane itself, which exist as long as there are panes."""
        return self.foot, self.side, self.top

    @property
    def conversation(self) -> ConversationApi | None:
        """Conversation shown while another pane has the dock."""
        return self.visible.conversation if self.visible is not None else None


class PaneRow:
    """The panes from left to right; a single one looks as if there were none."""

    def __init__(self, column: ConversationColumn, parts: WorkspaceWidgets, *, plain: bool) -> None:
        self._column = column
        self._parts = parts
        self._plain = plain
        self.panes = [Pane(parts.title, parts.transcript, PaneFoot(plain=plain))]
        self.focus = 0
        self.tabs = PaneTabs(plain=plain)

    @property
    def stands(self) -> tuple[PaneWidgets, ...]:
        """Widgets for the layout; the welcome is in the pane with the dock."""
        welcome = self._parts.welcome
        return tuple(
            PaneWidgets(
                pane.title,
                (pane.transcript, welcome) if place == self.focus else (pane.transcript,),
                *pane.own,
            )
            for place, pane in enumerate(self.panes)
        )

    @property
    def visible(self) -> Collection[str]:
        """Conversations of the panes without the dock; where one pane alone has room, none."""
        shown = [pane.conversation for pane in self.panes if pane.title.is_on_screen]
        return {conversation.id for conversation in shown if conversation is not None}

    async def insert(self, place: int) -> Pane:
        """Mount the widgets of one more pane."""
        column = self._column
        pane = Pane(TitleRow(plain=self._plain), TranscriptView(), PaneFoot(plain=self._plain))
        pane.transcript.display = False
        with column.at_once():
            if len(self.panes) == 1:
                await column.mount(*self.panes[0].own, self.tabs)
                column.arranged = PaneLayout(self, self._parts.dock)
                column.screen.add_class(PANES_CLASS)
            await column.mount(pane.title, pane.transcript, before=self._parts.welcome)
            await column.mount(*pane.own)
            self.panes.insert(place, pane)
            self.focus += place <= self.focus
            self._lay_out()
        return pane

    async def remove(self, pane: Pane) -> None:
        """Take the widgets of a pane without the dock away."""
        column, place = self._column, self.panes.index(pane)
        gone: list[Widget] = [pane.title, pane.transcript, *pane.own]
        with column.at_once():
            self.panes.pop(place)
            self.focus -= place < self.focus
            if len(self.panes) == 1:
                gone += [*self.panes[0].own, self.tabs]
                column.arranged = None
                column.screen.remove_class(PANES_CLASS)
                self._parts.dock.make_room(0)
                self._parts.title.heading = replace(self._parts.title.heading, glyph=None, aside=False, tabbed=False)
            await column.remove_children(gone)
            self._lay_out()

    def turn(self, place: int) -> None:
        """Give the dock to another pane."""
        self.focus = place
        self._parts.title, self._parts.view = self.panes[place].title, self.panes[place].transcript
        self._lay_out()

    def _lay_out(self) -> None:
        self._parts.dock.refresh(layout=True)  # of a child: Textual keeps a container's own arrangement

    def clicked(self, event: events.Click) -> int | None:
        """The pane without the dock in which a click was."""
        x, y = event.screen_x, event.screen_y
        if self.tabs.is_on_screen and self.tabs.region.contains(x, y):
            return self.tabs.at(x - self.tabs.region.x)
        for place, pane in enumerate(self.panes):
            widgets = (pane.title, pane.transcript, pane.foot)
            if place != self.focus and any(widget.is_on_screen and widget.region.contains(x, y) for widget in widgets):
                return place
        return None

    def say(self) -> None:
        """Update titles, feet and tabs by the states of the conversations."""
        if len(self.panes) == 1:
            return
        tabbed = regions(len(self.panes), self._column.size) is None
        tabs: list[PaneTab] = []
        for place, pane in enumerate(self.panes):
            focused = place == self.focus
            status = self._parts.status.status if focused else pane.foot.status
            glyph = label(status.state, status.details).glyph
            pane.title.heading = replace(pane.title.heading, glyph=glyph, aside=not focused, tabbed=tabbed)
            pane.foot.note = _note(pane.conversation)
            tabs.append(PaneTab(pane.title.heading.title, glyph))
        self.tabs.tabs, self.tabs.chosen = tuple(tabs), self.focus


def _note(conversation: ConversationApi | None) -> str:
    """Text that waits for the user in a pane: the question, else the draft."""
    if conversation is None:
        return ""
    if (question := conversation.question) is not None:
        return reveal_line(question.request.command or question.request.summary)
    return parsed(conversation.record.draft).text
