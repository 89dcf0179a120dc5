"""Sub-agents in the table `conversations`: how they are made and read."""

from __future__ import annotations

import sqlite3
from typing import Any

from engine.codec import decode_state, decode_totals, storable
from engine.machine.states import AgentOutcome, AgentStatus, Completed, Failed, run_of
from engine.records import AgentFacts, AgentRow, RunPriority, SpawnMode

_LAST_WORDS = """SELECT text FROM messages WHERE conversation_id = ?1 AND role = 'assistant' AND TRIM(text) <> ''
    AND run_id IS (SELECT id FROM runs WHERE conversation_id = ?1 ORDER BY rowid DESC LIMIT 1)
    ORDER BY seq DESC LIMIT 1"""
_ROWS = """SELECT c.*,
    (SELECT COUNT(*) FROM turns WHERE conversation_id = c.id) AS turn_count,
    (SELECT iterations FROM runs WHERE conversation_id = c.id ORDER BY rowid DESC LIMIT 1) AS run_iterations,
    (SELECT COUNT(DISTINCT assistant_message_id) FROM tool_calls WHERE conversation_id = c.id) AS tool_count,
    (SELECT started_at FROM runs WHERE conversation_id = c.id ORDER BY rowid DESC LIMIT 1) AS run_started,
    (SELECT ended_at FROM runs WHERE conversation_id = c.id ORDER BY rowid DESC LIMIT 1) AS run_ended
    FROM conversations AS c"""


def mark(connection: sqlite3.Connection, conversation_id: str, facts: AgentFacts) -> None:
    """Make a conversation that was just created a sub-agent."""
    connection.execute(
        """UPDATE conversations SET kind = 'subagent', user_initiated = 0, parent_id = ?, spawn_mode = ?,
            spawn_tool_use_id = ?, parent_context = ?, max_iterations = ?, priority = ?, agent_task = ?,
            agent_ordinal = ?, agent_timeout = ? WHERE id = ?""",
        (
            facts.parent_id,
            facts.mode,
            storable(facts.call_id),
            storable(facts.context),
            facts.max_turns,
            facts.priority,
            storable(facts.task),
            facts.ordinal,
            facts.timeout,
            conversation_id,
        ),
    )


def make_background(connection: sqlite3.Connection, agent_id: str) -> None:
    """Make it a background agent: its parent no longer waits, and its end wakes the parent."""
    connection.execute(
        "UPDATE conversations SET spawn_mode = 'background', auto_wake = 1 WHERE id = ? AND kind = 'subagent'",
        (agent_id,),
    )


def suppress_wakes(connection: sqlite3.Connection, parent_id: str) -> None:
    """Keep the ends of unfinished sub-agents from waking their parent."""
    connection.execute(
        """UPDATE conversations SET auto_wake = 0
            WHERE parent_id = ? AND kind = 'subagent' AND state NOT IN ('completed', 'failed')""",
        (parent_id,),
    )


def wakes_suppressed(connection: sqlite3.Connection, agent_id: str) -> bool:
    """True when the user stopped its parent while it worked."""
    row = connection.execute("SELECT auto_wake FROM conversations WHERE id = ?", (agent_id,)).fetchone()
    return row is not None and not row["auto_wake"]


def facts_of(row: Any) -> AgentFacts | None:
    """Sub-agent facts in a row of `conversations`; None for the user's own."""
    if row["kind"] != "subagent":
        return None
    return AgentFacts(
        parent_id=row["parent_id"] or "",
        mode=SpawnMode(row["spawn_mode"] or SpawnMode.FAN_IN),
        call_id=row["spawn_tool_use_id"] or "",
        ordinal=row["agent_ordinal"] or 1,
        task=row["agent_task"] or row["title"],
        max_turns=row["max_iterations"] or 0,
        timeout=row["agent_timeout"] or 0.0,
        priority=RunPriority(row["priority"] or RunPriority.NORMAL),
        context=row["parent_context"] or "",
    )


def rows_of(connection: sqlite3.Connection, parent_id: str) -> list[AgentRow]:
    """Every sub-agent of a conversation, oldest first."""
    rows = connection.execute(f"{_ROWS} WHERE c.parent_id = ? ORDER BY c.rowid", (parent_id,)).fetchall()
    return [found for row in rows if (found := _row(row)) is not None]


def ids_of(connection: sqlite3.Connection, parent_id: str) -> list[str]:
    """Ids of its sub-agents, oldest first."""
    rows = connection.execute("SELECT id FROM conversations WHERE parent_id = ? ORDER BY rowid", (parent_id,))
    return [str(row["id"]) for row in rows]


def row_of(connection: sqlite3.Connection, agent_id: str) -> AgentRow | None:
    """One sub-agent, or None."""
    row = connection.execute(f"{_ROWS} WHERE c.id = ?", (agent_id,)).fetchone()
    return _row(row) if row is not None else None


def last_words(connection: sqlite3.Connection, agent_id: str) -> str:
    """The newest text of its last run, kept when it failed without a result."""
    row = connection.execute(_LAST_WORDS, (agent_id,)).fetchone()
    return str(row["text"]) if row is not None else ""


def _row(row: Any) -> AgentRow | None:
    facts = facts_of(row)
    if facts is None:
        return None
    state = decode_state(row["state_json"])
    run, outcome = run_of(state), None
    iterations = run.iteration if run is not None else row["run_iterations"] or 0
    if isinstance(state, Completed | Failed) and row["result_status"]:
        status = AgentStatus(row["result_status"])
        outcome = AgentOutcome(
            row["id"],
            status,
            row["result_text"] or "",
            row["result_error"] or "",
            turns=iterations,
            seconds=max((row["run_ended"] or 0.0) - (row["run_started"] or 0.0), 0.0),
        )
    return AgentRow(
        id=row["id"],
        facts=facts,
        profile=row["profile"],
        model=row["model"],
        state=state,
        outcome=outcome,
        totals=decode_totals(row["totals_json"]),
        iterations=iterations,
        tool_iterations=row["tool_count"],
        turns=row["turn_count"],
        started_at=row["run_started"] or 0.0,
        ended_at=row["run_ended"] or 0.0,
    )
