"""The columns of `runs` about a run's files, usage and cost, and reading them back (SPEC SDK-08)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from engine.codec import CodecError, decode_usage, encode_usage, storable
from engine.machine.effects import SaveRoute, Strategy
from engine.machine.messages import Usage
from engine.records.runs import ModelUsage, RunAgents, RunRecord
from engine.records.totals import total_cost
from engine.store import model_calls

TYPES = {"review": "code_review", "code": "code_generate", "explore": "research", "research": "research"}
"""Types of runs by profile (SPEC SDK-07); all others are general."""
FIRST_WORDS = 200
"""Characters of the prompt that are read."""


class RunFigures(Struct, frozen=True):
    """Files that a run wrote, and its usage."""

    artifacts: tuple[str, ...]
    usage: Usage
    cost_usd: float | None
    duration_ms: int
    iterations: int


_WRITTEN = """SELECT json_extract(t.input_json, '$.path') AS path
    FROM tool_calls AS t JOIN messages AS m ON m.id = t.assistant_message_id
    WHERE m.run_id = ? AND t.name IN ('patch', 'write_file') AND t.status = 'success' AND json_valid(t.input_json)
    ORDER BY m.seq, t.ordinal"""
_RUNS = """SELECT r.*, substr(ltrim(m.text, char(10, 13, 32, 9)), 1, ?) AS words
    FROM runs AS r LEFT JOIN messages AS m ON m.id = r.trigger_message_id
    WHERE r.conversation_id = ? ORDER BY r.rowid DESC LIMIT ?"""
_AGENTS = """SELECT c.id, c.result_status, r.cost_usd, r.usage_json, r.artifacts_json, r.ended_at
    FROM conversations AS c LEFT JOIN runs AS r ON r.conversation_id = c.id
    WHERE c.parent_id = ? AND c.spawn_tool_use_id IN (SELECT t.tool_use_id FROM tool_calls AS t
        JOIN messages AS m ON m.id = t.assistant_message_id WHERE m.run_id = ?) ORDER BY c.rowid"""


def set_route(connection: sqlite3.Connection, saving: SaveRoute) -> None:
    """Record the supervisor's decision."""
    connection.execute(
        "UPDATE runs SET strategy = ?, routing_json = ? WHERE id = ?",
        (saving.strategy, storable(saving.decision_json), saving.run_id),
    )


_AGENT = """SELECT c.profile, c.priority, c.agent_timeout,
    (SELECT id FROM runs WHERE conversation_id = c.parent_id ORDER BY rowid DESC LIMIT 1) AS parent_run_id
    FROM conversations AS c WHERE c.id = ? AND c.kind = 'subagent'"""


def set_type(connection: sqlite3.Connection, conversation_id: str, run_id: str) -> None:
    """Record the kind of a run, by the profile of its agent; of a sub-agent also for which run, and its limits."""
    row = connection.execute(_AGENT, (conversation_id,)).fetchone()
    if row is None:
        connection.execute("UPDATE runs SET type = 'general' WHERE id = ?", (run_id,))
        return
    connection.execute(
        "UPDATE runs SET type = ?, priority = ?, timeout_ms = ?, parent_run_id = ? WHERE id = ?",
        (
            TYPES.get(row["profile"] or "", "general"),
            row["priority"] or "normal",
            round((row["agent_timeout"] or 0.0) * 1000),
            row["parent_run_id"],
            run_id,
        ),
    )


def note_written(connection: sqlite3.Connection, run_id: str) -> None:
    """Write which files a run that ends has written."""
    written = dict.fromkeys(one["path"] for one in connection.execute(_WRITTEN, (run_id,)) if _is_text(one["path"]))
    paths = msgspec.json.encode(list(written)).decode()
    connection.execute("UPDATE runs SET artifacts_json = ? WHERE id = ?", (paths, run_id))


def sum_up(connection: sqlite3.Connection, run_id: str) -> None:
    """Store the usage of a run's model calls."""
    used = model_calls.of_run(connection, run_id)
    connection.execute(
        "UPDATE runs SET usage_json = ?, model_usage_json = ?, cost_usd = ?, retries ="
        " (SELECT count(*) FROM model_calls WHERE run_id = runs.id AND attempt > 0) WHERE id = ?",
        (
            encode_usage(sum((one.usage for one in used), Usage())),
            msgspec.json.encode(summed(used)).decode(),
            total_cost(*(one.cost_usd for one in used)),
            run_id,
        ),
    )


def summed(used: Iterable[ModelUsage]) -> list[ModelUsage]:
    """One entry a model, in order of their first request."""
    found: dict[str, list[ModelUsage]] = {}
    for one in used:
        found.setdefault(one.model, []).append(one)
    return [
        ModelUsage(
            model,
            sum((one.usage for one in ones), Usage()),
            total_cost(*(one.cost_usd for one in ones)),
            sum(o.requests for o in ones),
        )
        for model, ones in found.items()
    ]


def read(connection: sqlite3.Connection, conversation_id: str, limit: int) -> list[RunRecord]:
    """The newest runs of a conversation, newest first."""
    rows = connection.execute(_RUNS, (FIRST_WORDS, conversation_id, limit)).fetchall()
    return [_record(row, _agents(connection, conversation_id, row["id"])) for row in rows]


def overview(connection: sqlite3.Connection, row: Any, *, whole: bool) -> RunRecord:
    """A run as a value, from its row with the `words` of its prompt; `whole` adds the results of its sub-agents."""
    return _record(row, _agents(connection, row["conversation_id"], row["id"]) if whole else None)


def figures(connection: sqlite3.Connection, run_id: str) -> RunFigures | None:
    """Files, usage, cost and time of a run, as its row holds them; None where there is no such run."""
    row = connection.execute(
        "SELECT artifacts_json, usage_json, cost_usd, duration_ms, iterations FROM runs WHERE id = ?", (run_id,)
    ).fetchone()
    if row is None:
        return None
    return RunFigures(
        _paths(row["artifacts_json"]),
        _usage(row["usage_json"]),
        row["cost_usd"],
        row["duration_ms"] or 0,
        row["iterations"],
    )


def _record(row: Any, agents: RunAgents | None) -> RunRecord:
    return RunRecord(
        id=row["id"],
        type=row["type"] or "general",
        prompt=(row["words"] or "").split("\n", 1)[0],
        strategy=Strategy(row["strategy"]),
        decision_json=row["routing_json"] or "",
        status=row["status"],
        error=row["error"],
        artifacts=_paths(row["artifacts_json"]),
        usage=_usage(row["usage_json"]),
        by_model=_by_model(row["model_usage_json"]),
        cost_usd=row["cost_usd"],
        iterations=row["iterations"],
        started_at=row["started_at"],
        seconds=(row["duration_ms"] or 0) / 1000,
        agents=agents,
    )


def _agents(connection: sqlite3.Connection, conversation_id: str, run_id: str) -> RunAgents | None:
    rows = connection.execute(_AGENTS, (conversation_id, run_id)).fetchall()
    if not rows:
        return None
    results = {row["id"]: row["result_status"] for row in rows}
    ended = [row for row in rows if row["ended_at"] is not None]
    usage = sum((_usage(row["usage_json"]) for row in ended), Usage())
    return RunAgents(
        count=len(results),
        succeeded=sum(status == "success" for status in results.values()),
        tokens=usage.context_tokens,
        cost_usd=total_cost(*(row["cost_usd"] for row in ended)),
        artifacts=tuple(dict.fromkeys(path for row in ended for path in _paths(row["artifacts_json"]))),
    )


def _usage(text: str | None) -> Usage:
    try:
        return decode_usage(text) if text else Usage()
    except CodecError:
        return Usage()


def _by_model(text: str | None) -> tuple[ModelUsage, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[ModelUsage, ...]) if text else ()
    except msgspec.DecodeError:
        return ()


def _paths(text: str | None) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[str, ...]) if text else ()
    except msgspec.DecodeError:
        return ()


def _is_text(value: object) -> bool:
    return isinstance(value, str)
