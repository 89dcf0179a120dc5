"""Marks in a transcript: matches of a search, one of them current, and selected text as it goes to the clipboard.

A text may be broken over rows, so matches are found in the joined text of a part and mapped back to its lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from engine.search import occurrences
from phoenix_tui.markdown.lines import StyledLine, cells
from phoenix_tui.widgets.transcript.drawing import Drawn, DrawnKind, DrawnPart
from phoenix_tui.widgets.transcript.model import run_of
from phoenix_tui.widgets.transcript.painter import Painter, blend
from phoenix_tui.widgets.transcript.stack import Stack, Viewport

_NEWEST: Final = 1
"""Index of the newer of two texts side by side, copied unless a selection began in the other."""
SLOT_ROWS: Final = 1_000_000
"""Bound above the number of rows of any message."""


def row_number(slot: int, row: int) -> int:
    return slot * SLOT_ROWS + row


def paint_selection(strip: Strip, text: str, span: tuple[int, int], style: Style) -> Strip:
    """A strip with the characters of `span` selected; an end of -1 is the end of the text."""
    start, end = span
    begin = cells(text[:start])
    stop = cells(text if end < 0 else text[:end])
    if stop <= begin:
        return strip
    before, inside, after = strip.crop(0, begin), strip.crop(begin, stop), strip.crop(stop)
    selected = (Segment(text, style if own is None else own + style) for text, own, _ in inside)
    return Strip([*before, *selected, *after], strip.cell_length)


def read_selection(stack: Stack, selection: Selection) -> str:
    """Text of a selection: rows that continue a line are joined, margins and padding left out."""
    parts: list[str] = []
    side = _NEWEST
    for place, (line, start, end) in enumerate(_find_selected_lines(stack, selection)):
        if line.sides and place == 0 and start < line.sides[0][1]:
            side = 0
        if line.sides:
            first, last = line.sides[side]
            text = line.text[max(start, first) : last if end is None else min(max(end, first), last)]
        else:
            text = line.text[max(start, _margin(line)) : end]
        if parts:
            parts.append("\n" if line.joint is None else line.joint)
        parts.append(text.rstrip())
    return "".join(parts)


def _find_selected_lines(stack: Stack, selection: Selection) -> Iterator[tuple[StyledLine, int, int | None]]:
    """Lines with the characters selected; messages that are not in memory are left out."""
    first = selection.start or Offset(0, 0)
    last = selection.end or Offset(0, row_number(stack.last + 1, 0))
    for slot in range(first.y // SLOT_ROWS, min(last.y // SLOT_ROWS, stack.last) + 1):
        drawn = stack.draw(slot)
        for row in range(0 if drawn is None else drawn.height):
            number = row_number(slot, row)
            if drawn is not None and first.y <= number <= last.y:
                end = last.x if number == last.y else None
                yield drawn.line(row), first.x if number == first.y else 0, end


def block_selection(stack: Stack, slot: int, row: int) -> Selection | None:
    drawn = stack.draw(slot)
    found = None if drawn is None else drawn.locate(row)
    if drawn is None or found is None or found[1] < 0:
        return None
    part, line = found
    first = row - line
    last = first + len(part.lines) - 1
    end = Offset(len(part.lines[-1].text), row_number(slot, last))
    return Selection(Offset(0, row_number(slot, first)), end)


NEAR = 200
"""Characters within which several words count as standing together."""
SAID = (DrawnKind.PROMPT, DrawnKind.ANSWER, DrawnKind.NOTE)
"""Parts with the text of a message."""
TINT = 0.4
"""Opacity of the colour under a place that is not the current one."""


class Goal(Struct, frozen=True):
    """A place to be shown: the occurrence of that number in a message or a tool call; -1 is the best one."""

    seq: int
    call_id: str = ""
    index: int = -1


class Spot(Struct, frozen=True):
    """A place as drawn: part, number of the occurrence within it, and its line."""

    key: str
    number: int
    line: int


class Marks:
    """The words, the current place, and the parts opened to show it."""

    def __init__(self, stack: Stack, viewport: Viewport) -> None:
        self._stack = stack
        self._viewport = viewport
        self._goal: Goal | None = None
        self._spot: Spot | None = None
        self._opened: list[str] = []
        self._styles: tuple[Painter, Style, Style] | None = None
        self._places: dict[str, tuple[Sequence[StyledLine], list[list[tuple[int, int, int]]]]] = {}
        """Lines of visible parts, and per line the places with the number of each."""
        self.words: tuple[str, ...] = ()

    def look_for(self, words: tuple[str, ...]) -> None:
        self.words, self._goal, self._spot = words, None, None
        self._places.clear()
        if not words:
            self._close()

    def forget_place(self) -> None:
        self._goal = self._spot = None
        self._opened.clear()
        self._places.clear()

    def go(self, goal: Goal) -> None:
        """Bring a place into sight, now or once its message is loaded."""
        self._close()
        self._goal, self._spot = goal, None
        self._viewport.stand_at(goal.seq - 1)
        self._viewport.place()
        self.go_to_goal()

    def go_to_goal(self) -> None:
        """Go to the pending target after messages were loaded or the size changed, until all around it is there."""
        if self._goal is None or not self._viewport.height:
            return
        found = self._locate(self._goal)
        if found is None:
            return
        slot, row, self._spot = found
        self._viewport.stand_at(slot, row)
        self._viewport.place()
        heights = self._stack.heights
        self._viewport.move_to(max(heights.top(slot) + row - self._viewport.height // 3, 0))
        self._viewport.place()
        if not self._viewport.missing:
            self._goal = None

    def paint(self, strip: Strip, part: DrawnPart, index: int, painter: Painter) -> Strip:
        usual, current = self._looks(painter)
        for start, end, number in self._of_part(part)[index]:
            is_current = self._spot is not None and (self._spot.key, self._spot.number) == (part.key, number)
            strip = paint_selection(strip, part.lines[index].text, (start, end), current if is_current else usual)
        return strip

    def _locate(self, goal: Goal) -> tuple[int, int, Spot | None] | None:
        """Slot, row and place; the first row of the message where the text is not drawn, None where nothing is yet."""
        slot = goal.seq - 1
        if self._stack.draw(slot) is None:
            return None
        if goal.call_id:
            self._open_reads(goal)
        drawn = self._stack.draw(slot)
        if drawn is None:
            return None
        while self._stack.lay_slice(slot, drawn):
            pass  # the place may be in text without a layout
        spots = list(self._spots(drawn, goal))
        if not spots and self._open_folded(drawn, goal):
            drawn = self._stack.draw(slot) or drawn
            spots = list(self._spots(drawn, goal))
        if not spots:
            top = drawn.top_of(f"call:{goal.call_id}") if goal.call_id else None
            return slot, top or 0, None
        spot = self._best(drawn, spots) if goal.index < 0 else spots[min(goal.index, len(spots) - 1)]
        return slot, (drawn.top_of(spot.key) or 0) + spot.line, spot

    def _spots(self, drawn: Drawn, goal: Goal) -> Iterator[Spot]:
        for part in _parts_of(drawn, goal):
            seen: set[int] = set()
            for line, places in enumerate(self._of_part(part)):
                for _, _, number in places:
                    if number not in seen:
                        seen.add(number)
                        yield Spot(part.key, number, line)

    def _best(self, drawn: Drawn, spots: Sequence[Spot]) -> Spot:
        if len(self.words) == 1:
            return spots[0]
        texts = {part.key: _Joined(part.lines) for part in drawn.parts}

        def together(spot: Spot) -> int:
            joined = texts[spot.key]
            start = joined.starts[spot.line]
            around = joined.text[start : start + NEAR]
            return sum(bool(occurrences(around, (word,))) for word in self.words)

        return max(spots, key=together)

    def _open_reads(self, goal: Goal) -> None:
        """Quick reads share a row: open it, so that the call has one of its own."""
        own = self._stack.draw(goal.seq - 1)
        if own is not None and own.top_of(f"call:{goal.call_id}") is not None:
            return
        for seq in run_of(self._stack.model, goal.seq):
            drawn = self._stack.draw(seq - 1)
            for part in () if drawn is None else tuple(drawn.parts):
                if part.key.startswith("reads:"):
                    self._open(part.key)

    def _open_folded(self, drawn: Drawn, goal: Goal) -> bool:
        folded = [part.key for part in _parts_of(drawn, goal) if part.foldable and not self._stack.is_open(part.key)]
        for key in folded:
            self._open(key)
        return bool(folded)

    def _open(self, key: str) -> None:
        self._stack.toggle(key)
        self._opened.append(key)

    def _close(self) -> None:
        """Fold the parts opened for the place before."""
        for key in reversed(self._opened):
            if self._stack.is_open(key):
                self._stack.toggle(key)
        self._opened.clear()

    def _of_part(self, part: DrawnPart) -> list[list[tuple[int, int, int]]]:
        known = self._places.get(part.key)
        if known is not None and known[0] is part.lines and len(known[1]) == len(part.lines) and part.stream is None:
            return known[1]
        places = _Joined(part.lines).places(self.words)
        self._places[part.key] = (part.lines, places)
        return places

    def _looks(self, painter: Painter) -> tuple[Style, Style]:
        """The style of a place, and of the current one."""
        if self._styles is None or self._styles[0] is not painter:
            colours = painter.colours
            under = blend(colours.background, colours.needs_you, TINT)
            usual = Style(bgcolor=under.rich_color, underline=True)
            # Reversed, so that it is visible without colours too.
            current = Style(
                color=colours.needs_you.rich_color, bgcolor=colours.background.rich_color, bold=True, reverse=True
            )
            self._styles = (painter, usual, current)
        return self._styles[1:]


class _Joined:
    """The text of lines as it was before it was broken into rows."""

    def __init__(self, lines: Sequence[StyledLine]) -> None:
        self._margins = [_margin(line) for line in lines]
        self._texts = [line.text[margin:].rstrip() for line, margin in zip(lines, self._margins, strict=True)]
        self.starts: list[int] = []
        parts: list[str] = []
        length = 0
        for number, line in enumerate(lines):
            joint = ("\n" if line.joint is None else line.joint) if number else ""
            length += len(joint)
            self.starts.append(length)
            parts += [joint, self._texts[number]]
            length += len(self._texts[number])
        self.text = "".join(parts)

    def places(self, words: tuple[str, ...]) -> list[list[tuple[int, int, int]]]:
        """Per line: first and last + 1 character of each place, and the number of the occurrence."""
        found: list[list[tuple[int, int, int]]] = [[] for _ in self._texts]
        for number, (start, end) in enumerate(occurrences(self.text, words)):
            line = max(bisect_right(self.starts, start) - 1, 0)
            while line < len(found) and self.starts[line] < end:
                first, last = max(start - self.starts[line], 0), min(end - self.starts[line], len(self._texts[line]))
                if first < last:
                    margin = self._margins[line]
                    found[line].append((first + margin, last + margin, number))
                line += 1
        return found


def _parts_of(drawn: Drawn, goal: Goal) -> list[DrawnPart]:
    if goal.call_id:
        return [part for part in drawn.parts if part.key == f"call:{goal.call_id}"]
    return [part for part in drawn.parts if part.kind in SAID]


def _margin(line: StyledLine) -> int:
    margin = 0
    while margin < len(line.text) and cells(line.text[:margin]) < line.margin:
        margin += 1
    return margin
