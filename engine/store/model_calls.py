"""The table `model_calls`: one row a call, and every sum over them (docs/decisions/accounting.md)."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.codec import decode_totals, encode_totals, storable
from engine.machine.messages import Usage
from engine.records.runs import CallPurpose, CallSum, ModelCall, ModelUsage, Totals

_INSERT: Final = """INSERT INTO model_calls (id, conversation_id, run_id, message_id, purpose, status, provider, model,
    iteration, attempt, input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens, estimated, cost_usd,
    started_at, duration_ms, error, web_searches) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_EARLIER: Final = """INSERT INTO model_calls (id, conversation_id, run_id, message_id, purpose, status, provider, model,
    iteration, attempt, input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens, estimated, cost_usd,
    started_at, duration_ms, error)"""
_OF_RUN: Final = "SELECT * FROM model_calls WHERE run_id = ? ORDER BY rowid"
_BY_PURPOSE: Final = """SELECT purpose, count(*) AS calls, sum(status = 'failed') AS failed,
    sum(status = 'cancelled') AS cancelled, sum(attempt > 0) AS retries, sum(estimated) AS estimated,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cache_creation_tokens) AS cache_creation_tokens, sum(cache_read_tokens) AS cache_read_tokens,
    sum(web_searches) AS web_searches,
    CASE WHEN count(*) = count(cost_usd) THEN sum(cost_usd) END AS cost_usd
    FROM model_calls WHERE conversation_id = ? GROUP BY purpose"""
_COPIED: Final = "c.branch_of IS NOT NULL AND m.seq <= c.branch_seq"
"""Condition for messages that a fork shares with its source, which has their cost."""


def record_model_call(connection: sqlite3.Connection, conversation_id: str, call: ModelCall) -> None:
    """Insert a call that ended, and add it to the sums of its conversation."""
    used = call.usage
    connection.execute(
        _INSERT,
        (
            call.id,
            conversation_id,
            call.run_id or None,
            call.message_id or None,
            call.purpose,
            call.status,
            call.provider,
            storable(call.model),
            call.iteration,
            call.attempt,
            used.input_tokens,
            used.output_tokens,
            used.cache_creation_tokens,
            used.cache_read_tokens,
            int(call.estimated),
            call.cost_usd,
            call.started_at,
            call.duration_ms,
            call.error,
            used.web_searches,
        ),
    )
    row = connection.execute("SELECT totals_json FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
    totals = decode_totals(row["totals_json"]).plus(Totals.of(call.usage, call.cost_usd))
    connection.execute(
        "UPDATE conversations SET totals_json = ? WHERE id = ?", (encode_totals(totals), conversation_id)
    )


def read_run_usage(connection: sqlite3.Connection, run_id: str) -> list[ModelUsage]:
    """Usage of each call of a run, in their order."""
    return [
        ModelUsage(row["model"], _read_usage(row), row["cost_usd"], 1) for row in connection.execute(_OF_RUN, (run_id,))
    ]


def sum_by_purpose(connection: sqlite3.Connection, conversation_id: str) -> list[CallSum]:
    """The calls of a conversation, those of each purpose together, in the order of `CallPurpose`."""
    found = {row["purpose"]: row for row in connection.execute(_BY_PURPOSE, (conversation_id,))}
    return [
        CallSum(
            purpose,
            Totals.of(_read_usage(row), row["cost_usd"]),
            row["calls"],
            row["failed"],
            row["cancelled"],
            row["retries"],
            row["estimated"],
            row["web_searches"],
        )
        for purpose in CallPurpose
        if (row := found.get(purpose.value)) is not None
    ]


def has_called_model(connection: sqlite3.Connection, reference: str) -> bool:
    """True when a title of any conversation was asked of this model, which services name with a date behind it too."""
    provider, _, model = reference.partition("/")
    row = connection.execute(
        "SELECT 1 FROM model_calls WHERE purpose = ?1 AND provider = ?2 AND substr(model, 1, length(?3)) = ?3 LIMIT 1",
        (CallPurpose.TITLE, provider, model),
    ).fetchone()
    return row is not None


def settle_model_calls(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Set an imported conversation's usage to the sum of its rows; an older export, which has none, gets some."""
    found = connection.execute("SELECT 1 FROM model_calls WHERE conversation_id = ?", (conversation_id,)).fetchone()
    if found is None:
        _fill_in_replies(connection, conversation_id)
        _fill_in_rest(connection, conversation_id)
    rows = connection.execute("SELECT * FROM model_calls WHERE conversation_id = ? ORDER BY rowid", (conversation_id,))
    totals = Totals()
    for row in rows.fetchall():
        totals = totals.plus(Totals.of(_read_usage(row), row["cost_usd"]))
    connection.execute(
        "UPDATE conversations SET totals_json = ? WHERE id = ?", (encode_totals(totals), conversation_id)
    )


def _read_usage(row: sqlite3.Row) -> Usage:
    return Usage(
        row["input_tokens"],
        row["output_tokens"],
        row["cache_creation_tokens"],
        row["cache_read_tokens"],
        row["web_searches"],
    )


def _fill_in_replies(connection: sqlite3.Connection, conversation_id: str) -> None:
    connection.execute(
        f"""{_EARLIER} SELECT lower(hex(randomblob(16))), m.conversation_id, m.run_id, m.id, 'reply', 'ok',
            '', m.model, 0, 0, COALESCE(m.usage_json ->> '$.input_tokens', 0),
            COALESCE(m.usage_json ->> '$.output_tokens', 0), COALESCE(m.usage_json ->> '$.cache_creation_tokens', 0),
            COALESCE(m.usage_json ->> '$.cache_read_tokens', 0), 0, m.cost_usd,
            max(0, m.created_at - m.duration_ms / 1000.0), m.duration_ms, ''
        FROM messages AS m JOIN conversations AS c ON c.id = m.conversation_id
        WHERE m.usage_json IS NOT NULL AND json_valid(m.usage_json) AND NOT ({_COPIED})
            AND c.id = :id ORDER BY m.rowid""",
        {"id": conversation_id},
    )


def _fill_in_rest(connection: sqlite3.Connection, conversation_id: str) -> None:
    connection.execute(
        f"""WITH sums AS (SELECT conversation_id, sum(input_tokens) AS input, sum(output_tokens) AS output,
                sum(cache_creation_tokens) AS written, sum(cache_read_tokens) AS cached, sum(cost_usd) AS cost
            FROM model_calls GROUP BY conversation_id),
        rest AS (SELECT c.id, c.created_at,
                max(0, COALESCE(c.totals_json ->> '$.input_tokens', 0) - COALESCE(sums.input, 0)) AS more_input,
                max(0, COALESCE(c.totals_json ->> '$.output_tokens', 0) - COALESCE(sums.output, 0)) AS more_output,
                max(0, COALESCE(c.totals_json ->> '$.cache_creation_tokens', 0) - COALESCE(sums.written, 0))
                    AS more_written,
                max(0, COALESCE(c.totals_json ->> '$.cache_read_tokens', 0) - COALESCE(sums.cached, 0)) AS more_cached,
                CASE WHEN json_type(c.totals_json, '$.cost_usd') = 'null' THEN NULL
                    ELSE max(0, round(COALESCE(c.totals_json ->> '$.cost_usd', 0) - COALESCE(sums.cost, 0), 12))
                END AS more_cost
            FROM conversations AS c LEFT JOIN sums ON sums.conversation_id = c.id WHERE c.id = :id)
        {_EARLIER} SELECT lower(hex(randomblob(16))), id, NULL, NULL, 'earlier', 'ok', '', '', 0, 0,
            more_input, more_output, more_written, more_cached, 0, more_cost, created_at, 0, '' FROM rest
        WHERE more_input <> 0 OR more_output <> 0 OR more_written <> 0 OR more_cached <> 0 OR more_cost <> 0""",
        {"id": conversation_id},
    )
