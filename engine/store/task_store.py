"""`engine.ports.task_store.TaskStore` on SQLite: the task board of every conversation."""

from __future__ import annotations

import sqlite3

from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus
from engine.store import task_changes, task_rows
from engine.store.connection import Transactions
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
            self._instance.owns(connection, conversation_id)
            return task_changes.edit(connection, conversation_id, task_id, status, description, at)

        return await self._transactions.write(job)

    async def remove(self, conversation_id: str, task_id: str, at: float) -> None:
        """See `TaskStore.remove`."""

        def job(connection: sqlite3.Connection) -> None:
            self._instance.owns(connection, conversation_id)
            task_changes.remove(connection, conversation_id, task_id, at)

        await self._transactions.write(job)
