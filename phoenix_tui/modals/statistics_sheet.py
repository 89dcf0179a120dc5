"""Usage and cost over all conversations, and the tree of one run."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.ports import StorageError
from engine.ports.storage import Traces
from engine.records.runs import CallGroup
from engine.records.traces import SpanStatus, Trace, TraceSpan
from phoenix_tui.features.context_window import (
    MOST_DAYS,
    RANGES,
    StatisticsBy,
    StatisticsReport,
    report_lines,
    report_table,
    statistics_report,
)
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.statistics_text import EMPTY, StatisticsRow, shows_cost
from phoenix_tui.text.trace_text import GAP, TraceRow, details, heading, matches, note_left_out, span_words, trace_rows
from phoenix_tui.widgets.bases import first_visible, move_choice, run_latest
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean

if TYPE_CHECKING:
    from engine.store.statistics import StatisticsStore


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
COLUMN_GAP: Final = 2
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
    while len(columns) > 1 and width - LEAST_NAME - sum(columns) - COLUMN_GAP * len(columns) < 0:
        columns.pop()
    room = width - sum(columns) - COLUMN_GAP * len(columns)
    wanted = max(LEAST_NAME, min(MOST_NAME, max(Content(row.name).cell_length for row in rows)))
    bar = min(room - wanted - COLUMN_GAP, MOST_BAR)
    if bar < LEAST_BAR:
        bar = LEAST_BAR if room - LEAST_NAME - COLUMN_GAP >= LEAST_BAR else 0
    name = min(wanted, room - (bar + COLUMN_GAP if bar else 0))
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
    shown = "".join(f"{'':{COLUMN_GAP}}{cell:>{column}}" for cell, column in zip(cells, columns, strict=False))
    parts: list[tuple[str, str]] = [(" " * COLUMN_GAP, ""), (bar, Tone.YOU.value)] if bar else []
    return Content.assemble(label, *parts, shown)


def _daily(report: StatisticsReport, width: int, *, plain: bool) -> list[Content]:
    """A sparkline of every day of the range, or of the time since the first call."""
    if not report.daily:
        return []
    sizes = _sizes(report.daily)
    days = [row.key for row in report.daily if row.key and row.key <= report.today]
    count = report.days or (min(count_days(days[0], report.today), MOST_DAYS) if days else 1)
    values = [sizes.get(day, 0.0) for day in days_until(report.today, count)]
    room = max(width - len(DAILY), 1)
    shown = squeeze(values, room)
    step = -(-len(values) // room)
    name = DAILY if step == 1 else f"{step} days each".ljust(len(DAILY))
    line = draw_sparkline(shown, plain=plain)
    return [Content.assemble((name[: len(DAILY)], Tone.QUIET.value), (line, Tone.YOU.value))]


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


PAGES: Final = {
    "Overview": StatisticsBy.PURPOSE,
    "Days": StatisticsBy.DAY,
    "Models": StatisticsBy.MODEL,
    "Projects": StatisticsBy.PROJECT,
    "Conversations": StatisticsBy.CONVERSATION,
    "Tools": StatisticsBy.TOOL,
    "Agents": StatisticsBy.AGENT,
}
RANGE_NAMES: Final = {7: "7 d", 30: "30 d", 365: "year", 0: "all"}
HEIGHT: Final = 0.92
CHROME: Final = 5
"""Rows of the border, the pages, the ranges, a blank row and the margin."""


class StatisticsSheet(Sheet[None]):
    """One page at a time; each is read when it is shown first."""

    DEFAULT_CSS = "StatisticsSheet { & > .sheet { max-height: 92%; } & Static { height: auto; } }"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS, "sheet_up", "sheet_down", "sheet_page_up", "sheet_page_down", "sheet_close"),
        *bindings(Scope.STATISTICS),
    ]

    KEPT: ClassVar[tuple[str, ...]] = ("_page", "_days", "_reports")

    def __init__(self, api: StatisticsStore, now: float, *, page: str = "", plain: bool = False) -> None:
        super().__init__()
        self._api = api
        self._now = now
        self._plain = plain
        wanted = page.strip().lower()
        self._page = next((place for place, by in enumerate(PAGES.values()) if wanted and by.startswith(wanted)), 0)
        self._days = RANGES[1]
        self._reports: dict[tuple[StatisticsBy, int], StatisticsReport] = {}
        self._problem = ""
        self._first = 0

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="statistics", markup=False)

    def on_mount(self) -> None:
        self._show()

    def action_page_of(self, by: int) -> None:
        """Show the next or the previous page."""
        self._page = (self._page + by) % len(PAGES)
        self._show()

    def action_range(self) -> None:
        """Show the next longer range; after all time the shortest."""
        self._days = RANGES[(RANGES.index(self._days) + 1) % len(RANGES)]
        self._show()

    def action_move(self, by: int) -> None:
        self._first += by
        self._draw()

    @property
    def _wanted(self) -> tuple[StatisticsBy, int]:
        return list(PAGES.values())[self._page], self._days

    def _show(self) -> None:
        self._first, self._problem = 0, ""
        self._draw()
        if self._wanted not in self._reports:
            run_latest(self, partial(self._read, *self._wanted), "statistics")

    async def _read(self, by: StatisticsBy, days: int) -> None:
        try:
            self._reports[by, days] = await statistics_report(self._api, by, days, self._now)
        except StorageError as error:
            self._problem = str(error)
        self._draw()

    def _draw(self) -> None:
        if self.is_mounted:
            self.query_one("#statistics", Static).update(Content("\n").join(self._rows()))

    def _rows(self) -> list[Content]:
        width = self.measure
        head = [self._names(width), self._ranges(width), Content("")]
        report = self._reports.get(self._wanted)
        if self._problem:
            return [*head, *Content.styled(self._problem, Tone.BAD.value).wrap(width)]
        if report is None:
            return [*head, Content.styled("reading…", Tone.QUIET.value)]
        rows = page_rows(report, width, plain=self._plain)
        room = max(int(self.size.height * HEIGHT) - CHROME, 1)
        self._first = max(0, min(self._first, len(rows) - room))
        shown = rows[self._first : self._first + room]
        below = len(rows) - self._first - len(shown)
        if below:
            shown[-1] = Content.styled(f"{below + 1:,} more rows below", Tone.QUIET.value)
        return [*head, *(row.truncate(width, ellipsis=True) for row in shown)]

    def _names(self, width: int) -> Content:
        """Names of the pages, the one shown in brackets; on a narrow screen those around it."""
        names = [f"[{name}]" if place == self._page else f" {name} " for place, name in enumerate(PAGES)]
        styles = ["bold" if place == self._page else Tone.QUIET.value for place in range(len(names))]
        row = Content.assemble(*((name, style) for name, style in zip(names, styles, strict=True)))
        return row.truncate(width, ellipsis=True)

    def _ranges(self, width: int) -> Content:
        names = [f"[{RANGE_NAMES[days]}]" if days == self._days else f" {RANGE_NAMES[days]} " for days in RANGES]
        keys = hint(("stats_previous stats_next", "pages"), ("stats_range", "range"), ("sheet_up sheet_down", "scroll"))
        parts = [(name, "bold" if name.startswith("[") else Tone.QUIET.value) for name in names]
        return Content.assemble(*parts, (f"   {keys}", Tone.QUIET.value)).truncate(width, ellipsis=True)


TICK: Final = 1.0
"""Seconds after which a run under way is read again."""
SHARE: Final = 0.7
"""Share of the screen's height that a sheet takes at most (`Sheet`)."""
TRACE_CHROME: Final = 4
"""Rows beside those of the tree: rule, heading, keys, remark."""
FILTER: Final = 1
"""Rows of the filter line."""


class TraceSheet(Sheet[TraceSpan]):
    """Up and Down choose a span, Enter reads it, `m` gives the one whose message is wanted, `/` filters."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = """
    TraceSheet {
        & Static { height: auto; }
        & LineInput { margin: 0 0 0 2; background: $background; display: none; }
        & LineInput.-shown { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS),
        *bindings(Scope.TYPED, "typed_up", "typed_down"),
        *bindings(Scope.TRACES),
        Binding("escape", "step_back", "Close", priority=True),
    ]

    def __init__(self, traces: Traces, trace: Trace, *, plain: bool = False) -> None:
        super().__init__()
        self._traces = traces
        self._trace = trace
        self._plain = plain
        self._words: Sequence[str] = ()
        self._found: Sequence[TraceSpan] = trace.spans
        self._chosen = 0
        self._first = 0
        """The place of the row on top."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="keys", markup=False)
            yield LineInput(placeholder="type to filter by kind, name or error")
            yield Static(id="rows", markup=False)
            yield Static(id="remark", markup=False)

    def on_mount(self) -> None:
        """Draw; a run under way is read again each second."""
        self.set_interval(TICK, self._again)
        self._draw()

    @property
    def _line(self) -> LineInput:
        return self.query_one(LineInput)

    @property
    def _one(self) -> TraceSpan | None:
        return self._found[self._chosen] if self._found else None

    def _again(self) -> None:
        if self._trace.root.status is SpanStatus.RUNNING and self.is_current:
            run_latest(self, self._read_again, "trace")

    async def _read_again(self) -> None:
        try:
            trace = await self._traces.of_run(self._trace.root.run_id)
        except StorageError:
            return  # the next second tries again
        if trace is not None:
            self._trace = trace
            self._filter()

    @on(TextArea.Changed)
    def filter_typed(self, event: TextArea.Changed) -> None:
        """Narrow to spans with every word."""
        self._words = event.text_area.text.lower().split()
        self._filter()

    @on(LineInput.Submitted)
    def filter_taken(self, event: LineInput.Submitted) -> None:
        """Keep the filter and return to the rows."""
        event.stop()
        self._line.set_class(bool(self._words), "-shown")
        self.set_focus(None)

    def _filter(self) -> None:
        chosen = self._one.id if self._one is not None else ""
        self._found = [span for span in self._trace.spans if matches(span, self._words)]
        places = (place for place, span in enumerate(self._found) if span.id == chosen)
        self._chosen = next(places, min(self._chosen, max(len(self._found) - 1, 0)))
        self._draw()

    def action_filter(self) -> None:
        self._line.add_class("-shown")
        self.set_focus(self._line)
        self._draw()

    def action_step_back(self) -> None:
        """Esc: end the filter, then leave."""
        if self._line.has_class("-shown"):
            self._line.remove_class("-shown")
            self.set_focus(None)
            self._line.load_text("")
            self._words = ()
            self._filter()
        else:
            self.dismiss(None)

    def action_move(self, by: int) -> None:
        self._chosen = move_choice(self._chosen, by, len(self._found))
        self._draw()

    def action_take(self) -> None:
        """Read input and output of the chosen span."""
        if self._one is not None:
            run_latest(self, partial(self._read, self._one), "read")

    async def _read(self, span: TraceSpan) -> None:
        try:
            content = await self._traces.content(span)
        except StorageError as error:
            self.app.notify(str(error), severity="error", markup=False)
            return
        text = clean("\n".join(details(span, content)))
        self.app.push_screen(TextSheet(span_words(span), Content(text)))

    def action_message(self) -> None:
        """Give the chosen span: its message is wanted."""
        if self._one is not None and self._one.message_seq:
            self.dismiss(self._one)
        elif self._one is not None:
            self.app.notify("This span has no message.", markup=False)

    @on(events.Click, "#rows")
    def point(self, event: events.Click) -> None:
        """A click chooses a row, one on the chosen row reads it."""
        place = self._first + event.y
        if place == self._chosen:
            self.action_take()
        else:
            self.action_move(place - self._chosen)

    @property
    def _room(self) -> int:
        return max(int(self.size.height * SHARE) - TRACE_CHROME - FILTER, 3)

    def _draw(self) -> None:
        width = self.measure
        head = Content.assemble(("Trace", "bold"), f"   {heading(self._trace)}")
        self.query_one("#heading", Static).update(head.truncate(width, ellipsis=True))
        place = f"{self._chosen + 1} / {len(self._found)}" if self._found else "0"
        keys = hint(("sheet_take", "input and output"), ("trace_message", "its message"), ("trace_filter", "filters"))
        line = Content.styled(f"{place}   {keys}", Tone.QUIET.value)
        self.query_one("#keys", Static).update(line.truncate(width, ellipsis=True))
        self._first = first_visible(self._chosen, len(self._found), self._room)
        shown = self._found[self._first : self._first + self._room]
        rows = trace_rows(self._trace, shown, width - 2, plain=self._plain)
        lines = [self._row(row, place == self._chosen) for place, row in enumerate(rows, self._first)]
        empty = Content.styled("  No matches. Type fewer letters to find more.", Tone.QUIET.value)
        self.query_one("#rows", Static).update(Content("\n").join(lines) if lines else empty)
        remark = self.query_one("#remark", Static)
        remark.update(Content.styled(" ".join(note_left_out(self._trace)), Tone.QUIET.value))
        remark.display = bool(self._trace.left_out)

    def _row(self, row: TraceRow, chosen: bool) -> Content:
        gap = " " * GAP
        line = Content.assemble(
            "› " if chosen else "  ",
            (row.glyph.mark(self._plain), row.glyph.tone.value),
            f" {row.label}{gap}{row.before}",
            (row.bar, row.glyph.tone.value),
            f"{row.after}{gap}",
            (row.figures, Tone.QUIET.value),
        )
        return Content.styled(line.plain, "reverse") if chosen else line
