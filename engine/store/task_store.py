"""The store of the task board, and the passes of the task agent over the messages of a conversation."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from engine.machine.messages import Role
from engine.ports import OwnedElsewhere, RecordEvent, StorageError
from engine.ports.task_store import AppliedChanges, BoardChange, MessageTracking, TakenMessages
from engine.records import events as payloads
from engine.records.events import EventKind
from engine.records.runs import CallPurpose, ModelCall
from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus
from engine.store.connection import reads, writes
from engine.store.events import add_event
from engine.store.messages import read_messages
from engine.store.moves import LOST
from engine.store.ownership import OwnedTables
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
        payload = payloads.encode_payload(payloads.build_tracked_task(task, removed=removed))
        add_event(connection, conversation_id, RecordEvent(fresh_id(), EventKind.TRACKED_TASK_CHANGED, payload), at)


class TaskStore(OwnedTables):
    """Shares the connections of its store; each change is one transaction."""

    @reads
    def board(self, connection: sqlite3.Connection, conversation_id: str) -> TaskBoardView:
        """The whole board; its status does not know the effect of the setting."""
        return read_board(connection, conversation_id)

    @reads
    def page(
        self, connection: sqlite3.Connection, conversation_id: str, cursor: str, limit: int, *, newest_first: bool
    ) -> TaskPage:
        """Tasks by creation. Raises TaskRefused for a cursor or a limit that cannot be."""
        return read_page(connection, conversation_id, cursor, limit, newest_first=newest_first)

    @reads
    def status(self, connection: sqlite3.Connection, conversation_id: str) -> TrackingStatus:
        """Counts of its messages, and the stored reason why some wait or failed."""
        return read_status(connection, conversation_id)

    @reads
    def read_untasked(self, connection: sqlite3.Connection, conversation_id: str) -> tuple[int, ...]:
        """Seqs of messages without a task."""
        return list_untasked(connection, conversation_id)

    @reads
    def read_choice(self, connection: sqlite3.Connection, conversation_id: str) -> bool | None:
        """The user's choice for a conversation; None where the setting decides."""
        return read_choice(connection, conversation_id)

    @writes
    def edit(
        self,
        connection: sqlite3.Connection,
        conversation_id: str,
        task_id: str,
        status: TaskStatus | None,
        description: str | None,
        at: float,
    ) -> TrackedTask:
        """Change a task for the user. Raises TaskRefused, OwnedElsewhere."""
        self._instance.owns(connection, conversation_id)  # raises where another process does
        before = read_tasks(connection, conversation_id)
        task = edit_task(connection, conversation_id, task_id, status, description, at)
        after = read_tasks(connection, conversation_id)
        add_task_events(connection, conversation_id, find_changed_tasks(before, after), at)
        return task

    @writes
    def remove(self, connection: sqlite3.Connection, conversation_id: str, task_id: str, at: float) -> TrackedTask:
        """Remove a task, close the gap, and return it with its messages. Raises TaskRefused, OwnedElsewhere."""
        self._instance.owns(connection, conversation_id)
        removed = remove_task(connection, conversation_id, task_id)
        add_task_events(connection, conversation_id, [removed], at, removed=True)
        return removed

    @writes
    def put_back(
        self, connection: sqlite3.Connection, conversation_id: str, removed: TrackedTask, at: float
    ) -> TrackedTask:
        """Put a removed task back as it was, at its place, with those of its messages that have no other task now.

        Raises:
            TaskRefused: the board is full, or it is the planning section.
            OwnedElsewhere: another process has the conversation.
        """
        self._instance.owns(connection, conversation_id)
        task = put_task_back(connection, conversation_id, removed)
        add_task_events(connection, conversation_id, [task], at)
        return task

    @reads
    def pending(self, connection: sqlite3.Connection, conversation_id: str) -> tuple[int, ...]:
        """Seqs of messages that wait, ascending."""
        return list_pending(connection, conversation_id)

    @writes
    def take(self, connection: sqlite3.Connection, conversation_id: str, limit: int, at: float) -> TakenMessages:
        """Mark up to `limit` of the oldest waiting messages as running; nothing else of this conversation is.

        Messages that a failed write left running wait again first: passes of a conversation never overlap.
        """
        self._insist(connection, conversation_id)
        settle_tracking(connection, conversation_id, MessageTracking.RUNNING, MessageTracking.PENDING, at)
        store_problem(connection, conversation_id, "")
        seqs = list_pending(connection, conversation_id, limit)
        if not seqs:
            return TakenMessages()
        mark_tracking(connection, conversation_id, seqs, MessageTracking.RUNNING, at)
        taken = [one for seq in seqs for one in read_messages(connection, conversation_id, seq, seq, None)]
        before = read_messages(connection, conversation_id, 1, seqs[0] - 1, PREVIOUS)
        return TakenMessages(tuple(taken), tuple(one for one in before if one.role is not Role.SYSTEM))

    @writes
    def apply(
        self,
        connection: sqlite3.Connection,
        conversation_id: str,
        seqs: Sequence[int],
        changes: Sequence[BoardChange],
        calls: Sequence[ModelCall],
        at: float,
        *,
        ends: bool = False,
    ) -> AppliedChanges:
        """Carry out the changes of one reply in one transaction, or none of them (SPEC ACX-14).

        `seqs` are the messages of the pass. Those that a change linked have succeeded, and with `ends` all of them, so
        that no crash lets one be processed twice.

        Raises:
            TaskRefused: one change is not possible; nothing was written, the calls neither.
        """
        self._insist(connection, conversation_id)
        before = read_tasks(connection, conversation_id)
        board = BoardWriter(connection, conversation_id, frozenset(seqs), at)
        texts = tuple([board.apply(change) for change in changes])
        mark_tracking(connection, conversation_id, sorted(board.linked), MessageTracking.SUCCESS, at)
        if ends:
            settle_tracking(connection, conversation_id, MessageTracking.RUNNING, MessageTracking.SUCCESS, at)
        after = read_tasks(connection, conversation_id)
        add_task_events(connection, conversation_id, find_changed_tasks(before, after), at)
        applied = AppliedChanges(texts, tuple(after))
        for call in calls:
            record_call(connection, conversation_id, call)
        return applied

    @writes
    def settle(
        self,
        connection: sqlite3.Connection,
        conversation_id: str,
        to: MessageTracking,
        at: float,
        calls: Sequence[ModelCall] = (),
        *,
        of: MessageTracking = MessageTracking.RUNNING,
        problem: str | None = None,
    ) -> None:
        """Change the progress of all its messages with the progress `of`, and record ended calls.

        `problem` is the reason in one sentence, which the status has until the next pass; None leaves it as it is.
        """
        self._insist(connection, conversation_id)
        settle_tracking(connection, conversation_id, of, to, at)
        if problem is not None:
            store_problem(connection, conversation_id, problem)
        for call in calls:
            record_call(connection, conversation_id, call)

    @reads
    def sum_tokens(self, connection: sqlite3.Connection, conversation_id: str, since: float) -> int:
        """Tokens of its tracking calls that began after a time."""
        row = connection.execute(
            """SELECT COALESCE(sum(input_tokens + output_tokens + cache_creation_tokens + cache_read_tokens), 0)
                AS tokens
                FROM model_calls WHERE conversation_id = ? AND purpose = ? AND started_at > ?""",
            (conversation_id, CallPurpose.TRACKING, since),
        ).fetchone()
        return int(row["tokens"])

    def _insist(self, connection: sqlite3.Connection, conversation_id: str) -> None:
        """Only the owner of a conversation processes its messages. Raises StorageError."""
        try:
            owned = self._instance.owns(connection, conversation_id)
        except OwnedElsewhere as owner:
            raise StorageError(LOST) from owner
        if not owned:
            raise StorageError(LOST)
