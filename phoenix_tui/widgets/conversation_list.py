"""The list of conversations: one widget that draws its own lines."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from engine.machine.states import is_busy
from engine.records import ConversationSummary
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.labels import Tone, money
from phoenix_tui.still import Still
from phoenix_tui.widgets.blocks.rows import count_text
from phoenix_tui.widgets.roster import Group, Here, Live, Row, rows

TONE_CLASSES: Final[dict[Tone, str]] = {tone: f"list--{tone.name.lower().replace('_', '-')}" for tone in Tone}
MOST_RIGHT: Final = 16
"""Cells that state and age may take."""
Line: TypeAlias = "Row | Group | str"


class ConversationList(Still, Widget):
    """Every conversation with its state; groups by need. Posts what was chosen; knows no engine."""

    can_focus = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {*TONE_CLASSES.values(), "list--current"}
    DEFAULT_CSS = """
    ConversationList {
        background: $background; color: $foreground;
        & .list--you { color: $accent; }
        & .list--work { color: $primary; }
        & .list--needs-you { color: $warning; }
        & .list--good { color: $success; }
        & .list--bad { color: $error; }
        & .list--quiet { color: $text-muted; }
        & .list--current { text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.LIST)
    HELP = "All conversations. Enter opens, Ctrl+R renames, a archives, d deletes, u brings back."

    class Opened(Message):
        """The user wants this conversation."""

        def __init__(self, conversation_id: str) -> None:
            super().__init__()
            self.conversation_id = conversation_id

    class Wanted(Message):
        """The user wants something done to a conversation: `rename`, `archive`, `delete` or `restore`."""

        def __init__(self, action: str, conversation_id: str) -> None:
            super().__init__()
            self.action = action
            self.conversation_id = conversation_id

    def __init__(
        self,
        *,
        plain: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._plain = plain
        self._monotonic, self._wall = monotonic, wall
        self._summaries: Sequence[ConversationSummary] = ()
        self._live: Mapping[str, Live] = {}
        self._lines: list[Line] = []
        self._current = ""
        self._cursor = 0
        self._top = 0
        self._timer: Timer | None = None

    @property
    def order(self) -> list[str]:
        """Conversation ids from top to bottom, for Alt+1 to Alt+9."""
        return [line.id for line in self._lines if isinstance(line, Row)]

    def show(self, summaries: Sequence[ConversationSummary], live: Mapping[str, Live], current: str) -> None:
        """Show these; `current` is the one on the screen."""
        self._summaries, self._live = summaries, live
        if current != self._current:
            self._current = current
            self.refresh()
        chosen = self.chosen if self.has_focus else current
        self._arrange()
        self._put_cursor(chosen or current)
        self._keep_time()

    @property
    def chosen(self) -> str:
        """The id under the cursor; empty when there is none."""
        return _id_of(self._lines[self._cursor]) if self._cursor < len(self._lines) else ""

    def _arrange(self) -> None:
        made = rows(self._summaries, self._live, Here(self._wall(), self._monotonic(), os.getpid()))
        lines: list[Line] = []
        group: Group | None = None
        for row in made:
            if row.group is not group:
                group = row.group
                lines.append(group)
            lines.append(row)
        costs = [summary.totals.cost_usd for summary in self._summaries]
        total = money(sum(cost for cost in costs if cost))
        count = count_text(len(made), "conversation")
        lines += ["", " · ".join(part for part in (count, total) if part)] if made else ["Type to start one"]
        changed = [place for place, line in enumerate(lines) if place >= len(self._lines) or line != self._lines[place]]
        if len(lines) < len(self._lines):
            self.refresh()
        self._lines = lines
        self._repaint(changed)

    def _repaint(self, places: Sequence[int]) -> None:
        """A list of many rows in which a clock moves costs one row."""
        rows = [place - self._top for place in places if 0 <= place - self._top < self.size.height]
        if rows:
            self.refresh(*(Region(0, row, self.size.width, 1) for row in rows))

    def _put_cursor(self, conversation_id: str) -> None:
        places = [place for place, line in enumerate(self._lines) if isinstance(line, Row)]
        wanted = [place for place in places if _id_of(self._lines[place]) == conversation_id]
        self._move_to((wanted or places or [0])[0])

    def _move_to(self, place: int) -> None:
        before, self._cursor = (self._top, self._cursor), place
        height = max(self.size.height, 1)
        self._top = max(min(self._top, max(place - 1, 0)), place - height + 2, 0)
        if before != (self._top, place):
            self.refresh()

    def _keep_time(self) -> None:
        wanted = self.display and self.is_on_screen and any(is_busy(live.state) for live in self._live.values())
        if wanted and self._timer is None:
            self._timer = self.set_interval(1.0, self._tick)
        elif not wanted and self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _tick(self) -> None:
        chosen = self.chosen
        self._arrange()
        self._put_cursor(chosen)
        self._keep_time()

    def render_line(self, y: int) -> Strip:
        """One line: a heading, a conversation, or the count at the end."""
        place, width = self._top + y, self.size.width
        if place >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        line = self._lines[place]
        quiet = self.get_component_rich_style(TONE_CLASSES[Tone.QUIET])
        if not isinstance(line, Row):
            return Strip([Segment(set_cell_size(f" {line}", width), quiet)], width)
        return self._row(line, place == self._cursor, quiet)

    def _row(self, row: Row, under_cursor: bool, quiet: Style) -> Strip:
        width = self.size.width
        current = row.id == self._current
        right = row.right if cell_len(row.right) <= MOST_RIGHT else set_cell_size(row.right, MOST_RIGHT)
        room = max(width - 4 - cell_len(right) - 1, 4)
        title = row.title if cell_len(row.title) <= room else set_cell_size(row.title, room - 1) + "…"
        text = self.rich_style + self.get_component_rich_style("list--current") if current else self.rich_style
        tone = self.get_component_rich_style(TONE_CLASSES[row.label.glyph.tone])
        warning = self.get_component_rich_style(TONE_CLASSES[Tone.NEEDS_YOU])
        pointer = ">" if self._plain else "›"
        strip = Strip([
            Segment(pointer if current and not self.has_focus else " ", text),
            Segment(f"{row.label.glyph.mark(self._plain)} ", tone),
            Segment(set_cell_size(title, room), text),
            Segment(f" {right} ", warning if row.near_full else tone if row.label.text else quiet),
        ]).adjust_cell_length(width, self.rich_style)
        if under_cursor and self.has_focus:
            return Strip([Segment(strip.text, text + Style(reverse=True))], width)
        return strip

    def on_focus(self) -> None:
        """Start at the conversation on the screen."""
        self._put_cursor(self._current)
        self.refresh()

    def on_resize(self) -> None:
        """Keep the chosen one in view."""
        self._top = 0
        self._move_to(self._cursor)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Open what was clicked."""
        place = self._top + event.y
        if place < len(self._lines) and (conversation_id := _id_of(self._lines[place])):
            self._move_to(place)
            self.post_message(self.Opened(conversation_id))

    def _step(self, by: int) -> None:
        place = self._cursor + by
        while 0 <= place < len(self._lines):
            if isinstance(self._lines[place], Row):
                self._move_to(place)
                return
            place += by

    @on(events.MouseScrollDown)
    @on(events.MouseScrollUp)
    def roll(self, event: events.MouseScrollDown | events.MouseScrollUp) -> None:
        """The wheel: three rows."""
        by = 3 if isinstance(event, events.MouseScrollDown) else -3
        self._top = max(min(self._top + by, len(self._lines) - self.size.height), 0)
        self.refresh()

    def action_row(self, by: int) -> None:
        """Up or down one conversation."""
        self._step(by)

    def action_open(self) -> None:
        """Open the chosen one."""
        if self.chosen:
            self.post_message(self.Opened(self.chosen))

    def action_want(self, action: str) -> None:
        """Ask for something to be done to the chosen one."""
        if self.chosen or action == "restore":
            self.post_message(self.Wanted(action, self.chosen))


def _id_of(line: Line) -> str:
    return line.id if isinstance(line, Row) else ""
