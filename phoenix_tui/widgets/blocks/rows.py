"""Common elements of blocks: bars, rows with a right end, durations, counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from phoenix_tui.markdown.lines import MARGIN, PLAIN, QUIET, TEXT_COLUMN, Span, StyledLine, TextStyle, spans_width
from phoenix_tui.markdown.plain import plain_rows
from phoenix_tui.markdown.wrap import LOOKED_AT, breaks, ellipsize
from phoenix_tui.text.cells import cut_middle

BAR = Span("│ ", QUIET)
INDENT = Span(" " * MARGIN)
_TENTHS_BELOW = 9.95
"""Seconds up to which tenths are shown."""


def column(width: int) -> int:
    """The cells a block takes of a screen of `width`, margin included."""
    return max(min(width, TEXT_COLUMN + MARGIN), 10)


def duration_text(seconds: float) -> str:
    """A duration as a row shows it: 0.4s, 12s, 2m 05s, 1h 02m."""
    if seconds < _TENTHS_BELOW:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02}m"


def row(
    mark: Span,
    name: str,
    text: str,
    right: str,
    width: int,
    *,
    action: str = "",
    look: TextStyle = PLAIN,
    is_path: bool = False,
) -> StyledLine:
    """One row: glyph, bold name, text cut to the remaining room, and `right` flush with the column's end.

    Of a path the middle goes, as its end names the file.
    """
    room = column(width) - MARGIN
    spans = [INDENT, mark, Span(" ", PLAIN)]
    if name:
        spans.append(Span(ellipsize(name, max(room // 2, 4)), look._replace(bold=True)))
        spans.append(Span("  "))
    free = room + MARGIN - spans_width(spans) - (len(right) + 2 if right else 0)
    spans.append(Span((cut_middle if is_path else ellipsize)(text, max(free, 0)), look))
    if right and free >= 0:
        gap = column(width) - spans_width(spans) - len(right)
        spans.extend((Span(" " * gap), Span(right, QUIET)))
    return StyledLine(tuple(span._replace(action=action) for span in spans) if action else tuple(spans))


def barred(texts: Iterable[str], width: int, look: TextStyle = QUIET) -> list[StyledLine]:
    """Lines of output under a bar, each cut to one row."""
    room = column(width) - MARGIN - 2
    return [
        StyledLine((INDENT, BAR, Span(ellipsize(text.expandtabs(4), room), look)), margin=MARGIN + 2) for text in texts
    ]


def barred_sentence(text: str, width: int, most: int, look: TextStyle = QUIET) -> Iterator[StyledLine]:
    """One line of output under a bar, wrapped to `most` rows at most; the last of them is cut where there is more."""
    room = column(width) - MARGIN - 2
    shown = text[:LOOKED_AT].expandtabs(4)
    rows = breaks(shown, room)
    for place, (start, end, joint) in enumerate(rows[:most], start=1):
        piece = ellipsize(shown[start:], room) if place == most < len(rows) else shown[start:end]
        yield StyledLine((INDENT, BAR, Span(piece, look)), joint, MARGIN + 2)


def barred_whole(text: str, width: int, look: TextStyle = PLAIN) -> Iterator[StyledLine]:
    """Output under a bar, wrapped, nothing cut."""
    for _, shown, joint in plain_rows(text, column(width) - MARGIN - 2, hard=True):
        yield StyledLine((INDENT, BAR, Span(shown, look)), joint, MARGIN + 2)


def quiet_note(mark: str, text: str, width: int, *, look: TextStyle = QUIET, action: str = "") -> Iterator[StyledLine]:
    """A note in one look: a mark, then text wrapped with a hanging indent."""
    start = lead = f"{mark} "
    for _, shown, joint in plain_rows(text, column(width) - MARGIN - len(lead)):
        yield StyledLine((INDENT, Span(start, look, action), Span(shown, look, action)), joint)
        start = " " * len(lead)


def output_lines(text: str) -> Sequence[str]:
    """The lines of an output without blank ones at its end."""
    return text.rstrip().split("\n") if text.strip() else ()
