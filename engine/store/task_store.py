"""The store of the task board, and the passes of the task agent over the messages of a conversation."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from engine.machine.messages import Role
from engine.ports import OwnedElsewhere, RecordEvent, StorageError
from engine.ports.task_store import AppliedChanges, BoardChange, MessageTracking, TakenMessages
from engine.records import event_payloads as payloads
from engine.records.events import EventKind
from engine.records.runs import CallPurpose, ModelCall
from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus
from engine.store.connection import Transactions
from engine.store.events import add_event
from engine.store.messages import read_messages
from engine.store.moves import LOST
from engine.store.ownership import Instance
from engine.store.runs import record_call
from engine.store.tasks import (
    BoardWriter,
    edit_task,
    list_pending,
    list_untasked,
    mark_tracking,
    put_task_back,
    read_board,
    read_choice,
    read_page,
    read_status,
    read_tasks,
    remove_task,
    settle_tracking,
    store_problem,
)
from tools.fresh_ids import fresh_id

PREVIOUS: Final = 3
"""Messages before a pass that are shown for context (SPEC ACX-15)."""


def take_pass(connection: sqlite3.Connection, conversation_id: str, limit: int, at: float) -> TakenMessages:
    """Mark the oldest waiting messages as running; the reason of an earlier failure goes."""
    settle_tracking(connection, conversation_id, MessageTracking.RUNNING, MessageTracking.PENDING, at)
    store_problem(connection, conversation_id, "")
    seqs = list_pending(connection, conversation_id, limit)
    if not seqs:
        return TakenMessages()
    mark_tracking(connection, conversation_id, seqs, MessageTracking.RUNNING, at)
    taken = [one for seq in seqs for one in read_messages(connection, conversation_id, seq, seq, None)]
    before = read_messages(connection, conversation_id, 1, seqs[0] - 1, PREVIOUS)
    return TakenMessages(tuple(taken), tuple(one for one in before if one.role is not Role.SYSTEM))


def apply_changes(
    connection: sqlite3.Connection,
    conversation_id: str,
    seqs: Sequence[int],
    changes: Iterable[BoardChange],
    at: float,
    *,
    ends: bool,
) -> AppliedChanges:
    """Carry out the changes of one reply. Raises TaskRefused; the caller rolls everything back."""
    before = read_tasks(connection, conversation_id)
    board = BoardWriter(connection, conversation_id, frozenset(seqs), at)
    texts = tuple([board.apply(change) for change in changes])
    mark_tracking(connection, conversation_id, sorted(board.linked), MessageTracking.SUCCESS, at)
    if ends:
        settle_tracking(connection, conversation_id, MessageTracking.RUNNING, MessageTracking.SUCCESS, at)
    after = read_tasks(connection, conversation_id)
    add_task_events(connection, conversation_id, find_changed_tasks(before, after), at)
    return AppliedChanges(texts, tuple(after))


def find_changed_tasks(before: Iterable[TrackedTask], after: Iterable[TrackedTask]) -> list[TrackedTask]:
    """The tasks that are new or differ, in their order."""
    known = {task.id: task for task in before}
    return [task for task in after if known.get(task.id) != task]


def add_task_events(
    connection: sqlite3.Connection,
    conversation_id: str,
    changed: Iterable[TrackedTask],
    at: float,
    *,
    removed: bool = False,
) -> None:
    """Append an event for each changed task, of a reply or of the user, in the same transaction (SPEC SDK-20)."""
    for task in changed:
        payload = payloads.encoded(payloads.tracked_task(task, removed=removed))
        add_event(connection, conversation_id, RecordEvent(fresh_id(), EventKind.TRACKED_TASK_CHANGED, payload), at)


def count_spent_tokens(connection: sqlite3.Connection, conversation_id: str, since: float) -> int:
    """Tokens of the tracking calls that began after a time."""
    row = connection.execute(
        """SELECT COALESCE(sum(input_tokens + output_tokens + cache_creation_tokens + cache_read_tokens), 0) AS tokens
            FROM model_calls WHERE conversation_id = ? AND purpose = ? AND started_at > ?""",
        (conversation_id, CallPurpose.TRACKING, since),
    ).fetchone()
    return int(row["tokens"])


class SqliteTasks:
    """Shares the connections of its store; each change is one transaction."""

    def __init__(self, transactions: Transactions, instance: Instance) -> None:
        self._transactions = transactions
        self._instance = instance

    async def board(self, conversation_id: str) -> TaskBoardView:
        """See `TaskStore.board`."""
        return await self._transactions.read(lambda connection: read_board(connection, conversation_id))

    async def page(self, conversation_id: str, cursor: str, limit: int, *, newest_first: bool) -> TaskPage:
        """See `TaskStore.page`."""
        return await self._transactions.read(
            lambda connection: read_page(connection, conversation_id, cursor, limit, newest_first=newest_first)
        )

    async def status(self, conversation_id: str) -> TrackingStatus:
        """See `TaskStore.status`."""
        return await self._transactions.read(lambda connection: read_status(connection, conversation_id))

    async def untasked(self, conversation_id: str) -> tuple[int, ...]:
        """See `TaskStore.untasked`."""
        return await self._transactions.read(lambda connection: list_untasked(connection, conversation_id))

    async def chosen(self, conversation_id: str) -> bool | None:
        """See `TaskStore.chosen`."""
        return await self._transactions.read(lambda connection: read_choice(connection, conversation_id))

    async def edit(
        self, conversation_id: str, task_id: str, status: TaskStatus | None, description: str | None, at: float
    ) -> TrackedTask:
        """See `TaskStore.edit`."""

        def job(connection: sqlite3.Connection) -> TrackedTask:
            self._instance.owns(connection, conversation_id)  # raises where another process does
            before = read_tasks(connection, conversation_id)
            task = edit_task(connection, conversation_id, task_id, status, description, at)
            after = read_tasks(connection, conversation_id)
            add_task_events(connection, conversation_id, find_changed_tasks(before, after), at)
            return task

        return await self._transactions.write(job)

    async def remove(self, conversation_id: str, task_id: str, at: float) -> TrackedTask:
        """See `TaskStore.remove`."""

        def job(connection: sqlite3.Connection) -> TrackedTask:
            self._instance.owns(connection, conversation_id)
            removed = remove_task(connection, conversation_id, task_id)
            add_task_events(connection, conversation_id, [removed], at, removed=True)
            return removed

        return await self._transactions.write(job)

    async def put_back(self, conversation_id: str, removed: TrackedTask, at: float) -> TrackedTask:
        """See `TaskStore.put_back`."""

        def job(connection: sqlite3.Connection) -> TrackedTask:
            self._instance.owns(connection, conversation_id)
            task = put_task_back(connection, conversation_id, removed)
            add_task_events(connection, conversation_id, [task], at)
            return task

        return await self._transactions.write(job)

    async def pending(self, conversation_id: str) -> tuple[int, ...]:
        """See `TaskStore.pending`."""
        return await self._transactions.read(lambda connection: list_pending(connection, conversation_id))

    async def take(self, conversation_id: str, limit: int, at: float) -> TakenMessages:
        """See `TaskStore.take`."""

        def job(connection: sqlite3.Connection) -> TakenMessages:
            self._insist(connection, conversation_id)
            return take_pass(connection, conversation_id, limit, at)

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
            applied = apply_changes(connection, conversation_id, seqs, changes, at, ends=ends)
            for call in calls:
                record_call(connection, conversation_id, call)
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
            settle_tracking(connection, conversation_id, of, to, at)
            if problem is not None:
                store_problem(connection, conversation_id, problem)
            for call in calls:
                record_call(connection, conversation_id, call)

        await self._transactions.write(job)

    async def spent_tokens(self, conversation_id: str, since: float) -> int:
        """See `TaskStore.spent_tokens`."""
        return await self._transactions.read(lambda connection: count_spent_tokens(connection, conversation_id, since))

    def _insist(self, connection: sqlite3.Connection, conversation_id: str) -> None:
        """Only the owner of a conversation processes its messages. Raises StorageError."""
        try:
            owned = self._instance.owns(connection, conversation_id)
        except OwnedElsewhere as owner:
            raise StorageError(LOST) from owner
        if not owned:
            raise StorageError(LOST)
