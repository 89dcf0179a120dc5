"""Selected text: painted over strips, and as it goes to the clipboard.

A selection counts rows as `slot * SLOT_ROWS + row`, so it stays on its text when a height above is corrected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from phoenix_tui.markdown.lines import StyledLine
from phoenix_tui.widgets.transcript.stack import Stack

_NEWEST: Final = 1
"""Index of the newer of two texts side by side, copied unless a selection began in the other."""
SLOT_ROWS: Final = 1_000_000
"""Bound above the number of rows of any message."""


def row_number(slot: int, row: int) -> int:
    """The number of a row in a selection."""
    return slot * SLOT_ROWS + row


def painted(strip: Strip, text: str, span: tuple[int, int], style: Style) -> Strip:
    """A strip with the characters of `span` selected; an end of -1 is the end of the text."""
    start, end = span
    begin = cell_len(text[:start])
    stop = cell_len(text if end < 0 else text[:end])
    if stop <= begin:
        return strip
    before, inside, after = strip.crop(0, begin), strip.crop(begin, stop), strip.crop(stop)
    selected = (Segment(text, style if own is None else own + style) for text, own, _ in inside)
    return Strip([*before, *selected, *after], strip.cell_length)


def selected_text(stack: Stack, selection: Selection) -> str:
    """Text of a selection: rows that continue a line are joined, margins and padding left out."""
    parts: list[str] = []
    side = _NEWEST
    for place, (line, start, end) in enumerate(_selected_lines(stack, selection)):
        if line.sides and place == 0 and start < line.sides[0][1]:
            side = 0
        text = _one_side(line, side, start, end) if line.sides else _without_margin(line, start, end)
        if parts:
            parts.append("\n" if line.joint is None else line.joint)
        parts.append(text.rstrip())
    return "".join(parts)


def _selected_lines(stack: Stack, selection: Selection) -> Iterator[tuple[StyledLine, int, int | None]]:
    """Lines with the characters selected; messages that are not in memory are left out."""
    first = selection.start or Offset(0, 0)
    last = selection.end or Offset(0, row_number(stack.last + 1, 0))
    for slot in range(first.y // SLOT_ROWS, min(last.y // SLOT_ROWS, stack.last) + 1):
        drawn = stack.drawn(slot)
        for row in range(0 if drawn is None else drawn.height):
            number = row_number(slot, row)
            if drawn is not None and first.y <= number <= last.y:
                end = last.x if number == last.y else None
                yield drawn.line(row), first.x if number == first.y else 0, end


def _one_side(line: StyledLine, side: int, start: int, end: int | None) -> str:
    """Selected text of one of two texts side by side."""
    first, last = line.sides[side]
    return line.text[max(start, first) : last if end is None else min(max(end, first), last)]


def _without_margin(line: StyledLine, start: int, end: int | None) -> str:
    text = line.text
    margin = 0
    while margin < len(text) and cell_len(text[:margin]) < line.margin:
        margin += 1
    return text[max(start, margin) : end]


def block_selection(stack: Stack, slot: int, row: int) -> Selection | None:
    """All of the block that holds a row."""
    drawn = stack.drawn(slot)
    found = None if drawn is None else drawn.locate(row)
    if drawn is None or found is None or found[1] < 0:
        return None
    part, line = found
    first = row - line
    last = first + len(part.lines) - 1
    end = Offset(len(part.lines[-1].text), row_number(slot, last))
    return Selection(Offset(0, row_number(slot, first)), end)
