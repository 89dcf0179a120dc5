"""One page of the statistics as rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from engine.records.statistics import CallGroup
from phoenix_tui.features.statistics import MOST_DAYS, StatisticsBy, StatisticsReport, report_lines, report_table
from phoenix_tui.text import plots
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.statistics_text import EMPTY, StatisticsRow, shows_cost

LEAST_NAME: Final = 16
MOST_NAME: Final = 44
LEAST_BAR: Final = 4
MOST_BAR: Final = 24
GAP: Final = 2
DAILY: Final = "each day  "


def page_rows(report: StatisticsReport, width: int, *, plain: bool = False) -> list[Content]:
    """All rows of a report, for `width` cells; the sheet cuts longer ones."""
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
            _row(row.name, row.cells, columns, name, plots.bar(row.size, most, bar, plain=plain) if bar else "")
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
    values = [sizes.get(day, 0.0) for day in plots.days_until(report.today, count)]
    room = max(width - len(DAILY), 1)
    shown = plots.squeezed(values, room)
    step = -(-len(values) // room)
    name = DAILY if step == 1 else f"{step} days each".ljust(len(DAILY))
    line = plots.sparkline(shown, plain=plain)
    return [Content.assemble((name[: len(DAILY)], Tone.QUIET.value), (line, Tone.YOU.value))]


def _span(report: StatisticsReport) -> int:
    """Days from the first with a call until today."""
    days = [row.key for row in report.daily if row.key and row.key <= report.today]
    return min(plots.count_days(days[0], report.today), MOST_DAYS) if days else 1


def _year(report: StatisticsReport, width: int, *, plain: bool) -> list[Content]:
    """A heat map of the year until today; a narrow screen shows its newest weeks."""
    lines = plots.heat_map(_sizes(report.daily), report.today, plain=plain)
    cut = max(plots.LEFT + plots.WEEKS - width, 0)
    shown = [line[: plots.LEFT] + line[plots.LEFT + cut :] for line in lines]
    what = "cost" if shows_cost(report.daily) else "tokens"
    legend = f"{' ' * plots.LEFT}{what} each day: {plots.legend(plain=plain)}"
    rows = [Content.styled(line, Tone.YOU.value if place else Tone.QUIET.value) for place, line in enumerate(shown)]
    return [Content(""), *rows, Content.styled(legend, Tone.QUIET.value)]


def _sizes(daily: Sequence[CallGroup]) -> dict[str, float]:
    """Size of each day: its cost, or its tokens where nothing has a known cost."""
    by_cost = shows_cost(daily)
    return {row.key: row.known_cost_usd if by_cost else float(row.totals.tokens) for row in daily}
