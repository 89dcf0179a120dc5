"""One page of the statistics as rows of text, with bars, sparklines and a year of days."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

from textual.content import Content

from engine.records.runs import CallGroup
from phoenix_tui.features.cost import MOST_DAYS, StatisticsBy, StatisticsReport, report_lines, report_table
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.statistics_text import EMPTY, StatisticsRow, shows_cost

EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
HEIGHTS: Final = "▁▂▃▄▅▆▇█"
PLAIN_HEIGHTS: Final = ".:-=+*%#"
SHADES: Final = "·░▒▓█"
PLAIN_SHADES: Final = ".-+*#"
WEEKS: Final = 53
WEEKDAYS: Final = ("Mon", "", "Wed", "", "Fri", "", "")
WEEK: Final = 7
LEFT: Final = 4
"""Cells before the weeks."""


def draw_bar(value: float, most: float, width: int, *, plain: bool = False) -> str:
    """A horizontal draw_bar of `width` cells for the largest value; anything above 0 shows."""
    share = min(max(value / most, 0.0), 1.0) if most > 0 else 0.0
    if plain:
        return ("#" * max(round(share * width), 1 if value > 0 else 0)).ljust(width)[:width]
    eighths = max(round(share * width * 8), 1 if value > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (EIGHTHS[rest] if rest else "")).ljust(width)[:width]


def draw_sparkline(values: Sequence[float], *, plain: bool = False) -> str:
    signs, most = PLAIN_HEIGHTS if plain else HEIGHTS, max(values, default=0.0)
    return "".join(" " if value <= 0 else signs[_level(value, most, len(signs))] for value in values)


def squeeze(values: Sequence[float], width: int) -> list[float]:
    step = max(-(-len(values) // max(width, 1)), 1)
    first = len(values) % step or step
    places = [0, *range(first, len(values), step)] if values else []
    return [sum(values[place : places[at + 1] if at + 1 < len(places) else None]) for at, place in enumerate(places)]


def days_until(today: str, count: int) -> list[str]:
    """Days in the form `2026-11-25`, the last of them `today`."""
    last = datetime.date.fromisoformat(today)
    return [(last - datetime.timedelta(days=back)).isoformat() for back in range(count - 1, -1, -1)]


def count_days(first: str, last: str) -> int:
    return (datetime.date.fromisoformat(last) - datetime.date.fromisoformat(first)).days + 1


def draw_heat_map(values: Mapping[str, float], today: str, *, plain: bool = False) -> list[str]:
    """A row of months and seven rows of 53 weeks, Monday first; the last week ends with `today`."""
    last = datetime.date.fromisoformat(today)
    first = last - datetime.timedelta(days=last.weekday() + WEEK * (WEEKS - 1))
    count = WEEK * (WEEKS - 1) + last.weekday() + 1
    shown = [values.get((first + datetime.timedelta(days=place)).isoformat(), 0.0) for place in range(count)]
    shades, most = PLAIN_SHADES if plain else SHADES, max(shown)
    rows = [f"{name:<{LEFT}}" for name in WEEKDAYS]
    for place, value in enumerate(shown):
        rows[place % WEEK] += shades[0] if value <= 0 else shades[1 + _level(value, most, len(shades) - 1)]
    # Names of months above the week in which they begin, where there is room.
    line, before = " " * LEFT, first.month
    for week in range(WEEKS):
        month = (first + datetime.timedelta(days=WEEK * week)).month
        if month != before and len(line) <= LEFT + week and week <= WEEKS - 3:
            line = f"{line:<{LEFT + week}}{(first + datetime.timedelta(days=WEEK * week)):%b}"
        before = month
    return [line, *rows]


def draw_legend(*, plain: bool = False) -> str:
    return f"none {PLAIN_SHADES if plain else SHADES} most"


def _level(value: float, most: float, levels: int) -> int:
    return min(max(ceil(value * levels / most) - 1, 0), levels - 1) if most > 0 else 0


LEAST_NAME: Final = 16
MOST_NAME: Final = 44
LEAST_BAR: Final = 4
MOST_BAR: Final = 24
GAP: Final = 2
DAILY: Final = "each day  "


def page_rows(report: StatisticsReport, width: int, *, plain: bool = False) -> list[Content]:
    if not report.total.calls and not report.tools:
        return [Content.styled(EMPTY, Tone.QUIET.value)]
    first, *more = report_lines(report)
    rows = [
        *Content.styled(first, "bold").wrap(width),
        *(part for line in more for part in Content.styled(line, Tone.QUIET.value).wrap(width)),
    ]
    if report.by is StatisticsBy.PURPOSE:
        rows += _daily(report, width, plain=plain)
    if report.by is StatisticsBy.DAY:
        rows += _year(report, width, plain=plain)
    headings, table = report_table(report)
    if not table:
        return [*rows, Content(""), Content.styled("Nothing of this kind in this time.", Tone.QUIET.value)]
    return [*rows, Content(""), *table_rows(headings, table, width, plain=plain)]


def table_rows(
    headings: Sequence[str], rows: Sequence[StatisticsRow], width: int, *, plain: bool = False
) -> list[Content]:
    """A heading and a row each, with a bar where there is room; the last columns go first on a narrow screen."""
    by_column = zip(headings[1:], *(row.cells for row in rows), strict=True)
    columns = [max(map(len, cells)) for cells in by_column]
    while len(columns) > 1 and width - LEAST_NAME - sum(columns) - GAP * len(columns) < 0:
        columns.pop()
    room = width - sum(columns) - GAP * len(columns)
    wanted = max(LEAST_NAME, min(MOST_NAME, max(Content(row.name).cell_length for row in rows)))
    bar = min(room - wanted - GAP, MOST_BAR)
    if bar < LEAST_BAR:
        bar = LEAST_BAR if room - LEAST_NAME - GAP >= LEAST_BAR else 0
    name = min(wanted, room - (bar + GAP if bar else 0))
    most = max(row.size for row in rows)
    head = _row(headings[0], headings[1:], columns, name, " " * bar)
    return [
        head.stylize(Tone.QUIET.value),
        *(
            _row(row.name, row.cells, columns, name, draw_bar(row.size, most, bar, plain=plain) if bar else "")
            for row in rows
        ),
    ]


def _row(name: str, cells: Sequence[str], columns: Sequence[int], width: int, bar: str) -> Content:
    label = Content(name).truncate(width, ellipsis=True, pad=True)
    shown = "".join(f"{'':{GAP}}{cell:>{column}}" for cell, column in zip(cells, columns, strict=False))
    parts: list[tuple[str, str]] = [(" " * GAP, ""), (bar, Tone.YOU.value)] if bar else []
    return Content.assemble(label, *parts, shown)


def _daily(report: StatisticsReport, width: int, *, plain: bool) -> list[Content]:
    """A sparkline of every day of the range, or of the time since the first call."""
    if not report.daily:
        return []
    sizes = _sizes(report.daily)
    count = report.days or _span(report)
    values = [sizes.get(day, 0.0) for day in days_until(report.today, count)]
    room = max(width - len(DAILY), 1)
    shown = squeeze(values, room)
    step = -(-len(values) // room)
    name = DAILY if step == 1 else f"{step} days each".ljust(len(DAILY))
    line = draw_sparkline(shown, plain=plain)
    return [Content.assemble((name[: len(DAILY)], Tone.QUIET.value), (line, Tone.YOU.value))]


def _span(report: StatisticsReport) -> int:
    days = [row.key for row in report.daily if row.key and row.key <= report.today]
    return min(count_days(days[0], report.today), MOST_DAYS) if days else 1


def _year(report: StatisticsReport, width: int, *, plain: bool) -> list[Content]:
    """A heat map of the year until today; a narrow screen shows its newest weeks."""
    lines = draw_heat_map(_sizes(report.daily), report.today, plain=plain)
    cut = max(LEFT + WEEKS - width, 0)
    shown = [line[:LEFT] + line[LEFT + cut :] for line in lines]
    what = "cost" if shows_cost(report.daily) else "tokens"
    legend = f"{' ' * LEFT}{what} each day: {draw_legend(plain=plain)}"
    rows = [Content.styled(line, Tone.YOU.value if place else Tone.QUIET.value) for place, line in enumerate(shown)]
    return [Content(""), *rows, Content.styled(legend, Tone.QUIET.value)]


def _sizes(daily: Sequence[CallGroup]) -> dict[str, float]:
    """Size of each day: its cost, or its tokens where nothing has a known cost."""
    by_cost = shows_cost(daily)
    return {row.key: row.known_cost_usd if by_cost else float(row.totals.tokens) for row in daily}
