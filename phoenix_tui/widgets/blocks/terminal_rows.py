"""Output of a program in a terminal as rows, in the colours that the program gave it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from phoenix_tui.keys.active_keys import key
from phoenix_tui.keys.return_key import NAME
from phoenix_tui.markdown.lines import MARGIN, PLAIN, QUIET, Span, StyledLine, TextStyle, TextTone
from phoenix_tui.markdown.plain import plain_rows
from phoenix_tui.markdown.wrap import ellipsize
from phoenix_tui.widgets.blocks.rows import BAR, INDENT, column, output_lines
from phoenix_tui.widgets.blocks.tool_view import ToolView
from tools.terminal.values import TextRun

LEFT_OUT: Final = "⋯"
CURSOR: Final = TextStyle(program="7")


def running_rows(view: ToolView, width: int, most: int) -> list[StyledLine]:
    """The last lines of a running program, with its cursor."""
    by_row, room = _by_row(view.runs), column(width) - MARGIN - 2
    lines = list(output_lines(view.tail))
    row, place = view.cursor or (-1, 0)
    lines += [""] * (row + 1 - len(lines))
    rows = [_spans(ellipsize(line, room), 0, by_row.get(number, ())) for number, line in enumerate(lines)]
    if row >= 0 and place < room:
        rows[row] = _with_cursor(rows[row], place)
    return [_barred(spans) for spans in rows[-most:]]


def screen_rows(view: ToolView, width: int) -> list[StyledLine]:
    """Hint for a program that needs the whole terminal, or reads keys as if it had it; none for others."""
    if not (view.wants_screen or view.reads_keys):
        return []
    needs = "needs your terminal · " if view.wants_screen else ""
    yours = "yours" if needs else "your terminal"
    words = f"{needs}{key('send')} gives it {yours} · {NAME} returns"
    style = TextStyle(TextTone.NEEDS_YOU) if needs else QUIET
    return [_barred([Span(ellipsize(words, column(width) - MARGIN - 2), style)])]


def coloured_rows(text: str, runs: Sequence[TextRun], width: int, *, head: int) -> list[StyledLine]:
    """The first `head` lines and the last one, each cut to one row."""
    lines, by_row, room = output_lines(text), _by_row(runs), column(width) - MARGIN - 2
    numbers = list(range(len(lines)))
    if len(lines) > head + 1:
        numbers = [*numbers[:head], -1, numbers[-1]]
    return [
        _barred(_spans(ellipsize(lines[number], room), 0, by_row.get(number, ())) if number >= 0 else [Span(LEFT_OUT)])
        for number in numbers
    ]


def coloured_whole(text: str, runs: Sequence[TextRun], width: int) -> Iterator[StyledLine]:
    """All lines, wrapped."""
    by_row, place = _by_row(runs), 0
    for number, shown, joint in plain_rows(text, column(width) - MARGIN - 2, hard=True):
        place = 0 if joint is None else place
        yield _barred(_spans(shown, place, by_row.get(number, ())), joint)
        place += len(shown)


def _with_cursor(spans: Sequence[Span], place: int) -> list[Span]:
    """The spans of a row with the character at a place in exchanged colours."""
    text = "".join(span.text for span in spans).ljust(place + 1)
    before, _ = _cut(spans, place)
    missing = place - sum(len(span.text) for span in before)
    _, behind = _cut(spans, place + 1)
    return [*before, Span(" " * missing), Span(text[place], CURSOR), *behind]


def _cut(spans: Sequence[Span], place: int) -> tuple[list[Span], list[Span]]:
    before: list[Span] = []
    behind: list[Span] = []
    for span in spans:
        before.append(span._replace(text=span.text[: max(place, 0)]))
        behind.append(span._replace(text=span.text[max(place, 0) :]))
        place -= len(span.text)
    return before, behind


def _barred(spans: Sequence[Span], joint: str | None = None) -> StyledLine:
    return StyledLine((INDENT, BAR, *spans), joint, MARGIN + 2)


def _by_row(runs: Sequence[TextRun]) -> Mapping[int, Sequence[TextRun]]:
    by_row: dict[int, list[TextRun]] = {}
    for run in runs:
        by_row.setdefault(run.row, []).append(run)
    return by_row


def _spans(text: str, begins: int, runs: Sequence[TextRun]) -> list[Span]:
    """`text`, which begins at a character of its line, in the looks of that line."""
    spans: list[Span] = []
    place = 0
    for run in runs:
        start, end = max(run.start - begins, place), min(run.end - begins, len(text))
        if start < end:
            spans.append(Span(text[place:start]))
            spans.append(Span(text[start:end], TextStyle(program=run.look)))
            place = end
    return [span for span in (*spans, Span(text[place:], PLAIN)) if span.text]
