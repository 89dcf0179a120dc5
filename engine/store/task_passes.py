"""Passes over the messages of a conversation: taken, applied to the board reply by reply, and settled."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from engine.machine.messages import Role
from engine.ports import RecordEvent
from engine.ports.task_store import AppliedChanges, BoardChange, MessageTracking, TakenMessages
from engine.records import event_payloads as payloads
from engine.records.events import EventKind
from engine.records.model_calls import CallPurpose
from engine.records.tracked_tasks import TrackedTask
from engine.store import event_rows, messages
from engine.store.task_board import BoardWriter
from engine.store.task_progress import keep_problem, mark, pending, settle
from engine.store.task_rows import tasks_of
from tools.fresh_ids import fresh_id

PREVIOUS: Final = 3
"""Messages before a pass that are shown for context (SPEC ACX-15)."""


def take(connection: sqlite3.Connection, conversation_id: str, limit: int, at: float) -> TakenMessages:
    """Mark the oldest waiting messages as running; the reason of an earlier failure goes."""
    settle(connection, conversation_id, MessageTracking.RUNNING, MessageTracking.PENDING, at)
    keep_problem(connection, conversation_id, "")
    seqs = pending(connection, conversation_id, limit)
    if not seqs:
        return TakenMessages()
    mark(connection, conversation_id, seqs, MessageTracking.RUNNING, at)
    taken = [one for seq in seqs for one in messages.read_range(connection, conversation_id, seq, seq, None)]
    before = messages.read_range(connection, conversation_id, 1, seqs[0] - 1, PREVIOUS)
    return TakenMessages(tuple(taken), tuple(one for one in before if one.role is not Role.SYSTEM))


def apply(
    connection: sqlite3.Connection,
    conversation_id: str,
    seqs: Sequence[int],
    changes: Iterable[BoardChange],
    at: float,
    *,
    ends: bool,
) -> AppliedChanges:
    """Carry out the changes of one reply. Raises TaskRefused; the caller rolls everything back."""
    before = tasks_of(connection, conversation_id)
    board = BoardWriter(connection, conversation_id, frozenset(seqs), at)
    texts = tuple([board.apply(change) for change in changes])
    mark(connection, conversation_id, sorted(board.linked), MessageTracking.SUCCESS, at)
    if ends:
        settle(connection, conversation_id, MessageTracking.RUNNING, MessageTracking.SUCCESS, at)
    after = tasks_of(connection, conversation_id)
    record_changes(connection, conversation_id, changed_tasks(before, after), at)
    return AppliedChanges(texts, tuple(after))


def changed_tasks(before: Iterable[TrackedTask], after: Iterable[TrackedTask]) -> list[TrackedTask]:
    """The tasks that are new or differ, in their order."""
    known = {task.id: task for task in before}
    return [task for task in after if known.get(task.id) != task]


def record_changes(
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
        event_rows.add(
            connection, conversation_id, RecordEvent(fresh_id(), EventKind.TRACKED_TASK_CHANGED, payload), at
        )


def spent_tokens(connection: sqlite3.Connection, conversation_id: str, since: float) -> int:
    """Tokens of the tracking calls that began after a time."""
    row = connection.execute(
        """SELECT COALESCE(sum(input_tokens + output_tokens + cache_creation_tokens + cache_read_tokens), 0) AS tokens
            FROM model_calls WHERE conversation_id = ? AND purpose = ? AND started_at > ?""",
        (conversation_id, CallPurpose.TRACKING, since),
    ).fetchone()
    return int(row["tokens"])
