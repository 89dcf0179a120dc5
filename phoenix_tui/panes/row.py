"""Panes side by side: their sizes, the row that holds them, and their widgets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace
from textual import events
from textual.content import Content
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.layouts.vertical import VerticalLayout
from textual.reactive import reactive
from textual.widget import Widget

from phoenix_tui.features.composing import parse_draft
from phoenix_tui.panes.column import ConversationColumn
from phoenix_tui.text.labels import Glyph, Tone, label
from phoenix_tui.text.request_text import one_line
from phoenix_tui.widgets.bases import Still
from phoenix_tui.widgets.status_line import StatusLine, TitleRow
from phoenix_tui.widgets.transcript.view import TranscriptView
from phoenix_tui.workspace.conversation_view import ConversationView
from phoenix_tui.workspace.widgets import WorkspaceWidgets
from tools.clean import clean_line, reveal_line

if TYPE_CHECKING:
    from engine.conversation import Conversation

LEAST_WIDTH: Final = 60
"""Columns of a pane, its rule included: the least for one conversation (docs/decisions/looks.md)."""
LEAST_HEIGHT: Final = 12
"""Rows of a pane: title, seven of text, rule, composer, and a question of two rows at the least."""
FOOT_ROWS: Final = 2
"""Rule and state; the dock of the pane in focus begins with as many, so that nothing jumps."""


def regions(count: int, size: Size) -> list[Region] | None:
    """A region for each of `count` panes; None where only one of them has room."""
    columns = min(count, size.width // LEAST_WIDTH) or 1
    rows = -(-count // columns)
    columns = -(-count // rows)
    if count == 1 or size.height // rows < LEAST_HEIGHT:
        return None
    found: list[Region] = []
    for row in range(rows):
        in_row = min(columns, count - row * columns)
        top, bottom = row * size.height // rows, (row + 1) * size.height // rows
        edges = [place * size.width // in_row for place in range(in_row + 1)]
        found += [Region(left, top, right - left, bottom - top) for left, right in pairwise(edges)]
    return found


class PaneLayout(Layout):
    """Arranges the widgets of all panes, which are children of one container, around a single dock."""

    name = "panes"

    def __init__(self, row: PaneRow, parts: WorkspaceWidgets) -> None:
        self._row = row
        self._dock = parts.dock
        self._welcome = parts.welcome
        self._column = VerticalLayout()

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        """Place the displayed widgets; a pane without room has no place at all and is not painted."""
        parent.pre_layout(self)
        shown, row = set(children), self._row
        found = regions(len(row.panes), size)
        if found is None:
            tabs = _place_widget(row.tabs, Region(0, 0, size.width, 1))
            region = Region(0, 1, size.width, size.height - 1)
            return [tabs, *self._pane(parent, row.panes[row.focus], region, shown, focused=True)]
        placements: list[WidgetPlacement] = []
        for place, (pane, region) in enumerate(zip(row.panes, found, strict=True)):
            x, y, width, height = region
            if x:
                placements.append(_place_widget(pane.side, Region(x, y, 1, height)))
                region = Region(x + 1, y, width - 1, height)
            if y:
                placements.append(_place_widget(pane.top, Region(region.x, y, region.width, 1)))
                region = Region(region.x, y + 1, region.width, height - 1)
            placements += self._pane(parent, pane, region, shown, focused=place == row.focus)
        return placements

    def _pane(
        self, parent: Widget, pane: Pane, region: Region, shown: set[Widget], *, focused: bool
    ) -> list[WidgetPlacement]:
        x, y, width, height = region
        if focused:
            self._dock.make_room(height + 1)  # a screen has a status line too
            docked = self._column.arrange(parent, [self._dock], Size(width, height - 1))[0].region.height
        else:
            docked = FOOT_ROWS
        low = max(height - docked, 1)
        bottom = self._dock if focused else pane.foot
        placements = [
            _place_widget(pane.title, Region(x, y, width, 1)),
            _place_widget(bottom, Region(x, y + low, width, max(height - low, 1))),
        ]
        body = Region(x, y + 1, width, max(low - 1, 0))
        filling = (pane.transcript, self._welcome) if focused else (pane.transcript,)
        return placements + [_place_widget(widget, body) for widget in filling if widget in shown and body]


def _place_widget(widget: Widget, region: Region) -> WidgetPlacement:
    return WidgetPlacement(region, NULL_OFFSET, NULL_SPACING, widget)


GAP: Final = "  "


class PaneFoot(StatusLine):
    """State of the conversation of a pane without the dock, and its text that waits for the user."""

    DEFAULT_CSS = """
    PaneFoot { height: 2; border-top: solid $panel; }
    """
    note: reactive[str] = reactive("")
    """The open question or the draft, in one line."""

    def render(self) -> Content:
        now, width = self._label(), self.size.width
        self._drawn = self._format_state(now)
        state = Content.styled(self._drawn, now.glyph.tone.value).truncate(width, ellipsis=True)
        room = width - state.cell_length - len(GAP)
        if not self.note or room < len(GAP):
            return state
        note = Content(one_line(self.note))
        return Content.assemble(state, GAP, note.truncate(room, ellipsis=True).stylize(Tone.QUIET.value))


class SideRule(Still, Widget):
    """The line between a pane and the one left of it."""

    DEFAULT_CSS = "SideRule { width: 1; border-left: solid $panel; background: $background; }"


class TopRule(Still, Widget):
    """The line between a pane and the one above it."""

    DEFAULT_CSS = "TopRule { height: 1; border-top: solid $panel; background: $background; }"


class PaneTab(Struct, frozen=True):
    """One conversation of the row."""

    title: str
    glyph: Glyph


class PaneTabs(Still, Widget):
    """The panes by title where there is room for one alone; a click chooses."""

    DEFAULT_CSS = """
    PaneTabs { height: 1; padding: 0 1; background: $background; }
    """
    tabs: reactive[tuple[PaneTab, ...]] = reactive(())
    chosen: reactive[int] = reactive(0)

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._plain = plain

    def render(self) -> Content:
        return Content("").join(self._cells())

    def at(self, x: int) -> int | None:
        """The pane whose title is at a column of the row."""
        end = 1
        for place, cell in enumerate(self._cells()):
            end += cell.cell_length
            if x < end:
                return place
        return None

    def _cells(self) -> Sequence[Content]:
        tabs = self.tabs
        if not tabs:
            return ()
        width = max(self.size.width // len(tabs), 1)
        cells: list[Content] = []
        for place, tab in enumerate(tabs):
            chosen = place == self.chosen
            cell = Content.assemble(
                (f"{place + 1} ", Tone.QUIET.value),
                (f"{tab.glyph.mark(self._plain)} ", tab.glyph.tone.value),
                (clean_line(tab.title) or "New conversation", f"bold {Tone.YOU.value}" if chosen else Tone.QUIET.value),
            )
            cells.append(cell.truncate(width - len(GAP), ellipsis=True, pad=True) + GAP)
        return cells


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
        return self.foot, self.side, self.top

    @property
    def conversation(self) -> Conversation | None:
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
    def visible(self) -> Collection[str]:
        """Conversations of the panes without the dock; where one pane alone has room, none."""
        shown = [pane.conversation for pane in self.panes if pane.title.is_on_screen]
        return {conversation.id for conversation in shown if conversation is not None}

    async def insert(self, place: int) -> Pane:
        column = self._column
        pane = Pane(TitleRow(plain=self._plain), TranscriptView(), PaneFoot(plain=self._plain))
        pane.transcript.display = False
        with column.at_once():
            if len(self.panes) == 1:
                await column.mount(*self.panes[0].own, self.tabs)
                column.arranged = PaneLayout(self, self._parts)
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
        self.focus = place
        self._parts.title, self._parts.view = self.panes[place].title, self.panes[place].transcript
        self._lay_out()

    def _lay_out(self) -> None:
        self._parts.dock.refresh(layout=True)  # of a child: Textual keeps a container's own arrangement

    def find_clicked(self, event: events.Click) -> int | None:
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


def _note(conversation: Conversation | None) -> str:
    """Text that waits for the user in a pane: the question, else the draft."""
    if conversation is None:
        return ""
    if (question := conversation.question) is not None:
        return reveal_line(question.request.command or question.request.summary)
    return parse_draft(conversation.record.draft).text
