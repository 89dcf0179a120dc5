"""Sums for the caps on spending: all calls once, then only those that are new."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.records.spending import CallMark, Spending, Spent
from engine.store.copied_rows import CALL_IS_COPY

_NEWEST: Final = "SELECT rowid, id FROM model_calls ORDER BY rowid DESC LIMIT 1"
_MARKED: Final = "SELECT id FROM model_calls WHERE rowid = ?"
_SUMS: Final = f"""SELECT c.cwd, total(m.cost_usd), count(*) - count(m.cost_usd),
    total(CASE WHEN m.started_at >= :day THEN m.cost_usd END),
    COALESCE(sum(m.started_at >= :day AND m.cost_usd IS NULL), 0)
    FROM model_calls AS m CROSS JOIN conversations AS c ON c.id = m.conversation_id
    WHERE m.rowid > :row AND m.rowid <= :last AND NOT {CALL_IS_COPY} GROUP BY c.cwd"""
_DAY: Final = f"""SELECT total(m.cost_usd), count(*) - count(m.cost_usd) FROM model_calls AS m
    WHERE m.started_at >= ? AND NOT {CALL_IS_COPY}"""


def read(connection: sqlite3.Connection, mark: CallMark, day: float, *, folders: bool) -> Spending:
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
