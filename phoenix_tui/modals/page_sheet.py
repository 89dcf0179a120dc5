"""A page on the screen: its rows, the keys of their actions, and the outcome of the last one."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.binding import BindingsMap, BindingType

from engine.api.errors import ENGINE_ERRORS
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.page import TAKE, ListPage, PageAction, PageReader, PageRow
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import KEYS_BY_ID, Scope, bindings
from phoenix_tui.modals.rows_sheet import RowsSheet

MOST_NOTES: Final = 3


class PageSheet(RowsSheet):
    """Stays open over actions; below the rows are lines about the chosen one, and what the last action did."""

    DEFAULT_CSS = "PageSheet { & #remark { margin: 1 0 0 2; } }"
    TYPED: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.ROWS, sheet_take=f"do('{TAKE}')")

    def __init__(self, front: FrontEnd, page: ListPage, read: PageReader) -> None:
        self.page = page
        self._front = front
        self._read = read
        self._said = ""
        super().__init__(page.title, page.rows, hint(*page.hints), current=page.current, empty=page.empty)
        scopes = {KEYS_BY_ID[name].scope for name, _ in page.hints} - {Scope.ROWS}
        self._bindings = BindingsMap.merge([self._bindings, *(BindingsMap(bindings(one)) for one in scopes)])

    def remark(self, entry: PageRow | None) -> str:
        """Outcome of the last action, else lines about the chosen row and the page."""
        return self._said or "\n".join(filter(None, (*(entry.about if entry else ()), *self.page.notes[:MOST_NOTES])))

    def action_move(self, by: int) -> None:
        """Choose another row."""
        self._said = ""
        super().action_move(by)

    def action_do(self, name: str) -> None:
        """Do what this key does with the chosen row, or with the page."""
        actions = (*(self.chosen.actions if self.chosen is not None else ()), *self.page.actions)
        action = next((one for one in actions if name in one.keys.split()), None)
        if action is not None:
            self.run_worker(self._do(action), group="page", exclusive=False)

    async def _do(self, action: PageAction) -> None:
        """Do it and show the page as it is then, or the reason of a failure."""
        if action.question is not None and not await self._front.confirm(*action.question):
            return
        self._said = action.progress
        try:
            self._said = await action.run()
            self.page = await self._read()
        except ENGINE_ERRORS as error:
            self._said = str(error)
        self._entries = self._found = self.page.rows
        self._chosen = max(min(self._chosen, len(self._entries) - 1), 0)
        self._draw()
