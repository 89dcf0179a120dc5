"""`engine.ports.task_store.TaskStore` on SQLite: the task board of every conversation."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from engine.ports import OwnedElsewhere, StorageError
from engine.ports.task_store import AppliedChanges, BoardChange, MessageTracking, TakenMessages
from engine.records.model_calls import ModelCall
from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus
from engine.store import runs, task_changes, task_passes, task_progress, task_rows, task_undo
from engine.store.connection import Transactions
from engine.store.moves import LOST
from engine.store.ownership import Instance


class SqliteTasks:
    """Shares the connections of its store; each change is one transaction."""

    def __init__(self, transactions: Transactions, instance: Instance) -> None:
        self._transactions = transactions
        self._instance = instance

    async def board(self, conversation_id: str) -> TaskBoardView:
        """See `TaskStore.board`."""
        return await self._transactions.read(lambda connection: task_rows.board(connection, conversation_id))

    async def page(self, conversation_id: str, cursor: str, limit: int, *, newest_first: bool) -> TaskPage:
        """See `TaskStore.page`."""
        return await self._transactions.read(
            lambda connection: task_rows.page(connection, conversation_id, cursor, limit, newest_first=newest_first)
        )

    async def status(self, conversation_id: str) -> TrackingStatus:
        """See `TaskStore.status`."""
        return await self._transactions.read(lambda connection: task_rows.status(connection, conversation_id))

    async def untasked(self, conversation_id: str) -> tuple[int, ...]:
        """See `TaskStore.untasked`."""
        return await self._transactions.read(lambda connection: task_rows.untasked(connection, conversation_id))

    async def chosen(self, conversation_id: str) -> bool | None:
        """See `TaskStore.chosen`."""
        return await self._transactions.read(lambda connection: task_rows.chosen(connection, conversation_id))

    async def edit(
        self, conversation_id: str, task_id: str, status: TaskStatus | None, description: str | None, at: float
    ) -> TrackedTask:
        """See `TaskStore.edit`."""

        def job(connection: sqlite3.Connection) -> TrackedTask:
            self._instance.owns(connection, conversation_id)  # raises where another process does
            before = task_rows.tasks_of(connection, conversation_id)
            task = task_changes.edit(connection, conversation_id, task_id, status, description, at)
            after = task_rows.tasks_of(connection, conversation_id)
            task_passes.record_changes(connection, conversation_id, task_passes.changed_tasks(before, after), at)
            return task

        return await self._transactions.write(job)

    async def remove(self, conversation_id: str, task_id: str, at: float) -> TrackedTask:
        """See `TaskStore.remove`."""

        def job(connection: sqlite3.Connection) -> TrackedTask:
            self._instance.owns(connection, conversation_id)
            removed = task_changes.remove(connection, conversation_id, task_id)
            task_passes.record_changes(connection, conversation_id, [removed], at, removed=True)
            return removed

        return await self._transactions.write(job)

    async def put_back(self, conversation_id: str, removed: TrackedTask, at: float) -> TrackedTask:
        """See `TaskStore.put_back`."""

        def job(connection: sqlite3.Connection) -> TrackedTask:
            self._instance.owns(connection, conversation_id)
            task = task_undo.put_back(connection, conversation_id, removed)
            task_passes.record_changes(connection, conversation_id, [task], at)
            return task

        return await self._transactions.write(job)

    async def pending(self, conversation_id: str) -> tuple[int, ...]:
        """See `TaskStore.pending`."""
        return await self._transactions.read(lambda connection: task_progress.pending(connection, conversation_id))

    async def take(self, conversation_id: str, limit: int, at: float) -> TakenMessages:
        """See `TaskStore.take`."""

        def job(connection: sqlite3.Connection) -> TakenMessages:
            self._insist(connection, conversation_id)
            return task_passes.take(connection, conversation_id, limit, at)

        return await self._transactions.write(job)

    async def apply(
        self,
        conversation_id: str,
        seqs: Sequence[int],
        changes: Sequence[BoardChange],
        calls: Sequence[ModelCall],
        at: float,
        *,
        ends: bool = False,
    ) -> AppliedChanges:
        """See `TaskStore.apply`."""

        def job(connection: sqlite3.Connection) -> AppliedChanges:
            self._insist(connection, conversation_id)
            applied = task_passes.apply(connection, conversation_id, seqs, changes, at, ends=ends)
            for call in calls:
                runs.record_call(connection, conversation_id, call)
            return applied

        return await self._transactions.write(job)

    async def settle(
        self,
        conversation_id: str,
        to: MessageTracking,
        at: float,
        calls: Sequence[ModelCall] = (),
        *,
        of: MessageTracking = MessageTracking.RUNNING,
        problem: str | None = None,
    ) -> None:
        """See `TaskStore.settle`."""

        def job(connection: sqlite3.Connection) -> None:
            self._insist(connection, conversation_id)
            task_progress.settle(connection, conversation_id, of, to, at)
            if problem is not None:
                task_progress.keep_problem(connection, conversation_id, problem)
            for call in calls:
                runs.record_call(connection, conversation_id, call)

        await self._transactions.write(job)

    async def spent_tokens(self, conversation_id: str, since: float) -> int:
        """See `TaskStore.spent_tokens`."""
        return await self._transactions.read(
            lambda connection: task_passes.spent_tokens(connection, conversation_id, since)
        )

    def _insist(self, connection: sqlite3.Connection, conversation_id: str) -> None:
        """Only the owner of a conversation processes its messages. Raises StorageError."""
        try:
            owned = self._instance.owns(connection, conversation_id)
        except OwnedElsewhere as owner:
            raise StorageError(LOST) from owner
        if not owned:
            raise StorageError(LOST)
