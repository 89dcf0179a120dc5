"""Usage and cost over all conversations: pages by day, model, project and the like, with plots."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.ports import StorageError
from phoenix_tui.features.statistics import RANGES, StatisticsBy, StatisticsReport, statistics_report
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import run_latest
from phoenix_tui.widgets.statistics_page import page_rows

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
