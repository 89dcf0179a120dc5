"""Attempts to make the context of a conversation shorter: when, why, and with what result (SPEC CLAW-30)."""

from __future__ import annotations

import sqlite3

from engine.codec import storable
from engine.machine.views import CompactionCause, CompactionFacts, CompactionKind
from engine.ports import RecordCompaction
from engine.records import StoredCompaction

LISTED = 100
"""Newest attempts that are listed."""


def add(connection: sqlite3.Connection, conversation_id: str, write: RecordCompaction, at: float) -> None:
    """Store one attempt; a summary that took effect counts in `conversations.compaction_count`."""
    facts = write.facts
    connection.execute(
        """INSERT INTO compactions (id, conversation_id, at, cause, kind, message_count, first_seq, start_seq, messages,
            tokens_before, tokens_after, problem) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            write.id,
            conversation_id,
            at,
            facts.cause.value,
            facts.kind.value,
            facts.message_count,
            facts.first_seq,
            facts.start_seq,
            facts.messages,
            facts.tokens_before,
            facts.tokens_after,
            storable(facts.problem),
        ),
    )
    if facts.kind is CompactionKind.SUMMARY:
        connection.execute(
            "UPDATE conversations SET compaction_count = compaction_count + 1 WHERE id = ?", (conversation_id,)
        )


def newest(connection: sqlite3.Connection, conversation_id: str) -> list[StoredCompaction]:
    """The newest attempts, newest first."""
    rows = connection.execute(
        "SELECT * FROM compactions WHERE conversation_id = ? ORDER BY message_count DESC, rowid DESC LIMIT ?",
        (conversation_id, LISTED),
    )
    return [
        StoredCompaction(
            row["at"],
            CompactionFacts(
                CompactionCause(row["cause"]),
                CompactionKind(row["kind"]),
                row["message_count"],
                row["first_seq"],
                row["start_seq"],
                row["messages"],
                row["tokens_before"],
                row["tokens_after"],
                row["problem"],
            ),
        )
        for row in rows
    ]
