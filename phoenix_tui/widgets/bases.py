"""Bases of widgets: rows kept until something is dirty, rows by width, clocks, the newest work, the selected row."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

if TYPE_CHECKING:
    WidgetPart = Widget
else:
    # Textual inherits CSS and component classes along the first Widget base alone, so this must not be one:
    # `class Composer(Still, TextArea)` stays a TextArea in every style sheet.
    WidgetPart = object


class Still(WidgetPart):
    """Answers every paint with the very rows of the last one while nothing changed.

    On each partial update the compositor asks every widget under the dirty region for all its rows; unchanged
    strips keep their rendered text, so this makes a key echo cost one widget instead of all.
    """

    _painted: tuple[Region, list[Strip]] | None = None

    def _set_dirty(self, *regions: Region) -> None:
        self._painted = None
        super()._set_dirty(*regions)

    def notify_style_update(self) -> None:
        self._painted = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        if self._painted is None or self._painted[0] != crop:
            self._painted = (crop, super().render_lines(crop))
        return self._painted[1]


class StillRow(Still, Horizontal):
    """A row of widgets: every paint asks it for its own blank rows too, seen or not."""


class StillColumn(Still, Vertical):
    """A column of widgets, as above."""


class Ticker:
    """The clock of a widget; it runs only while there is something to count."""

    def __init__(self, widget: Widget, seconds: float, tick: Callable[[], None]) -> None:
        self._widget = widget
        self._seconds = seconds
        self._tick = tick
        self._timer: Timer | None = None

    @property
    def runs(self) -> bool:
        return self._timer is not None

    def run(self, wanted: bool) -> None:
        if wanted and self._timer is None:
            self._timer = self._widget.set_interval(self._seconds, self._tick)
        elif not wanted and self._timer is not None:
            self._timer.stop()
            self._timer = None


RowsForWidth: TypeAlias = Callable[[int], Sequence[Content]]
"""The rows for a width in cells, each no wider than it."""


class Flowing(Widget):
    """Draws the rows that `flow` gives for its width, and is as tall as they are."""

    DEFAULT_CSS = "Flowing { height: auto; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: RowsForWidth = lambda _: ()

    def flow(self, rows: RowsForWidth) -> None:
        self._rows = rows
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(max(width, 1)))

    def render(self) -> Content:
        return Content("\n").join(self._rows(max(self.size.width, 1)))


def wrap_hanging(text: Content, indent: int, width: int) -> list[Content]:
    """`text` wrapped; rows after the first begin `indent` cells further right."""
    first, *_ = text.wrap(width) or [Content("")]
    if first.cell_length >= text.rstrip().cell_length or width <= 2 * indent:
        return text.wrap(width)
    rest = text[len(first.plain) :]
    while rest.plain.startswith(" "):
        rest = rest[1:]
    return [first, *(Content.assemble(" " * indent, row) for row in rest.wrap(width - indent))]


class Opened(Message, namespace="dock"):
    """Posted when something opened, or closed again: Esc has another action now."""

    def __init__(self, esc_hint: str) -> None:
        super().__init__()
        # Textual ends the way up at the sender's parent, and takes for the sender whose handler runs: the dock, where a
        # question ends while the dock passes on its answer. The screen would not hear of it.
        self._sender = None
        self.esc_hint = esc_hint
        """Action of Esc; empty when nothing is open any more."""


def run_latest(node: DOMNode, work: Callable[[], Coroutine[Any, Any, object]], group: str) -> None:
    """Run `work` in a worker of `node`; an earlier one of its group ends.

    A function, not its coroutine: one that ends before it began would leave a coroutine that nothing awaits.
    """
    node.run_worker(work, group=group, exclusive=True)  # type: ignore[arg-type]  # mypy makes Never of the result


def move_choice(chosen: int, by: int, total: int) -> int:
    """The choice `by` rows further, within `total`; the first where there is nothing."""
    return max(0, min(chosen + by, total - 1))


def first_visible(chosen: int, total: int, room: int) -> int:
    """The first of `room` rows: the selected one is in the middle, and no row stays empty at the end."""
    return max(min(chosen - room // 2, total - room), 0)


def first_visible_line(start: int, end: int, total: int, room: int) -> int:
    """The first of `room` lines, where the selected row is those from `start` to `end`: in the middle, as above."""
    return max(min(max(end - room, start - room // 2), total - room), 0)


def mark_chosen(row: Content, *, chosen: bool, sign: str = "›") -> Content:
    """A row of a list with the two cells of its sign; the chosen one is reversed."""
    return Content.styled(f"{sign} {row.plain}", "reverse") if chosen else Content.assemble("  ", row)
