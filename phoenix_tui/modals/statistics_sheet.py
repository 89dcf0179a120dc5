"""Usage and cost over all conversations, and the tree of one run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.ports import StorageError
from engine.ports.storage import Traces
from engine.records.traces import SpanStatus, Trace, TraceSpan
from phoenix_tui.features.cost import RANGES, StatisticsBy, StatisticsReport, statistics_report
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.trace_bars import GAP, TraceRow, trace_rows
from phoenix_tui.text.trace_text import details, heading, matches, note_left_out, span_words
from phoenix_tui.widgets.bases import first_visible, move_choice, run_latest
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.widgets.statistics_page import page_rows
from tools.clean import clean

if TYPE_CHECKING:
    from engine.api.engine import StatisticsApi


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

    def __init__(self, api: StatisticsApi, now: float, *, page: str = "", plain: bool = False) -> None:
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
        """One text, drawn for the width there is."""
        with Vertical(classes="sheet"):
            yield Static(id="statistics", markup=False)

    def on_mount(self) -> None:
        """Draw and read."""
        self._show()

    def on_resize(self) -> None:
        """Plots are as wide as the screen."""
        self._draw()

    def action_page_of(self, by: int) -> None:
        """Show the next or the previous page."""
        self._page = (self._page + by) % len(PAGES)
        self._show()

    def action_range(self) -> None:
        """Show the next longer range; after all time the shortest."""
        self._days = RANGES[(RANGES.index(self._days) + 1) % len(RANGES)]
        self._show()

    def action_move(self, by: int) -> None:
        """Scroll the rows."""
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
        """Heading, keys, filter, rows, and a remark on what is not shown."""
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

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
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
        """Type in the filter line."""
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
        """Choose another span."""
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
        self.query_one("#keys", Static).update(self._keys(width))
        self._first = first_visible(self._chosen, len(self._found), self._room)
        shown = self._found[self._first : self._first + self._room]
        rows = trace_rows(self._trace, shown, width - 2, plain=self._plain)
        lines = [self._row(row, place == self._chosen) for place, row in enumerate(rows, self._first)]
        empty = Content.styled("  No matches. Type fewer letters to find more.", Tone.QUIET.value)
        self.query_one("#rows", Static).update(Content("\n").join(lines) if lines else empty)
        remark = self.query_one("#remark", Static)
        remark.update(Content.styled(" ".join(note_left_out(self._trace)), Tone.QUIET.value))
        remark.display = bool(self._trace.left_out)

    def _keys(self, width: int) -> Content:
        place = f"{self._chosen + 1} / {len(self._found)}" if self._found else "0"
        keys = hint(("sheet_take", "input and output"), ("trace_message", "its message"), ("trace_filter", "filters"))
        return Content.styled(f"{place}   {keys}", Tone.QUIET.value).truncate(width, ellipsis=True)

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
