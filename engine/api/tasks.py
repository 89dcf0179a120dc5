"""Interface of the task board for front ends (SPEC ACX-17 to ACX-19). Methods raise EngineError, StorageError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus


class TasksApi(Protocol):
    """The boards of all conversations; a conversation need not be open except for `flush`.

    Each change of a board that is open here is published as `engine.updates.TasksChanged`.
    """

    async def board(self, conversation_id: str) -> TaskBoardView:
        """The whole board with the messages of each task; an empty one for an unknown conversation."""
        ...

    async def page(
        self, conversation_id: str, cursor: str = "", limit: int = 20, *, newest_first: bool = False
    ) -> TaskPage:
        """Tasks by time of creation without their messages, 1 to 200 a page; `cursor` is that of the page before."""
        ...

    async def edit(
        self, conversation_id: str, task_id: str, status: TaskStatus | None = None, description: str | None = None
    ) -> TrackedTask:
        """Change status or text of a task for the user; None leaves it as it is."""
        ...

    async def remove(self, conversation_id: str, task_id: str) -> None:
        """Remove a task; its messages stay, without one, and the tasks behind it move up."""
        ...

    async def put_back(self, conversation_id: str) -> TrackedTask:
        """Put the task back that was removed last in this process, with its place, texts and messages."""
        ...

    async def flush(self, conversation_id: str) -> TrackingStatus:
        """Process waiting and failed messages of an open conversation now; waits up to a minute for another pass."""
        ...

    async def set_tracking(self, conversation_id: str, on: bool) -> TrackingStatus:
        """Switch tracking of one conversation on or off, whatever the setting says; off leaves waiting messages out."""
        ...

    async def untasked(self, conversation_id: str) -> tuple[int, ...]:
        """Seqs of the messages that belong to no task, ascending; notices are left out."""
        ...
