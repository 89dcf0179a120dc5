"""The tables `runs` and `traces`: the history of runs."""

from __future__ import annotations

import sqlite3
from uuid import uuid4

from msgspec.structs import replace

from engine.codec import storable
from engine.machine.effects import FinishRun, RunStatus, StartRun
from engine.ports import LimitRun, StorageError
from engine.records.model_calls import CallPurpose, CallStatus, ModelCall
from engine.store import model_calls, run_records, spans, trace_queue

_TRACE_STATUS = {RunStatus.SUCCESS: "completed", RunStatus.CANCELLED: "cancelled"}
"""The column `traces.status`; every other end of a run is an error."""


def start(connection: sqlite3.Connection, conversation_id: str, starting: StartRun, at: float) -> None:
    """Open a run and its trace, which bears the same id.

    Raises:
        StorageError: another run has taken the id, which a caller chose, meanwhile.
    """
    if connection.execute("SELECT 1 FROM runs WHERE id = ?", (starting.run_id,)).fetchone() is not None:
        raise StorageError(f"There is already a run {starting.run_id}; give another id.")
    connection.execute(
        "INSERT INTO runs (id, conversation_id, trigger_message_id, status, started_at) VALUES (?, ?, ?, 'running', ?)",
        (starting.run_id, conversation_id, starting.trigger_message_id or None, at),
    )
    connection.execute(
        "INSERT INTO traces (id, run_id, conversation_id, status, started_at) VALUES (?, ?, ?, 'running', ?)",
        (starting.run_id, starting.run_id, conversation_id, at),
    )
    run_records.set_type(connection, conversation_id, starting.run_id)


def place_in_turn(connection: sqlite3.Connection, conversation_id: str, run_id: str) -> None:
    """Put a run into the turn of its move; its inbox entries began it."""
    connection.execute(
        """UPDATE runs SET turn_id = (SELECT id FROM turns WHERE conversation_id = ?
            ORDER BY turn_number DESC LIMIT 1), trigger_message_id = COALESCE(trigger_message_id,
            (SELECT id FROM messages WHERE run_id = runs.id AND role = 'user' ORDER BY seq LIMIT 1)) WHERE id = ?""",
        (conversation_id, run_id),
    )


def finish(connection: sqlite3.Connection, finishing: FinishRun, at: float) -> None:
    """Close a run, its trace and the time of its turn."""
    trace_queue.run_ends(connection, finishing.run_id)
    connection.execute(
        """UPDATE runs SET status = ?, error = ?, error_code = ?, recoverable = ?, iterations = ?, ended_at = ?,
            duration_ms = CAST(MAX(0, (? - started_at) * 1000) AS INTEGER) WHERE id = ?""",
        (
            finishing.status,
            storable(finishing.error),
            finishing.error_code,
            int(finishing.recoverable),
            finishing.iterations,
            at,
            at,
            finishing.run_id,
        ),
    )
    connection.execute("DELETE FROM cancel_requests WHERE run_id = ?", (finishing.run_id,))
    run_records.note_written(connection, finishing.run_id)
    connection.execute(
        "UPDATE traces SET status = ?, ended_at = ? WHERE run_id = ?",
        (_TRACE_STATUS.get(finishing.status, "error"), at, finishing.run_id),
    )
    sum_up(connection, finishing.run_id)
    connection.execute(
        "UPDATE turns SET ended_at = ? WHERE id = (SELECT turn_id FROM runs WHERE id = ?)", (at, finishing.run_id)
    )


def record_call(connection: sqlite3.Connection, conversation_id: str, call: ModelCall) -> None:
    """Store an ended call, with its span; an ended run is summed up again."""
    model_calls.record(connection, conversation_id, call)
    spans.add_call(connection, conversation_id, call)
    if call.run_id:
        if not _has_ended(connection, call.run_id):
            return
        sum_up(connection, call.run_id)
    trace_queue.call_ended(connection, call.run_id, call.id)


def record_cut_off(connection: sqlite3.Connection, conversation_id: str, run_id: str, at: float) -> None:
    """Store the call that a crash ended, with unknown usage."""
    row = connection.execute("SELECT model FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
    provider, _, model = str(row["model"]).partition("/")
    purpose, status, call_id = CallPurpose.REPLY, CallStatus.CANCELLED, str(uuid4())
    cut = ModelCall(call_id, purpose, status, provider, model, estimated=True, run_id=run_id, started_at=at)
    record_call(connection, conversation_id, replace(cut, error="interrupted"))


def sum_up(connection: sqlite3.Connection, run_id: str) -> None:
    """Store the usage of an ended run: the sums over its model calls, in its own row and its trace."""
    run_records.sum_up(connection, run_id)
    connection.execute(
        """UPDATE traces SET cost_usd = (SELECT cost_usd FROM runs WHERE id = traces.run_id),
            input_tokens = (SELECT COALESCE(SUM(input_tokens), 0) FROM model_calls WHERE run_id = traces.run_id),
            output_tokens = (SELECT COALESCE(SUM(output_tokens), 0) FROM model_calls WHERE run_id = traces.run_id)
            WHERE run_id = ?""",
        (run_id,),
    )


def limit(connection: sqlite3.Connection, limiting: LimitRun) -> None:
    """Write how long a run may take; 0: any time."""
    connection.execute("UPDATE runs SET timeout_ms = ? WHERE id = ?", (round(limiting.seconds * 1000), limiting.run_id))


def active(connection: sqlite3.Connection, conversation_id: str) -> str:
    """The run that is under way, or empty."""
    row = connection.execute(
        "SELECT id FROM runs WHERE conversation_id = ? AND status = 'running'", (conversation_id,)
    ).fetchone()
    return row["id"] if row else ""


def _has_ended(connection: sqlite3.Connection, run_id: str) -> bool:
    row = connection.execute("SELECT status FROM runs WHERE id = ?", (run_id,)).fetchone()
    return row is not None and row["status"] != "running"
