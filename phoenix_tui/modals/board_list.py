"""The rows of the task board: filtered, sorted, one of them chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.records.tracked_tasks import TrackedTask
from phoenix_tui.features.task_board import BoardModel, matching
from phoenix_tui.modals.task_rows import BoardRow
from phoenix_tui.text.task_text import shown
from phoenix_tui.widgets.bases import move_choice

NO_TASK: Final = "no task"
"""Filter that shows messages without a task."""
AHEAD: Final = 10
"""Rows before the last one read at which the next page is wanted."""
LONGEST_QUERY: Final = 40
"""Characters of a filter in the heading."""


class BoardList:
    """Values of the list; its owner draws them."""

    def __init__(self, board: BoardModel, *, query: str = "", newest: bool = False) -> None:
        self.query = query
        self.newest = newest
        """True: by time of creation, the newest first; else in the order of the board."""
        self.rows: Sequence[BoardRow] = ()
        self.chosen = 0
        self._board = board

    @property
    def is_loose(self) -> bool:
        """True while messages without a task are shown."""
        return self.query.strip().lower() == NO_TASK

    @property
    def row(self) -> BoardRow | None:
        """The chosen row."""
        return self.rows[self.chosen] if self.chosen < len(self.rows) else None

    @property
    def task(self) -> TrackedTask | None:
        """The chosen task with its messages; None for a message without a task."""
        row = self.row
        return None if row is None or row.task is None else self._board.task(row.key) or row.task

    @property
    def wants_more(self) -> bool:
        """True when the choice comes near the end of the pages read so far."""
        paged = self.newest and not self.query.strip()
        return paged and self._board.has_more and self.chosen + AHEAD >= len(self.rows)

    @property
    def place(self) -> str:
        """Place of the choice, and how the rows are chosen and sorted."""
        total = len(self.rows)
        if self.newest and not self.query.strip() and self._board.has_more:
            total = len(self._board.view.tasks)
        at = f"{self.chosen + 1} / {total}" if self.rows else ""
        filtered = f"filter: {shown(self.query, LONGEST_QUERY)}" if self.query.strip() else ""
        return " · ".join(filter(None, (at, filtered, "newest first" if self.newest else "")))

    def move(self, by: int) -> None:
        """Choose another row."""
        self.chosen = move_choice(self.chosen, by, len(self.rows))

    def restart(self, *, query: str | None = None, newest: bool | None = None) -> None:
        """Filter or sort in another way, from the first row on."""
        self.query = self.query if query is None else query
        self.newest = self.newest if newest is None else newest
        self.rows, self.chosen = (), 0
        self.renew()

    def renew(self) -> None:
        """Make the rows again; the chosen one stays chosen where it is still there."""
        before = self.row
        self.rows = self._found()
        keys = [row.key for row in self.rows]
        if before is not None and before.key in keys:
            self.chosen = keys.index(before.key)
        else:
            self.chosen = min(self.chosen, max(len(self.rows) - 1, 0))

    def _found(self) -> list[BoardRow]:
        board, view, query = self._board, self._board.view, self.query.strip()
        if self.is_loose:
            return [BoardRow(f"#{seq}", seq=seq) for seq in board.untasked]
        tasks = list(board.newest if self.newest and not query else view.tasks)
        if query:
            tasks = matching(tasks, query)
            tasks.sort(key=_by_time if self.newest else _by_order, reverse=self.newest)
        is_end = not (self.newest and board.has_more and not query)
        planning = matching((view.planning,), query) if view.planning is not None and is_end else ()
        return [BoardRow(task.id, task) for task in (*tasks, *planning)]


def _by_time(task: TrackedTask) -> tuple[float, str]:
    return task.created_at, task.id


def _by_order(task: TrackedTask) -> tuple[float, str]:
    return task.order, task.id
