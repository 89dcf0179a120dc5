"""Copy of the terminal's cells, so that a frame writes only those that change (docs/decisions/terminal-traffic.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import ne
from typing import Final

from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

from phoenix_tui.terminal.cells import UNKNOWN, CellRow, StripPieces, hold_image
from phoenix_tui.terminal.writer import RowWriter

_WORTH: Final = 24
"""Cells that scrolling must save: its own sequences take as many bytes."""
_ALIKE: Final = 2
"""Rows that must be found moved by the same distance."""
_CAPABLE: Final = (
    "xterm", "tmux", "alacritty", "foot", "kitty", "ghostty", "wezterm", "rxvt", "konsole", "vte", "gnome", "linux",
    "iterm", "putty", "st-", "contour", "mintty", "mlterm",
)  # fmt: skip
"""Beginnings of TERM: these erase with the background in force, and move lines within a region."""


def is_capable(environment: Mapping[str, str]) -> bool:
    """True when the terminal erases with the present background and moves lines; an unknown one counts as unable."""
    return "TMUX" in environment or environment.get("TERM", "").startswith(_CAPABLE)


class ShadowScreen:
    """The cells that the terminal shows, and the shortest text that makes it show others."""

    def __init__(self, *, capable: bool) -> None:
        self._capable = capable
        self._size = Size(0, 0)
        self._rows: list[CellRow] = []
        self._cursor = ""
        self._pieces = StripPieces()

    def forget(self) -> None:
        """Forget the content of the terminal: another program, a resize or a lost frame changed it."""
        self._rows = [CellRow.of(UNKNOWN, self._size.width) for _ in range(self._size.height)]
        self._cursor = ""

    def fit(self, size: Size) -> None:
        """Follow the size of the screen."""
        if size != self._size:
            self._size = size
            self.forget()

    def is_repeated(self, written: str) -> bool:
        """True for a frame that only moves the cursor to its present place."""
        cursor = written[written.rfind("\x1b[") :] if written.endswith("H") else ""
        repeated = bool(cursor) and written == cursor == self._cursor
        self._cursor = cursor
        return repeated

    def draw(self, update: LayoutUpdate | ChopsUpdate, colours: ColorSystem) -> str:
        """The sequences that show an update; empty where it shows already."""
        changed = (
            self._of_layout(update, colours) if isinstance(update, LayoutUpdate) else self._of_spans(update, colours)
        )
        writer = RowWriter(self._size.width, erases=self._capable)
        if self._capable and len(changed) > _ALIKE:
            self._scroll(changed, writer, self._window(update))
        for y in sorted(changed):
            writer.change(y, self._rows[y], changed[y])
            self._rows[y] = changed[y]
        return writer.text()

    def _of_layout(self, update: LayoutUpdate, colours: ColorSystem) -> dict[int, CellRow]:
        rows: dict[int, CellRow] = {}
        for y, line in enumerate(update.strips, update.region.y):
            if 0 <= y < len(self._rows):
                self._put(rows, y, update.region.x, line, colours)
        return rows

    def _of_spans(self, update: ChopsUpdate, colours: ColorSystem) -> dict[int, CellRow]:
        rows: dict[int, CellRow] = {}
        for y, left, right in update.spans:
            if not 0 <= y < len(self._rows):
                continue
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is not None and x <= right and end > left:
                    self._put(rows, y, x, [strip if end <= right else strip.crop(0, right - x)], colours)
        return rows

    def _put(self, rows: dict[int, CellRow], y: int, x: int, line: Iterable[Strip], colours: ColorSystem) -> None:
        """Put strips into the row that comes, which is a row of its own once it differs from the one shown."""
        for strip in line:
            piece = self._pieces.piece(strip, colours)
            if not rows.get(y, self._rows[y]).holds(x, piece):
                if y not in rows:
                    rows[y] = self._rows[y].copy()
                rows[y].put(x, piece)
            x += len(piece.cells)

    def _scroll(self, changed: dict[int, CellRow], writer: RowWriter, window: tuple[int, int]) -> None:
        """Scroll rows that are on the screen at another place, if less is to write then."""
        found = self._moved(changed, *window)
        if found is None:
            return
        top, bottom, lines = found
        blank = CellRow.of(" ", self._size.width)
        after = self._rows[:]
        kept = after[top:bottom]
        gap = [blank] * abs(lines)
        after[top:bottom] = [*kept[lines:], *gap] if lines > 0 else [*gap, *kept[:lines]]
        wanted = [changed.get(y, self._rows[y]) for y in range(top, bottom)]
        saved = _cost(kept, wanted) - _cost(after[top:bottom], wanted)
        if saved < _WORTH or hold_image((*kept, *wanted)):
            return
        writer.scroll(top, bottom, lines)
        for y, row in zip(range(top, bottom), wanted, strict=True):
            changed.setdefault(y, row)
        self._rows = after

    def _moved(self, changed: Mapping[int, CellRow], left: int, right: int) -> tuple[int, int, int] | None:
        """First row, end and distance of a move of rows in some columns; a positive distance is up."""
        top, bottom = min(changed), max(changed) + 1
        before: dict[str, int] = {}
        for y in range(top, bottom):
            text = "".join(self._rows[y].cells[left:right])
            before[text] = -1 if text in before or not text.strip(" \0") else y
        places = [(y, before.get("".join(row.cells[left:right]), -1)) for y, row in changed.items()]
        distances = Counter(old - y for y, old in places if old >= 0 and old != y)
        lines, count = next(iter(distances.most_common(1)), (0, 0))
        if count < _ALIKE:
            return None
        moved = [(y, old) for y, old in places if old >= 0 and old - y == lines]
        return min(min(pair) for pair in moved), max(max(pair) for pair in moved) + 1, lines

    def _window(self, update: LayoutUpdate | ChopsUpdate) -> tuple[int, int]:
        """The columns in which most rows of an update were drawn: those of the pane that scrolls."""
        if isinstance(update, LayoutUpdate):
            return update.region.x, update.region.right
        return Counter((left, right) for _, left, right in update.spans).most_common(1)[0][0]


class Shortened(CompositorUpdate):
    """An update that writes only changes to the terminal."""

    def __init__(self, update: LayoutUpdate | ChopsUpdate, shadow: ShadowScreen) -> None:
        self._update = update
        self._shadow = shadow

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The unchanged update, for rendering without a terminal."""
        yield self._update

    def render_segments(self, console: Console) -> str:
        """The sequences for the terminal: Textual asks for them once, when it writes."""
        return self._shadow.draw(self._update, console._color_system or ColorSystem.TRUECOLOR)  # pyright: ignore[reportPrivateUsage] - as Textual's strips


def _cost(old: list[CellRow], new: list[CellRow]) -> int:
    """Cells to write."""
    pairs = zip(old, new, strict=True)
    return sum(sum(map(ne, one.cells, other.cells)) for one, other in pairs if one.cells != other.cells)
