"""Finds archived and deleted conversations whose retention is over (SPEC UNI-31), and their size."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

_EXPIRED = """WITH RECURSIVE gone (id, depth) AS (
        SELECT id, 0 FROM conversations
            WHERE kind = 'user' AND partial IS NULL AND COALESCE(deleted_at, archived_at) < :before
        UNION
        SELECT c.id, gone.depth + 1 FROM conversations AS c JOIN gone ON c.superseded_by = gone.id
            JOIN conversations AS head ON head.id = gone.id
            WHERE c.partial IS NULL AND c.deleted_at IS NULL AND c.archived_at IS NULL AND head.deleted_at IS NULL)
    SELECT c.id FROM gone JOIN conversations AS c ON c.id = gone.id GROUP BY c.id ORDER BY MAX(depth) DESC, c.rowid"""
"""Branches that an archived one took the place of go with it, and ahead of it, or they would be back in the list."""
_SIZE = """SELECT
    (SELECT COALESCE(SUM(length(content_json) + length(text)), 0) FROM messages WHERE conversation_id = c.id) +
    (SELECT COALESCE(SUM(length(input_json) + length(output_text) + length(output_json) + length(display_json)), 0)
        FROM tool_calls WHERE conversation_id = c.id) +
    (SELECT COALESCE(SUM(bytes), 0) FROM attachments WHERE conversation_id = c.id) AS size
    FROM conversations AS c"""


class PutAway(Struct, frozen=True):
    """Conversations in the archive and in the trash."""

    count: int = 0
    bytes: int = 0
    """Bytes of their texts and images."""
    expired: int = 0
    """Number of them that exceed the retention time."""


def expired(connection: sqlite3.Connection, before: float) -> list[str]:
    """Conversations archived or in the trash since before a time; for the trash, the time of removal counts."""
    return [row["id"] for row in connection.execute(_EXPIRED, {"before": before})]


def put_away(connection: sqlite3.Connection, before: float | None) -> PutAway:
    """Contents of archive and trash; `before` None: nothing expires. Reads every message of theirs."""
    rows = connection.execute(
        f"""{_SIZE} WHERE c.kind = 'user' AND c.partial IS NULL
            AND (c.archived_at IS NOT NULL OR c.deleted_at IS NOT NULL)"""
    ).fetchall()
    due = len(expired(connection, before)) if before is not None else 0
    return PutAway(len(rows), sum(row["size"] for row in rows), due)
