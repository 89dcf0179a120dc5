"""A page on the screen: its rows, the keys of their actions, and the outcome of the last one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.binding import BindingsMap, BindingType
from textual.content import Content

from engine.executor.requests import ENGINE_ERRORS
from phoenix_tui.features.front_end import FrontEnd, ListPage, PageAction, PageReader, PageRow
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import KEYS, KEYS_BY_ID, Scope, bindings
from phoenix_tui.modals.rows_sheet import LEAST_WORDS, SIGN, RowsSheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import run_latest

MOST_NOTES: Final = 3
MOST_LINES: Final = 8
"""Lines about the chosen row, on a high screen; a quarter of a low one."""
TICK: Final = 1.0


class PageSheet(RowsSheet):
    """Stays open over actions; below the rows are lines about the chosen one, and what the last action did."""

    DEFAULT_CSS = "PageSheet { & #remark { margin: 1 0 0 2; } }"
    TYPED: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.ROWS, sheet_take="")

    def __init__(self, front: FrontEnd, page: ListPage, read: PageReader) -> None:
        self.page = page
        self._front = front
        self._read = read
        self._said = ""
        self.last: PageAction | None = None
        """Action that is done once the sheet is closed."""
        self._drawn: dict[tuple[str, int, int], list[Content]] = {}
        """Rows that are not chosen: of 2,000, all but two stay the same at a key."""
        super().__init__(page.title, page.rows, hint(*page.hints), current=page.current, empty=page.empty)
        hinted = {name: KEYS_BY_ID[name].scope for name, _ in page.hints if KEYS_BY_ID[name].scope is not Scope.ROWS}
        for scope in set(hinted.values()):
            names = [key.id for key in KEYS if key.scope is scope and (not key.action or key.id in hinted)]
            own = BindingsMap(bindings(scope, *names, **dict.fromkeys(hinted, "")))
            self._bindings = BindingsMap.merge([self._bindings, own])

    def begin(self) -> None:
        """Draw and take the keys, and follow what happens."""
        super().begin()
        if self.page.follows:
            self.set_interval(TICK, lambda: run_latest(self, self._look, "look"))

    def remark(self, entry: PageRow | None) -> str:
        """Lines about the chosen row, sentences about the page, and the outcome of the last action."""
        notes, outcome = self.page.notes[:MOST_NOTES], self.page.outcome
        if self._said and outcome == "alone":
            return self._said
        shown = notes if outcome == "last" or not self._said else ()
        return "\n".join(filter(None, (*(self._fit(entry.about) if entry is not None else ()), *shown, self._said)))

    def _fit(self, lines: Sequence[str]) -> Sequence[str]:
        """Cut the lines about a row to the room for them."""
        if not self.page.cut:
            return lines
        width = max(self.measure - SIGN, 1)
        wrapped = [row.plain for line in lines for row in Content(line).wrap(width)]
        room = max(min(MOST_LINES, self.size.height // 4), 2)
        if len(wrapped) <= room:
            return wrapped
        return [*wrapped[: room - 1], f"… {len(wrapped) - room + 1:,} lines more; {self.page.cut}"]

    def action_move(self, by: int) -> None:
        if self.page.outcome != "last":
            self._said = ""
        super().action_move(by)

    def action_do(self, name: str) -> None:
        """Do what this key does with the chosen row, or with the page."""
        actions = (*(self.chosen.actions if self.chosen is not None else ()), *self.page.actions)
        action = next((one for one in actions if name in one.keys.split()), None)
        if action is not None and action.closes and self.chosen is not None:
            self.last = action
            self.dismiss(self.chosen.key)
        elif action is not None:
            self.run_worker(self._do(action), group="page", exclusive=False)

    async def _do(self, action: PageAction) -> None:
        """Do it and show the page as it is then, or the reason of a failure."""
        if action.question is not None and not await self._front.confirm(*action.question):
            return
        self._said = action.progress
        try:
            self._said = await action.run()
        except ENGINE_ERRORS as error:
            self._said = str(error)
        else:
            await self._look()
            return
        self._draw_again()

    async def _look(self) -> None:
        """Make the page again."""
        before = self.page.current
        try:
            self.page = await self._read()
        except ENGINE_ERRORS as error:
            self._said = str(error)
        if self.page.current != before:
            keys = [row.key for row in self.page.rows]
            self._chosen = keys.index(self.page.current) if self.page.current in keys else self._chosen
        self._draw_again()

    def _draw_again(self) -> None:
        self._entries = self._found = self.page.rows
        self._heading, self._hint, self._empty = self.page.title, hint(*self.page.hints), self.page.empty
        self._drawn.clear()
        self._chosen = max(min(self._chosen, len(self._entries) - 1), 0)
        if self.is_attached:
            self._draw()

    def _row(self, entry: PageRow, words_width: int, *, chosen: bool) -> list[Content]:
        if chosen:
            return super()._row(entry, words_width, chosen=True)
        place = entry.key, words_width, self.measure
        if place not in self._drawn:
            lines = super()._row(entry, words_width, chosen=False)
            self._drawn[place] = [line.stylize(Tone.BAD.value) for line in lines] if entry.is_bad else lines
        return self._drawn[place]

    def _words_width(self) -> int:
        cells = self.page.name_cells
        return max(min(cells, (self.measure - SIGN) * 45 // 100), LEAST_WORDS) if cells else super()._words_width()
