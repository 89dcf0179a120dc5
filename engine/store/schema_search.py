"""The search index: one row for each message and settled tool call, its trigrams, and the triggers that keep both true.

Triggers and not code, so that whatever writes `messages` and `tool_calls` (moves, forks, imports, recovery, purges and
what cascades from them) keeps the index in the same transaction. Measured against `detail=full`, `detail=none` takes a
fifth of the disk and a third of the time; the price is that phrases are verified on the texts of the candidates.
"""

from __future__ import annotations

import sqlite3
from typing import Final

FIRST_ID: Final = 200_000_000
"""The id of the first row; older messages are numbered down from here, so ids rise with time, in four bytes."""
INDEXED_LENGTH: Final = 200_000
"""Characters of one text that are indexed: a pasted file of many megabytes must not delay its own commit."""
_SETTLED: Final = "('success', 'error', 'cancelled', 'skipped', 'interrupted')"


def _call_text(row: str) -> str:
    """Input of a tool, without the JSON around it, and its output."""
    said = (
        f"CASE WHEN json_valid({row}.input_json) THEN (SELECT group_concat(atom, char(10))"
        f" FROM json_tree({row}.input_json) WHERE type = 'text') ELSE {row}.input_json END"
    )
    return f"substr(COALESCE({said}, '') || char(10) || {row}.output_text, 1, {INDEXED_LENGTH})"


def _message_text(row: str) -> str:
    return f"substr({row}.text, 1, {INDEXED_LENGTH})"


def _is_message(row: str) -> str:
    """Condition that leaves out notices and silent messages, which are not searched."""
    return f"{row}.silent = 0 AND {row}.role <> 'system' AND {row}.text <> ''"


def _is_call(row: str) -> str:
    return f"{row}.status IN {_SETTLED}"


def _add(speaker: str, created_at: str, text: str, condition: str) -> str:
    return f"""INSERT INTO search_rows (id, source, conversation_id, speaker, created_at)
            SELECT MAX(COALESCE((SELECT id FROM search_rows ORDER BY id DESC LIMIT 1), 0), {FIRST_ID - 1}) + 1,
            NEW.id, NEW.conversation_id, {speaker}, {created_at} WHERE {condition};
        INSERT INTO search_index (rowid, text) SELECT id, {text} FROM search_rows WHERE source = NEW.id;"""


def _remove(text: str) -> str:
    return f"""INSERT INTO search_index (search_index, rowid, text)
            SELECT 'delete', id, {text} FROM search_rows WHERE source = OLD.id;
        DELETE FROM search_rows WHERE source = OLD.id;"""


_ADD_MESSAGE = _add("NEW.role", "NEW.created_at", _message_text("NEW"), _is_message("NEW"))
_ADD_CALL = _add("'tool'", "COALESCE(NEW.ended_at, NEW.started_at, 0)", _call_text("NEW"), _is_call("NEW"))
_REMOVE_MESSAGE = _remove(_message_text("OLD"))
_REMOVE_CALL = _remove(_call_text("OLD"))

_TABLES: Final = (
    """CREATE TABLE search_rows (
        id INTEGER PRIMARY KEY,
        source TEXT NOT NULL UNIQUE,
        conversation_id TEXT NOT NULL,
        speaker TEXT NOT NULL CHECK (speaker IN ('user', 'assistant', 'tool')),
        created_at REAL NOT NULL)""",
    "CREATE INDEX search_rows_time ON search_rows (created_at)",
    f"""CREATE VIEW search_texts AS SELECT r.id AS id, CASE r.speaker
        WHEN 'tool' THEN (SELECT {_call_text("t")} FROM tool_calls AS t WHERE t.id = r.source)
        ELSE (SELECT {_message_text("m")} FROM messages AS m WHERE m.id = r.source) END AS text
        FROM search_rows AS r""",
    """CREATE VIRTUAL TABLE search_index USING fts5 (
        text, content = 'search_texts', content_rowid = 'id', columnsize = 0, detail = none, tokenize = 'trigram')""",
    "CREATE TABLE search_backlog (below INTEGER NOT NULL, total INTEGER NOT NULL)",
    "INSERT INTO search_backlog SELECT COALESCE(MAX(rowid), 0) + 1, COALESCE(MAX(rowid), 0) FROM messages",
)
_TRIGGERS: Final = (
    f"CREATE TRIGGER search_message_added AFTER INSERT ON messages WHEN {_is_message('NEW')} BEGIN {_ADD_MESSAGE} END",
    f"CREATE TRIGGER search_message_removed AFTER DELETE ON messages BEGIN {_REMOVE_MESSAGE} END",
    f"""CREATE TRIGGER search_message_changed AFTER UPDATE OF text, silent, role ON messages
        BEGIN {_REMOVE_MESSAGE} {_ADD_MESSAGE} END""",
    f"CREATE TRIGGER search_call_added AFTER INSERT ON tool_calls WHEN {_is_call('NEW')} BEGIN {_ADD_CALL} END",
    f"CREATE TRIGGER search_call_removed AFTER DELETE ON tool_calls BEGIN {_REMOVE_CALL} END",
    f"""CREATE TRIGGER search_call_changed AFTER UPDATE OF status, input_json, output_text ON tool_calls
        WHEN {_is_call("OLD")} OR {_is_call("NEW")} BEGIN {_REMOVE_CALL} {_ADD_CALL} END""",
)

CALL_TEXT: Final = _call_text("t")
"""The text of a tool call `t`."""
OLDER_TEXTS: Final = f"""
    SELECT m.id AS source, m.conversation_id, m.role AS speaker, m.created_at, m.rowid AS place, -1 AS ordinal
        FROM messages AS m WHERE m.rowid BETWEEN :first AND :last AND {_is_message("m")}
    UNION ALL
    SELECT t.id, t.conversation_id, 'tool', COALESCE(t.ended_at, t.started_at, 0), m.rowid, t.ordinal
        FROM messages AS m JOIN tool_calls AS t ON t.assistant_message_id = m.id
        WHERE m.rowid BETWEEN :first AND :last AND {_is_call("t")}
    ORDER BY place, ordinal"""
"""Texts to index of the messages `first` to `last` by rowid, in their order."""


def add_search_index(connection: sqlite3.Connection) -> None:
    """Create the empty index; older messages are indexed in slices afterwards (`engine.store.message_search`)."""
    for statement in (*_TABLES, *_TRIGGERS):
        connection.execute(statement)
