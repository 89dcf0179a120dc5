"""Finds a text in one conversation, in every message and every tool call of it, without the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from engine.codec import storable
from engine.records import FoundText
from engine.search import folded
from engine.store.conversations import escape_like
from engine.store.schema_search import CALL_TEXT


def find(connection: sqlite3.Connection, conversation_id: str, text: str) -> tuple[FoundText, ...]:
    """Find `text`, in the order of the transcript; a message before its calls."""
    wanted = storable(text)
    if not wanted:
        return ()
    found = [
        (seq, ordinal, FoundText(seq, call_id, count))
        for seq, ordinal, call_id, content in _texts(connection, conversation_id, wanted)
        if (count := folded(content or "").count(folded(wanted)))
    ]
    return tuple(one for _, _, one in sorted(found, key=lambda each: each[:2]))


def _texts(connection: sqlite3.Connection, conversation_id: str, wanted: str) -> Iterator[tuple[int, int, str, str]]:
    """Sequence, ordinal, call id and text of all that is shown and may hold `wanted`."""
    # LIKE passes most rows over without a copy; it knows the two cases of ASCII letters only.
    like = f"%{escape_like(wanted)}%" if wanted.isascii() else "%"
    rows = connection.execute(
        f"""SELECT seq, -1, '', text FROM messages
                WHERE conversation_id = :id AND silent = 0 AND text LIKE :like ESCAPE '\\'
            UNION ALL
            SELECT m.seq, t.ordinal, t.tool_use_id, {CALL_TEXT} AS said
                FROM tool_calls AS t CROSS JOIN messages AS m ON m.id = t.assistant_message_id
                WHERE t.conversation_id = :id AND said LIKE :like ESCAPE '\\' AND m.silent = 0""",
        {"id": conversation_id, "like": like},
    )
    return ((row[0], row[1], row[2], row[3]) for row in rows)
