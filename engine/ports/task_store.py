"""Interface of the store for the task board, with the values that cross it (SPEC ACX-06 to ACX-19)."""

from __future__ import annotations

from typing import Protocol

from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus


class TaskRefused(Exception):
    """A change of the board that is not possible; the message is a sentence for the model, or the user."""


class TaskStore(Protocol):
    """The boards of all conversations. Every method may raise StorageError; writers also OwnedElsewhere."""

    async def board(self, conversation_id: str) -> TaskBoardView:
        """The whole board; its status knows neither `enabled` by setting nor `problem`."""
        ...

    async def page(self, conversation_id: str, cursor: str, limit: int, *, newest_first: bool) -> TaskPage:
        """Tasks by creation. Raises TaskRefused for a cursor or a limit that cannot be."""
        ...

    async def status(self, conversation_id: str) -> TrackingStatus:
        """Counts of its messages."""
        ...

    async def chosen(self, conversation_id: str) -> bool | None:
        """The user's choice for a conversation; None where the setting decides."""
        ...

    async def untasked(self, conversation_id: str) -> tuple[int, ...]:
        """Seqs of messages without a task."""
        ...

    async def edit(
        self, conversation_id: str, task_id: str, status: TaskStatus | None, description: str | None, at: float
    ) -> TrackedTask:
        """Change a task for the user. Raises TaskRefused."""
        ...

    async def remove(self, conversation_id: str, task_id: str, at: float) -> None:
        """Remove a task and close the gap. Raises TaskRefused."""
        ...
