"""The window as one wide bar with its thresholds, and its shares as rows: text for the context sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from engine.context.measure import Filling
from engine.executor.context_manager import ContextReport
from phoenix_tui.models.choice import GUIDE
from phoenix_tui.text.labels import Tone, tokens
from phoenix_tui.widgets.status_line import FULL, NOTICED, ContextUse

NEVER: Final = 100
"""Per cent above which nothing is summarized by itself."""
COLOURS: Final[dict[Filling, str]] = {
    Filling.SYSTEM: "$text-muted",
    Filling.TOOLS: "$text-muted",
    Filling.INSTRUCTIONS: "$foreground",
    Filling.SUMMARY: "$foreground",
    Filling.HISTORY: "$primary",
    Filling.RESULTS: "$accent",
    Filling.IMAGES: "$success",
    Filling.THINKING: "$text-muted",
}
SIGNS: Final[dict[Filling, str]] = {
    Filling.SYSTEM: "s",
    Filling.TOOLS: "t",
    Filling.INSTRUCTIONS: "i",
    Filling.SUMMARY: "y",
    Filling.HISTORY: "m",
    Filling.RESULTS: "r",
    Filling.IMAGES: "g",
    Filling.THINKING: "k",
}
"""Letters of the bar where there are no colours."""
NAME_WIDTH: Final = max(len(filling.value) for filling in Filling)
FREE: Final = "free"
SHARE: Final = 2 + NAME_WIDTH + 7 + 6
"""Cells of one share."""


def headline(report: ContextReport, model: str) -> Content:
    use = ContextUse(report.tokens, report.window, report.estimated)
    about = "~" if report.estimated else ""
    if model == GUIDE and not report.window:
        return Content.assemble(("Context", "bold"), f"  {model} follows rules and has no context window")
    if use.percent is None:
        return Content.assemble(
            ("Context", "bold"), f"  {about}{report.tokens:,} tokens, the window of {model} is unknown"
        )
    full = (f"{about}{use.percent} %", f"bold {use.tone.value}" if use.tone is not Tone.QUIET else "bold")
    return Content.assemble(
        ("Context", "bold"), f"  {about}{report.tokens:,} of {report.window:,} tokens · ", full, f" · {model}"
    )


def bar(report: ContextReport, width: int, *, plain: bool) -> Content:
    """One cell for each `width`-th of the window, coloured by its content: as many as are full."""
    size = max(report.window, report.tokens, 1)
    pieces: list[tuple[str, str]] = []
    shares = [(filling, count) for filling, count in report.measured.shares if count > 0]
    total = max(sum(count for _, count in shares), 1)
    full = min(max(round(width * report.tokens / size), 1 if shares else 0), width)
    used = summed = 0
    for filling, count in shares:
        summed += count
        cells = round(full * summed / total) - used
        pieces.append(((SIGNS[filling] if plain else "▰") * cells, COLOURS[filling]))
        used += cells
    pieces.append((("." if plain else "▱") * (width - used), Tone.QUIET.value))
    return Content.assemble(*pieces)


def ruler(report: ContextReport, width: int, *, plain: bool) -> Content:
    """The thresholds below the bar; where two would touch, the one that acts stays."""
    if not report.window:
        return Content("")
    mark = "^" if plain else "▴"
    wanted = [
        (report.compact_percent, f"{mark}{report.compact_percent} % summarizes", Tone.NEEDS_YOU),
        (FULL, f"{mark}{FULL}", Tone.BAD),
        (NOTICED, f"{mark}{NOTICED}", Tone.QUIET),
    ]
    row: list[tuple[int, str, Tone]] = []
    for percent, text, tone in wanted:
        start = min(percent * width // 100, width - 1)
        if percent > NEVER:
            continue
        if start + len(text) > width or (tone is Tone.NEEDS_YOU and any_in(FULL * width // 100, start, text)):
            text = text.partition(" ")[0]
        free = all(start >= at + len(other) + 1 or start + len(text) + 1 <= at for at, other, _ in row)
        if free and start + len(text) <= width:
            row.append((start, text, tone))
    line = Content("")
    for start, text, tone in sorted(row):
        line = Content.assemble(line, " " * (start - line.cell_length), (text, tone.value))
    return line


def legend(report: ContextReport, *, plain: bool) -> Content:
    """The meaning of each mark on the ruler; empty where there is no ruler."""
    if not report.window:
        return Content("")
    mark = "^" if plain else "▴"
    meanings = {NOTICED: "tells you", FULL: "turns red", report.compact_percent: "summarizes older messages"}
    said = [f"{mark}{percent} {words}" for percent, words in sorted(meanings.items()) if percent <= NEVER]
    return Content.styled(" · ".join(said), Tone.QUIET.value)


def any_in(cell: int, start: int, text: str) -> bool:
    return start < cell <= start + len(text)


def share_rows(report: ContextReport, *, plain: bool) -> list[Content]:
    """Contents of the window, one row each, and the free part; empty shares are left out."""
    rows = [
        share_row(filling.value, SIGNS[filling] if plain else "▰", COLOURS[filling], count, report.window, about="~")
        for filling, count in report.measured.shares
        if count > 0
    ]
    if report.window:
        left = max(report.window - report.tokens, 0)
        about = "~" if report.estimated else ""
        rows.append(share_row(FREE, "." if plain else "▱", Tone.QUIET.value, left, report.window, about=about))
    return rows


def fold_columns(rows: Sequence[Content], width: int) -> list[Content]:
    """The same rows in two columns, where they fit."""
    if width < 2 * SHARE + 2:
        return list(rows)
    half = (len(rows) + 1) // 2
    return beside(rows[:half], rows[half:], min(width // 2, SHARE + 10))


def share_row(name: str, sign: str, colour: str, count: int, window: int, *, about: str) -> Content:
    return Content.assemble(
        (f"{sign} ", colour), f"{name:<{NAME_WIDTH}}", f"{about + tokens(count):>7}", f"{share_of(count, window):>6}"
    )


def share_of(count: int, window: int) -> str:
    if not window:
        return ""
    percent = 100 * count / window
    return f"{percent:.0f} %" if percent >= 1 or not count else "<1 %"


def beside(left: Sequence[Content], right: Sequence[Content], left_width: int) -> list[Content]:
    rows: list[Content] = []
    for place in range(max(len(left), len(right))):
        first = left[place] if place < len(left) else Content("")
        second = right[place] if place < len(right) else Content("")
        rows.append(Content.assemble(first, " " * max(left_width - first.cell_length, 1), second))
    return rows
