"""Effects of each prompt of a conversation: tools, changed files, time and cost, in one query."""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from engine.codec import storable
from engine.records.turns import TurnDigest, TurnNote, TurnSummary

FIRST_WORDS = 200
"""Characters of a prompt that are read: enough for one row, nothing of a pasted megabyte."""

_PROMPTS = """SELECT turn_id, seq, substr(ltrim(text, char(10, 13, 32, 9)), 1, ?) AS words, created_at
    FROM messages WHERE conversation_id = ? AND origin = 'human' AND role = 'user' AND silent = 0 ORDER BY seq"""
_NOTES = "SELECT id, summary FROM turns WHERE conversation_id = ? AND summary IS NOT NULL"
_TOOLS = """SELECT m.turn_id, c.name, count(*) AS calls, sum(c.status = 'error') AS failed
    FROM tool_calls AS c JOIN messages AS m ON m.id = c.assistant_message_id
    WHERE c.conversation_id = ? GROUP BY m.turn_id, c.name ORDER BY count(*) DESC, c.name"""
_FILES = """SELECT m.turn_id, json_extract(c.input_json, '$.path') AS path
    FROM tool_calls AS c JOIN messages AS m ON m.id = c.assistant_message_id
    WHERE c.conversation_id = ? AND c.name IN ('patch', 'write_file') AND c.status = 'success'
    AND json_valid(c.input_json) ORDER BY m.seq, c.ordinal"""
_RUNS = """SELECT turn_id, sum(duration_ms) AS spent, sum(cost_usd) AS cost, sum(cost_usd IS NULL) AS unknown
    FROM runs WHERE conversation_id = ? AND ended_at IS NOT NULL GROUP BY turn_id"""

EXCERPT = 2_000
"""Characters of one message that a summary is made from."""
MOST_PROMPTS = 4
"""Messages of the user within one turn that it is made from."""
MOST_FILES = 20
"""Changed files that it may name."""

_NEWEST = "SELECT id, turn_number FROM turns WHERE conversation_id = ? ORDER BY turn_number DESC LIMIT 1"
_ASKED = """SELECT substr(text, 1, ?) AS words FROM messages
    WHERE turn_id = ? AND origin = 'human' AND role = 'user' AND silent = 0 ORDER BY seq LIMIT ?"""
_ANSWERED = """SELECT substr(text, 1, ?) AS words FROM messages
    WHERE turn_id = ? AND role = 'assistant' AND trim(text) <> '' ORDER BY seq DESC LIMIT 1"""
_CALLED = """SELECT c.name, count(*) AS calls
    FROM messages AS m JOIN tool_calls AS c ON c.assistant_message_id = m.id WHERE m.turn_id = ?
    GROUP BY c.name ORDER BY count(*) DESC, c.name"""
_CHANGED = """SELECT DISTINCT json_extract(c.input_json, '$.path') AS path
    FROM messages AS m JOIN tool_calls AS c ON c.assistant_message_id = m.id
    WHERE m.turn_id = ? AND c.name IN ('patch', 'write_file') AND c.status = 'success'
    AND json_valid(c.input_json) ORDER BY m.seq, c.ordinal LIMIT ?"""


def newest(connection: sqlite3.Connection, conversation_id: str) -> TurnDigest | None:
    """Digest of the newest turn; None without turns."""
    turn = connection.execute(_NEWEST, (conversation_id,)).fetchone()
    if turn is None:
        return None
    asked = connection.execute(_ASKED, (EXCERPT, turn["id"], MOST_PROMPTS)).fetchall()
    answered = connection.execute(_ANSWERED, (EXCERPT, turn["id"])).fetchone()
    tools = connection.execute(_CALLED, (turn["id"],)).fetchall()
    files = [row["path"] for row in connection.execute(_CHANGED, (turn["id"], MOST_FILES))]
    return TurnDigest(
        number=turn["turn_number"],
        asked="\n".join(row["words"].strip() for row in asked).strip(),
        answered=answered["words"].strip() if answered is not None else "",
        tools=tuple((row["name"], row["calls"]) for row in tools),
        files=tuple(path for path in files if isinstance(path, str)),
    )


def keep(connection: sqlite3.Connection, conversation_id: str, note: TurnNote) -> None:
    """Write the summary of one turn."""
    connection.execute(
        "UPDATE turns SET summary = ? WHERE conversation_id = ? AND turn_number = ?",
        (storable(note.text), conversation_id, note.number),
    )


def read(connection: sqlite3.Connection, conversation_id: str) -> list[TurnSummary]:
    """The prompts in order; where several belong to one turn, the last of them has its effects."""
    tools: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    failed: defaultdict[str, int] = defaultdict(int)
    for row in connection.execute(_TOOLS, (conversation_id,)):
        tools[row["turn_id"]].append((row["name"], row["calls"]))
        failed[row["turn_id"]] += row["failed"]
    files: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for row in connection.execute(_FILES, (conversation_id,)):
        if isinstance(row["path"], str):
            files[row["turn_id"]][row["path"]] = None
    spent = {row["turn_id"]: row for row in connection.execute(_RUNS, (conversation_id,))}
    notes = {row["id"]: row["summary"] for row in connection.execute(_NOTES, (conversation_id,))}
    prompts = connection.execute(_PROMPTS, (FIRST_WORDS, conversation_id)).fetchall()
    last_of_turn = {row["turn_id"]: row["seq"] for row in prompts}
    found: list[TurnSummary] = []
    for row in prompts:
        turn = row["turn_id"] if last_of_turn[row["turn_id"]] == row["seq"] else ""
        run = spent.get(turn)
        found.append(
            TurnSummary(
                seq=row["seq"],
                words=row["words"].split("\n", 1)[0],
                created_at=row["created_at"],
                tools=tuple(tools.get(turn, ())),
                failed=failed.get(turn, 0),
                files=tuple(files.get(turn, ())),
                seconds=(run["spent"] or 0) / 1000 if run is not None else 0.0,
                cost_usd=run["cost"] if run is not None and not run["unknown"] else None,
                summary=notes.get(turn, ""),
            )
        )
    return found
