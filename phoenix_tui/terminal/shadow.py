"""Copy of the terminal's cells, so that a frame writes only those that change (docs/decisions/terminal-traffic.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from operator import ne
from typing import Final

from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

from phoenix_tui.terminal.cells import (
    UNKNOWN,
    CellLine,
    StripPieces,
    blank_code,
    change_of_style,
    hold_image,
    is_erasable,
    look_of,
)

_GAP: Final = 5
"""Unchanged cells that are written again: a move over them takes as many bytes."""
_ERASED: Final = 9
"""Blanks from which on erasing them and moving on is shorter than writing them."""


class RowWriter:
    """Collects sequences; tracks the cursor and the style."""

    def __init__(self, columns: int, *, erases: bool) -> None:
        self._columns = columns
        self._erases = erases
        self._out: list[str] = []
        self._code = ""
        self._at: tuple[int, int] | None = None
        """Row and column of the cursor; None where that is not sure."""

    def text(self) -> str:
        """Return the collected text, with the style reset; empty without changes."""
        self._style("")
        return "".join(self._out)

    def scroll(self, top: int, bottom: int, lines: int) -> None:
        """Move the rows from `top` to before `bottom` up by `lines`, or down by a negative number.

        New rows are blank and without a style.
        """
        self._style("")
        turn = f"{lines}M" if lines > 0 else f"{-lines}L"
        self._out.append(f"\x1b[{top + 1};{bottom}r\x1b[{top + 1};1H\x1b[{turn}\x1b[r")
        self._at = None

    def change(self, y: int, old: CellLine, new: CellLine) -> None:
        for start, end in _runs(old, new):
            self._write(y, start, end, new)

    def _write(self, y: int, start: int, end: int, row: CellLine) -> None:
        cells, codes = row.cells, row.codes
        odd = row.odd_columns()
        x = start
        while x < end:
            blanks = _blanks_from(x, end, row)
            if blanks >= _ERASED and self._erase(y, x, blanks, codes[x]):
                x += blanks
                continue
            self._move(y, x)
            is_odd = x in odd
            stop = x + 1 if is_odd else _same_from(x, min((each for each in odd if x < each < end), default=end), row)
            while stop < self._columns and not cells[stop]:
                stop += 1
            text = "".join(cells[x:stop])
            self._style_of(text, codes[x])
            self._out.append(text)
            # Behind the last column a terminal waits to wrap; behind an odd character the position is unknown.
            self._at = (y, stop) if stop < self._columns and not is_odd else None
            x = stop

    def _erase(self, y: int, x: int, count: int, code: str) -> bool:
        """Erase blanks where the terminal then shows the same as written ones."""
        ground = blank_code(code)
        if not is_erasable(code) or not (self._erases or not ground):
            return False
        self._move(y, x)
        if look_of(self._code).ground != ground or not is_erasable(self._code):
            self._style(ground)
        self._out.append("\x1b[K" if x + count == self._columns else f"\x1b[{count}X")
        return True

    def _move(self, y: int, x: int) -> None:
        if self._at == (y, x):
            return
        ahead = x - self._at[1] if self._at is not None and self._at[0] == y else 0
        if ahead > 0:
            self._out.append(f"\x1b[{ahead if ahead > 1 else ''}C")
        else:
            self._out.append(f"\x1b[{y + 1}{f';{x + 1}' if x else ''}H")
        self._at = (y, x)

    def _style_of(self, text: str, code: str) -> None:
        """The style of a text; blanks need no other where they look the same in the one before."""
        if text.isspace() and is_erasable(code) and is_erasable(self._code):
            if look_of(self._code).ground != look_of(code).ground:
                self._style(blank_code(code))
            return
        self._style(code)

    def _style(self, code: str) -> None:
        change = change_of_style(self._code, code)
        if change:
            self._out.append(change)
        self._code = code


def _runs(old: CellLine, new: CellLine) -> Iterator[tuple[int, int]]:
    """Stretches of a row to write, from a column to before another."""
    if old.cells == new.cells and old.codes == new.codes:
        return
    width = len(new.cells)
    changed = [*compress(range(width), map(ne, old.cells, new.cells))]
    if old.codes != new.codes:
        changed = sorted({*changed, *compress(range(width), map(ne, old.codes, new.codes))})
    odd = min(old.first_odd(), new.first_odd())
    if changed[-1] >= odd:
        yield min(changed[0], odd), width
        return
    start = end = changed[0]
    for column in changed[1:]:
        gap = column - end
        if gap > _GAP or (gap > 1 and _changes_style(new.codes, end, column)):
            yield start, end + 1
            start = column
        end = column
    yield start, end + 1


def _changes_style(codes: list[str], before: int, behind: int) -> bool:
    """True when the unchanged cells between two changed ones have another style than the first of these."""
    first = codes[before]
    return any(code is not first and code != first for code in codes[before + 1 : behind])


def _blanks_from(x: int, end: int, row: CellLine) -> int:
    """Number of blanks of one style that begin at a column."""
    cells, code, stop = row.cells, row.codes[x], x
    while stop < end and cells[stop] == " " and row.codes[stop] == code:
        stop += 1
    return stop - x


def _same_from(x: int, end: int, row: CellLine) -> int:
    """End of the text of one style that begins at a column; a long stretch of blanks ends it too."""
    code, stop = row.codes[x], x + 1
    while (
        stop < end
        and row.codes[stop] == code
        and not (row.cells[stop] == " " and _blanks_from(stop, min(end, stop + _ERASED), row) == _ERASED)
    ):
        stop += 1
    return stop


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


def takes_links(environment: Mapping[str, str]) -> bool:
    """True when the terminal draws a link or leaves its sequence out; the console of Linux would print some of it."""
    return is_capable(environment) and not environment.get("TERM", "").startswith("linux")


class ShadowScreen:
    """The cells that the terminal shows, and the shortest text that makes it show others."""

    def __init__(self, *, capable: bool, links: bool = False) -> None:
        self._capable = capable
        self._size = Size(0, 0)
        self._rows: list[CellLine] = []
        self._cursor = ""
        self._pieces = StripPieces(links=links)

    def forget(self) -> None:
        """Forget the content of the terminal: another program, a resize or a lost frame changed it."""
        self._rows = [CellLine.of(UNKNOWN, self._size.width) for _ in range(self._size.height)]
        self._cursor = ""

    def fit(self, size: Size) -> None:
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

    def _of_layout(self, update: LayoutUpdate, colours: ColorSystem) -> dict[int, CellLine]:
        rows: dict[int, CellLine] = {}
        for y, line in enumerate(update.strips, update.region.y):
            if 0 <= y < len(self._rows):
                self._put(rows, y, update.region.x, line, colours)
        return rows

    def _of_spans(self, update: ChopsUpdate, colours: ColorSystem) -> dict[int, CellLine]:
        rows: dict[int, CellLine] = {}
        for y, left, right in update.spans:
            if not 0 <= y < len(self._rows):
                continue
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is not None and x <= right and end > left:
                    self._put(rows, y, x, [strip if end <= right else strip.crop(0, right - x)], colours)
        return rows

    def _put(self, rows: dict[int, CellLine], y: int, x: int, line: Iterable[Strip], colours: ColorSystem) -> None:
        """Put strips into the row that comes, which is a row of its own once it differs from the one shown."""
        for strip in line:
            piece = self._pieces.piece(strip, colours)
            if not rows.get(y, self._rows[y]).holds(x, piece):
                if y not in rows:
                    rows[y] = self._rows[y].copy()
                rows[y].put(x, piece)
            x += len(piece.cells)

    def _scroll(self, changed: dict[int, CellLine], writer: RowWriter, window: tuple[int, int]) -> None:
        """Scroll rows that are on the screen at another place, if less is to write then."""
        found = self._find_move(changed, *window)
        if found is None:
            return
        top, bottom, lines = found
        blank = CellLine.of(" ", self._size.width)
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

    def _find_move(self, changed: Mapping[int, CellLine], left: int, right: int) -> tuple[int, int, int] | None:
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
        return self._shadow.draw(self._update, console._color_system or ColorSystem.TRUECOLOR)  # noqa: SLF001 - as Textual's strips


def _cost(old: list[CellLine], new: list[CellLine]) -> int:
    pairs = zip(old, new, strict=True)
    return sum(sum(map(ne, one.cells, other.cells)) for one, other in pairs if one.cells != other.cells)
