"""Finds a text in one conversation, in every message and every tool call of it, without the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from engine.codec import storable
from engine.records import FoundText
from engine.search import occurrences
from engine.store.schema_search import CALL_TEXT


def find(connection: sqlite3.Connection, conversation_id: str, text: str) -> tuple[FoundText, ...]:
    """Where `text` stands, in the order of the transcript; a message before its calls."""
    wanted = storable(text)
    if not wanted:
        return ()
    low = wanted.lower()
    found = [
        FoundText(seq, call_id, len(occurrences(content, (wanted,))))
        for seq, _, call_id, content in _texts(connection, conversation_id)
        if low in content.lower()
    ]
    return tuple(one for one in found if one.count)


def _texts(connection: sqlite3.Connection, conversation_id: str) -> Iterator[tuple[int, int, str, str]]:
    """Sequence, ordinal, call id and text of all that is shown."""
    rows = connection.execute(
        f"""SELECT m.seq, -1 AS ordinal, '' AS call_id, m.text AS content FROM messages AS m
                WHERE m.conversation_id = :id AND m.silent = 0 AND m.text <> ''
            UNION ALL
            SELECT m.seq, t.ordinal, t.tool_use_id, {CALL_TEXT}
                FROM tool_calls AS t JOIN messages AS m ON m.id = t.assistant_message_id
                WHERE t.conversation_id = :id AND m.conversation_id = :id AND m.silent = 0
            ORDER BY 1, 2""",
        {"id": conversation_id},
    )
    return ((row["seq"], row["ordinal"], row["call_id"], row["content"] or "") for row in rows)
