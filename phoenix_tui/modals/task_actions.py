"""Changes of a task by the user, common to the board and to the sheet of one task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable

from engine.api.errors import ENGINE_ERRORS
from engine.records.tracked_tasks import TrackedTask
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.task_board import BoardModel
from phoenix_tui.features.tasks import BY_COMMAND, choose_status, edit_task, remove_task, undo_removal
from phoenix_tui.keys.active_keys import key
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.task_text import shown


class TaskActionsSheet(Sheet[str]):
    """Stays open over changes; `said` is the result of the last one."""

    def __init__(self, front: FrontEnd, board: BoardModel) -> None:
        super().__init__()
        self.front = front
        self.board = board
        self.said = ""

    @property
    @abstractmethod
    def target(self) -> TrackedTask | None:
        """The task in view, which may be the planning section."""

    @abstractmethod
    def show(self) -> None:
        """Show the board as it was read last."""

    def action_status(self) -> None:
        """Ask for the status of the task."""
        if (task := self.changeable) is not None:
            self.carry_out(choose_status(self.front, self.board, task))

    def action_edit(self) -> None:
        """Change the text of the task."""
        if (task := self.changeable) is not None:
            self.carry_out(edit_task(self.front, self.board, task))

    def action_remove(self) -> None:
        """Delete the task after a question."""
        if (task := self.changeable) is not None:
            self.carry_out(remove_task(self.front, self.board, task, self.way_back))

    def action_undo(self) -> None:
        """Restore the task that was deleted last."""
        self.carry_out(undo_removal(self.board))

    @property
    def way_back(self) -> str:
        """Keys that undo a deletion, in words; the command where there are none."""
        keys = key("task_undo")
        return f"{keys} restores it" if keys else BY_COMMAND

    @property
    def changeable(self) -> TrackedTask | None:
        """The task; None for the planning section, which has neither text nor status."""
        task = self.target
        return None if task is None or task.is_planning else task

    def carry_out(self, work: Awaitable[str]) -> None:
        """Do it in a worker; then show the board as it is, with the result or the reason of a failure."""
        self.run_worker(self._carry_out(work), group="change")

    async def _carry_out(self, work: Awaitable[str]) -> None:
        try:
            said = await work
        except ENGINE_ERRORS as error:
            said = str(error)
        try:
            await self.board.read()
        except ENGINE_ERRORS as error:
            said = said or str(error)
        self.said = shown(said)
        if self.is_attached:
            self.show()
