"""Sums over `model_calls` and `tool_calls`, grouped by SQLite, for statistics and for caps on spending."""

from __future__ import annotations

import sqlite3
from typing import Final

from msgspec import Struct

from engine.machine.messages import Usage
from engine.records.runs import (
    CallGroup,
    CallMark,
    Spending,
    Spent,
    Statistics,
    StatisticsGroup,
    StatisticsQuery,
    ToolGroup,
    Totals,
)
from engine.store.connection import TableGroup, reads_long
from engine.store.copying import CALL_IS_COPY, TOOL_CALL_IS_COPY


class _Grouping(Struct, frozen=True):
    key: str
    label: str = "''"
    condition: str = ""
    order: str = "sum(m.input_tokens + m.output_tokens + m.cache_creation_tokens + m.cache_read_tokens) DESC, 1"


_GROUPINGS: Final = {
    StatisticsGroup.DAY: _Grouping("COALESCE(date(m.started_at, 'unixepoch', 'localtime'), '')", order="1"),
    StatisticsGroup.MODEL: _Grouping("CASE m.provider WHEN '' THEN m.model ELSE m.provider || '/' || m.model END"),
    StatisticsGroup.FOLDER: _Grouping("c.cwd"),
    StatisticsGroup.CONVERSATION: _Grouping("COALESCE(p.id, c.id)", "COALESCE(p.title, c.title)"),
    StatisticsGroup.AGENT: _Grouping("c.profile", condition="AND c.kind = 'subagent'"),
    StatisticsGroup.PURPOSE: _Grouping("m.purpose"),
}
_TOTAL: Final = _Grouping("''")
CALLS_SQL: Final = """SELECT {key} AS key, {label} AS label, count(*) AS calls,
    COALESCE(sum(m.status = 'failed'), 0) AS failed, COALESCE(sum(m.status = 'cancelled'), 0) AS cancelled,
    COALESCE(sum(m.attempt > 0), 0) AS retries, COALESCE(sum(m.estimated), 0) AS estimated,
    count(*) - count(m.cost_usd) AS unpriced, count(DISTINCT m.conversation_id) AS conversations,
    COALESCE(sum(m.input_tokens), 0) AS input_tokens, COALESCE(sum(m.output_tokens), 0) AS output_tokens,
    COALESCE(sum(m.cache_creation_tokens), 0) AS cache_creation_tokens,
    COALESCE(sum(m.cache_read_tokens), 0) AS cache_read_tokens, COALESCE(sum(m.duration_ms), 0) AS duration_ms,
    total(m.cost_usd) AS known, total(CASE c.kind WHEN 'subagent' THEN m.cost_usd END) AS agents,
    COALESCE(sum(c.kind = 'subagent' AND m.cost_usd IS NULL), 0) AS agents_unpriced
    FROM model_calls AS m INDEXED BY model_calls_started CROSS JOIN conversations AS c ON c.id = m.conversation_id
    LEFT JOIN conversations AS p ON c.kind = 'subagent' AND p.id = c.parent_id
    WHERE m.started_at >= :since AND c.partial IS NULL AND NOT {copied} {condition}"""
"""The calls of a time; a conversation half copied or half imported is left out, as in the list."""
TOOLS_SQL: Final = """SELECT t.name, count(*) AS calls, sum(t.status = 'error') AS failed,
    sum(t.status IN ('cancelled', 'skipped', 'interrupted')) AS stopped,
    sum(t.duration_ms) AS duration_ms, sum(t.output_bytes) AS result_bytes
    FROM tool_calls AS t INDEXED BY tool_calls_ended CROSS JOIN conversations AS c ON c.id = t.conversation_id
    WHERE t.ended_at IS NOT NULL AND t.ended_at >= :since AND c.partial IS NULL AND NOT (c.branch_of IS NOT NULL
        AND c.branch_seq >= (SELECT seq FROM messages AS s WHERE s.id = t.assistant_message_id))
    AND NOT {copied} GROUP BY t.name ORDER BY calls DESC, t.name""".replace("{copied}", TOOL_CALL_IS_COPY)
"""Ended calls by name, without those that a fork or an import copied: its source has them."""


def make_statement(grouping: _Grouping) -> str:
    """The SELECT of one grouping; a total is one row, also of no calls."""
    text = CALLS_SQL.format(key=grouping.key, label=grouping.label, condition=grouping.condition, copied=CALL_IS_COPY)
    return text if grouping is _TOTAL else f"{text} GROUP BY 1 ORDER BY {grouping.order}"


def list_statements() -> list[str]:
    """Every SELECT of this module, for tests of their query plans."""
    return [*(make_statement(one) for one in (_TOTAL, *_GROUPINGS.values())), TOOLS_SQL]


def _read_groups(connection: sqlite3.Connection, grouping: _Grouping, since: float) -> list[CallGroup]:
    return [_read_group(row) for row in connection.execute(make_statement(grouping), {"since": since})]


def _read_group(row: sqlite3.Row) -> CallGroup:
    usage = Usage(row["input_tokens"], row["output_tokens"], row["cache_creation_tokens"], row["cache_read_tokens"])
    return CallGroup(
        key=str(row["key"]),
        label=str(row["label"]),
        totals=Totals.of(usage, None if row["unpriced"] else row["known"]),
        known_cost_usd=row["known"],
        agents_cost_usd=None if row["agents_unpriced"] else row["agents"],
        calls=row["calls"],
        failed=row["failed"],
        cancelled=row["cancelled"],
        retries=row["retries"],
        estimated=row["estimated"],
        unpriced=row["unpriced"],
        conversations=row["conversations"],
        duration_ms=row["duration_ms"],
    )


def _read_tools(connection: sqlite3.Connection, since: float) -> tuple[ToolGroup, ...]:
    return tuple(
        ToolGroup(
            row["name"], row["calls"], row["failed"], row["stopped"], row["duration_ms"], row["result_bytes"] or 0
        )
        for row in connection.execute(TOOLS_SQL, {"since": since})
    )


_NEWEST: Final = "SELECT rowid, id FROM model_calls ORDER BY rowid DESC LIMIT 1"
_MARKED: Final = "SELECT id FROM model_calls WHERE rowid = ?"
_SUMS: Final = f"""SELECT c.cwd, total(m.cost_usd), count(*) - count(m.cost_usd),
    total(CASE WHEN m.started_at >= :day THEN m.cost_usd END),
    COALESCE(sum(m.started_at >= :day AND m.cost_usd IS NULL), 0)
    FROM model_calls AS m CROSS JOIN conversations AS c ON c.id = m.conversation_id
    WHERE m.rowid > :row AND m.rowid <= :last AND NOT {CALL_IS_COPY} GROUP BY c.cwd"""
_DAY: Final = f"""SELECT total(m.cost_usd), count(*) - count(m.cost_usd) FROM model_calls AS m
    WHERE m.started_at >= ? AND NOT {CALL_IS_COPY}"""


def read_spending(connection: sqlite3.Connection, mark: CallMark, day: float, *, folders: bool) -> Spending:
    """Calls after `mark`, or all of them where it is no longer there; `day` is the Unix time of its first second.

    Numbers of rows rise while the call of the mark is there; after its removal, or a VACUUM, they may begin anew.
    """
    found = connection.execute(_MARKED, (mark.row,)).fetchone()
    whole = found is None or found[0] != mark.id
    newest = connection.execute(_NEWEST).fetchone()
    last = CallMark(newest[0], newest[1]) if newest is not None else CallMark()
    if whole and not folders:
        spent, unpriced = connection.execute(_DAY, (day,)).fetchone()
        return Spending(last, whole, Spent(spent, unpriced))
    rows = connection.execute(_SUMS, {"row": 0 if whole else mark.row, "last": last.row, "day": day}).fetchall()
    today = Spent()
    for row in rows:
        today = today.plus(Spent(row[3], row[4]))
    return Spending(last, whole, today, {row[0]: Spent(row[1], row[2]) for row in rows} if folders else {})


class StatisticsStore(TableGroup):
    """Reads sums; long reads have a connection of their own, so that no other read waits."""

    @reads_long
    def read(self, connection: sqlite3.Connection, query: StatisticsQuery) -> Statistics:
        """Sums of all conversations, also archived ones and those in the trash."""
        return Statistics(
            _read_groups(connection, _TOTAL, query.since)[0],
            {group: tuple(_read_groups(connection, _GROUPINGS[group], query.since)) for group in query.groups},
            _read_tools(connection, query.since) if query.tools else (),
        )

    def stamp(self) -> object | None:
        """State of everything stored, compared by `==`: another one after each change by any process. Reads nothing.

        None where it is unknown. Never raises.
        """
        return self.transactions.file_stamp()

    async def spending(self, mark: CallMark, day: float, *, folders: bool) -> Spending:
        """Cost of the calls after `mark`, of today since `day` and by folder; of all calls where it is gone."""

        def job(connection: sqlite3.Connection) -> Spending:
            return read_spending(connection, mark, day, folders=folders)

        return await (self.transactions.read(job) if mark.id else self.transactions.look(job))
