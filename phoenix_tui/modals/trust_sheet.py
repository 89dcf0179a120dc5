"""The files that extend Phoenix in a folder by their power; Enter reads one, y uses all, n none."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.content import Content

from engine.executor.requests import EngineError
from phoenix_tui.config.sources.report import SourceEntry, SourceReport, SourceState
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.page import PageRow
from phoenix_tui.features.trust import NO_FILES, answer, describe_source, sections, standing, text_of
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.rows_sheet import LEAST_WORDS, SIGN, RowsSheet
from phoenix_tui.modals.text_sheet import TextSheet
from phoenix_tui.text.trust_text import command_line, short_name
from tools.clean import reveal_name

DIFFERING: Final = frozenset({SourceState.CHANGED, SourceState.NEW, SourceState.GONE})
"""States of a file that the user has not accepted as it is; the first such file is chosen."""
MOST_LINES: Final = 8
"""Lines about the chosen file, on a high screen; a quarter of a low one."""
LONGEST_NAME: Final = 32
"""Characters of a path in its row; its end tells more than its beginning."""


class TrustSheet(RowsSheet):
    """Stays open over an answer; the last lines are the chosen file's path and commands, and what the answer did."""

    DEFAULT_CSS = "TrustSheet { & #remark { margin: 1 0 0 2; } }"
    TYPED: ClassVar[bool] = False
    EMPTY: ClassVar[str] = NO_FILES
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.ROWS), *bindings(Scope.TRUST)]

    def __init__(self, front: FrontEnd, report: SourceReport) -> None:
        self._front = front
        self._report = report
        self._said = ""
        self._drawn: dict[tuple[str, int, int], list[Content]] = {}
        """Rows that are not chosen: of 2,000, all but two stay the same at a key."""
        differing = (str(place) for place, entry in enumerate(report.entries) if entry.state in DIFFERING)
        super().__init__("Extensions of this folder", _rows(report), _keys(), current=next(differing, ""))

    def remark(self, entry: PageRow | None) -> str:
        """Whole path and commands of the chosen file, as many lines as there is room for; then the answer."""
        found = self._entry_of(entry)
        lines = [] if found is None else [reveal_name(found.name), *(command_line(one) for one in found.commands)]
        width = max(self.measure - SIGN, 1)
        wrapped = [row.plain for line in lines for row in Content(line).wrap(width)]
        room = max(min(MOST_LINES, self.size.height // 4), 2)
        if len(wrapped) > room:
            wrapped = [*wrapped[: room - 1], f"… {len(wrapped) - room + 1:,} lines more; Enter shows the file"]
        return "\n".join(filter(None, (*wrapped, self._said or standing(self._report))))

    def action_move(self, by: int) -> None:
        """Choose another one."""
        self._said = ""
        super().action_move(by)

    def action_take(self) -> None:
        """Read the chosen one, or its difference."""
        if (entry := self._entry_of(self.chosen)) is not None:
            self._do(self._read(entry))

    def action_answer(self, trusted: bool) -> None:
        """Use all of them from now on, or none."""
        self._do(self._answer(trusted))

    def _do(self, work: Coroutine[None, None, None]) -> None:
        self.run_worker(self._done(work), group="trust", exclusive=False)

    async def _done(self, work: Coroutine[None, None, None]) -> None:
        """Carry it out, or say why it failed."""
        try:
            self._said = ""
            await work
        except EngineError as error:
            self._said = str(error)
        self._entries = self._found = _rows(self._report)
        self._drawn.clear()
        self._chosen = max(min(self._chosen, len(self._entries) - 1), 0)
        self._draw()

    async def _read(self, entry: SourceEntry) -> None:
        text = await text_of(self._front, self._report, entry)
        heading = f"{reveal_name(entry.name)}, {entry.state.value}"
        self.app.push_screen(TextSheet(heading, Content(text)))

    async def _answer(self, trusted: bool) -> None:
        self._report, self._said = await answer(self._front, self._report, trusted=trusted)

    def _row(self, entry: PageRow, words_width: int, *, chosen: bool) -> list[Content]:
        if chosen:
            return super()._row(entry, words_width, chosen=True)
        place = entry.key, words_width, self.measure
        if place not in self._drawn:
            self._drawn[place] = super()._row(entry, words_width, chosen=False)
        return self._drawn[place]

    def _words_width(self) -> int:
        return max(min(LONGEST_NAME, (self.measure - SIGN) * 45 // 100), LEAST_WORDS)

    def _entry_of(self, row: PageRow | None) -> SourceEntry | None:
        return self._report.entries[int(row.key)] if row is not None else None


def _rows(report: SourceReport) -> Sequence[PageRow]:
    places = {id(entry): str(place) for place, entry in enumerate(report.entries)}
    return [
        PageRow(
            heading, places[id(entry)], short_name(entry.name, LONGEST_NAME), describe_source(entry), entry.state.value
        )
        for heading, entries in sections(report.entries).items()
        for entry in entries
    ]


def _keys() -> str:
    return hint(("trust_yes", "uses all"), ("trust_no", "none"), ("sheet_take", "opens"))
