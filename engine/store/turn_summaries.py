"""What each prompt of a conversation led to: tools, changed files, time and cost, in one look at the database."""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from engine.records import TurnSummary

FIRST_WORDS = 200
"""Characters of a prompt that are read: enough for one row, nothing of a pasted megabyte."""

_PROMPTS = """SELECT turn_id, seq, substr(ltrim(text, char(10, 13, 32, 9)), 1, ?) AS words, created_at
    FROM messages WHERE conversation_id = ? AND origin = 'human' AND role = 'user' AND silent = 0 ORDER BY seq"""
_TOOLS = """SELECT m.turn_id, c.name, count(*) AS calls, sum(c.status = 'error') AS failed
    FROM tool_calls AS c JOIN messages AS m ON m.id = c.assistant_message_id
    WHERE c.conversation_id = ? GROUP BY m.turn_id, c.name ORDER BY count(*) DESC, c.name"""
_FILES = """SELECT m.turn_id, json_extract(c.input_json, '$.path') AS path
    FROM tool_calls AS c JOIN messages AS m ON m.id = c.assistant_message_id
    WHERE c.conversation_id = ? AND c.name IN ('patch', 'write_file') AND c.status = 'success'
    AND json_valid(c.input_json) ORDER BY m.seq, c.ordinal"""
_RUNS = """SELECT turn_id, sum(duration_ms) AS spent, sum(cost_usd) AS cost, sum(cost_usd IS NULL) AS unknown
    FROM runs WHERE conversation_id = ? AND ended_at IS NOT NULL GROUP BY turn_id"""


def read(connection: sqlite3.Connection, conversation_id: str) -> list[TurnSummary]:
    """The prompts in order; where several belong to one turn, the last of them is given what it led to."""
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
            )
        )
    return found
