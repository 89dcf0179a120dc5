"""Task boards in memory for tests of screens."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus


class FakeTasks:
    """Boards that a test sets."""

    def __init__(self, publish: Callable[[str, TrackingStatus], None]) -> None:
        self.boards: dict[str, TaskBoardView] = {}
        self.loose: dict[str, tuple[int, ...]] = {}
        """Seqs of messages without a task."""
        self.flushed: list[str] = []
        self.removed: list[TrackedTask] = []
        self._publish = publish

    def set(self, conversation_id: str, view: TaskBoardView) -> None:
        """Make this the board, and tell viewers."""
        self.boards[conversation_id] = view
        self._publish(conversation_id, view.status)

    async def board(self, conversation_id: str) -> TaskBoardView:
        return self.boards.get(conversation_id, TaskBoardView())

    async def page(
        self, conversation_id: str, cursor: str = "", limit: int = 20, *, newest_first: bool = False
    ) -> TaskPage:
        tasks = (await self.board(conversation_id)).tasks
        ordered = tuple(reversed(tasks)) if newest_first else tasks
        first = int(cursor or 0)
        shown = tuple(replace(task, message_seqs=()) for task in ordered[first : first + limit])
        return TaskPage(shown, str(first + limit) if first + limit < len(ordered) else "")

    async def edit(
        self, conversation_id: str, task_id: str, status: TaskStatus | None = None, description: str | None = None
    ) -> TrackedTask:
        view, found = await self._found(conversation_id, task_id)
        changed = replace(found, status=status or found.status, description=description or found.description)
        tasks = tuple(changed if task.id == task_id else task for task in view.tasks)
        self.set(conversation_id, replace(view, tasks=tasks))
        return changed

    async def remove(self, conversation_id: str, task_id: str) -> None:
        view, found = await self._found(conversation_id, task_id)
        self.removed.append(found)
        kept = [task for task in view.tasks if task.id != task_id]
        self.loose[conversation_id] = (*self.loose.get(conversation_id, ()), *found.message_seqs)
        tasks = tuple(replace(task, order=order) for order, task in enumerate(kept, start=1))
        self.set(conversation_id, replace(view, tasks=tasks))

    async def put_back(self, conversation_id: str) -> TrackedTask:
        if not self.removed:
            raise EngineError("There is nothing to undo.")
        last, view = self.removed.pop(), await self.board(conversation_id)
        self.loose[conversation_id] = tuple(
            seq for seq in self.loose.get(conversation_id, ()) if seq not in last.message_seqs
        )
        tasks = (*view.tasks[: last.order - 1], last, *view.tasks[last.order - 1 :])
        numbered = tuple(replace(task, order=order) for order, task in enumerate(tasks, start=1))
        self.set(conversation_id, replace(view, tasks=numbered))
        return last

    async def flush(self, conversation_id: str, *, earlier: bool = True) -> TrackingStatus:
        self.flushed.append(conversation_id)
        view = await self.board(conversation_id)
        done = replace(view.status, success=view.status.success + view.status.pending, pending=0)
        self.set(conversation_id, replace(view, status=done))
        return done

    async def set_tracking(self, conversation_id: str, on: bool) -> TrackingStatus:
        view = await self.board(conversation_id)
        self.set(conversation_id, replace(view, status=replace(view.status, enabled=on)))
        return replace(view.status, enabled=on)

    async def find_untasked(self, conversation_id: str) -> tuple[int, ...]:
        return self.loose.get(conversation_id, ())

    async def _found(self, conversation_id: str, task_id: str) -> tuple[TaskBoardView, TrackedTask]:
        view = await self.board(conversation_id)
        found = next((task for task in view.tasks if task.id == task_id), None)
        if found is None:
            raise EngineError("This task is no longer on the board.")
        return view, found
