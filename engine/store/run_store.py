"""`engine.ports.run_store.RunStore` on SQLite, and the table `cancel_requests`."""

from __future__ import annotations

import re
import sqlite3
from typing import Any, Final

from engine.machine.effects import Strategy
from engine.machine.messages import Usage
from engine.machine.states import STATE_NAMES, Idle
from engine.ports.run_store import QUEUED, CancelRequest, RunOverview
from engine.records.runs import RunRecord
from engine.store import run_records
from engine.store.connection import Transactions
from engine.store.ownership import Instance

_PART_OF_ID: Final = re.compile(r"[0-9a-zA-Z-]{1,64}")
_RUNS: Final = """SELECT r.*, substr(ltrim(m.text, char(10, 13, 32, 9)), 1, 200) AS words,
    c.title, c.agent_task, c.parent_id, c.owner_instance, p.owner_instance AS above
    FROM runs AS r JOIN conversations AS c ON c.id = r.conversation_id
    LEFT JOIN conversations AS p ON p.id = c.parent_id
    LEFT JOIN messages AS m ON m.id = r.trigger_message_id WHERE c.partial IS NULL"""
_NEWEST_OF: Final = "r.rowid = (SELECT rowid FROM runs WHERE conversation_id = c.id ORDER BY rowid DESC LIMIT 1)"
_UNBEGUN: Final = """SELECT c.id AS conversation_id, c.title, c.agent_task, c.parent_id, c.owner_instance,
    p.owner_instance AS above, c.created_at, c.state, c.result_status, c.result_error
    FROM conversations AS c LEFT JOIN conversations AS p ON p.id = c.parent_id
    WHERE c.kind = 'subagent' AND c.partial IS NULL AND NOT EXISTS (SELECT 1 FROM runs WHERE conversation_id = c.id)"""
_BEGINS: Final = "{0} >= ?1 AND {0} < ?1 || '~'"
_OWN_REQUESTS: Final = """SELECT q.conversation_id, q.run_id, CASE WHEN q.run_id IS NULL THEN c.state = 'idle'
        ELSE EXISTS (SELECT 1 FROM runs WHERE id = q.run_id AND status = 'running') END AS holds
    FROM cancel_requests AS q JOIN conversations AS c ON c.id = q.conversation_id
    LEFT JOIN conversations AS p ON p.id = c.parent_id WHERE ?1 IN (c.owner_instance, p.owner_instance)"""
"""Requests for conversations of a process; those for runs that are over hold no longer."""


class SqliteRuns:
    """Runs by id; shares the connections of its store."""

    def __init__(self, transactions: Transactions, instance: Instance) -> None:
        self._transactions = transactions
        self._instance = instance

    async def newest(self, conversation_id: str, limit: int) -> list[RunOverview]:
        """The newest runs, newest first; of one conversation, or of all where it is empty."""
        chosen = " AND r.conversation_id = ?1" if conversation_id else " AND ?1 = ''"

        def job(connection: sqlite3.Connection) -> list[RunOverview]:
            rows = connection.execute(
                f"{_RUNS}{chosen} ORDER BY r.rowid DESC LIMIT ?2", (conversation_id, limit)
            ).fetchall()
            return [self._overview(connection, row) for row in rows]

        return await self._transactions.look(job)

    async def find(self, reference: str, limit: int) -> list[RunOverview]:
        """Runs whose id is `reference`, else those whose id or conversation's id begins with it."""
        if not _PART_OF_ID.fullmatch(reference):
            return []

        def job(connection: sqlite3.Connection) -> list[RunOverview]:
            exact = connection.execute(f"{_RUNS} AND r.id = ?1", (reference,)).fetchall()
            if exact:
                return [self._overview(connection, row) for row in exact]
            of_runs, of_conversations = _BEGINS.format("r.id"), _BEGINS.format("c.id")
            rows = connection.execute(
                f"{_RUNS} AND ({of_runs} OR {of_conversations} AND {_NEWEST_OF}) ORDER BY r.rowid DESC LIMIT ?2",
                (reference, limit),
            ).fetchall()
            queued = connection.execute(f"{_UNBEGUN} AND {of_conversations} LIMIT ?2", (reference, limit)).fetchall()
            return [self._overview(connection, row) for row in rows] + [self._unbegun(connection, q) for q in queued]

        return await self._transactions.look(job)

    async def read(self, conversation_id: str, run_id: str) -> RunOverview | None:
        """One run as it is now; without `run_id` the newest of the conversation, or its place in the queue."""
        chosen = "r.id = ?2" if run_id else _NEWEST_OF

        def job(connection: sqlite3.Connection) -> RunOverview | None:
            row = connection.execute(
                f"{_RUNS} AND c.id = ?1 AND ?2 = ?2 AND {chosen}", (conversation_id, run_id)
            ).fetchone()
            if row is not None:
                return self._overview(connection, row, whole=True)
            queued = connection.execute(f"{_UNBEGUN} AND c.id = ?1", (conversation_id,)).fetchone()
            return self._unbegun(connection, queued) if queued is not None and not run_id else None

        return await self._transactions.read(job)

    async def is_taken(self, run_id: str) -> bool:
        """True when a run has this id."""

        def job(connection: sqlite3.Connection) -> bool:
            return connection.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone() is not None

        return await self._transactions.read(job)

    async def request_cancel(self, conversation_id: str, run_id: str, at: float) -> bool:
        """Ask the process that has the conversation to cancel the run; False where it has ended already."""

        def job(connection: sqlite3.Connection) -> bool:
            running = connection.execute(
                "SELECT 1 FROM runs WHERE conversation_id = ? AND id = ? AND status = 'running'",
                (conversation_id, run_id),
            )
            queued = connection.execute(f"{_UNBEGUN} AND c.id = ?1 AND c.state = 'idle'", (conversation_id,))
            if (running if run_id else queued).fetchone() is None:
                return False
            connection.execute(
                "INSERT OR REPLACE INTO cancel_requests (conversation_id, run_id, requested_at) VALUES (?, ?, ?)",
                (conversation_id, run_id or None, at),
            )
            return True

        return await self._transactions.write(job)

    async def take_requests(self) -> list[CancelRequest]:
        """Take out the requests for runs of this process; those for runs that are over are dropped."""

        def waiting(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(_OWN_REQUESTS, (self._instance.id,)).fetchall()

        def job(connection: sqlite3.Connection) -> list[CancelRequest]:
            found = waiting(connection)
            connection.executemany(
                "DELETE FROM cancel_requests WHERE conversation_id = ?", [(row["conversation_id"],) for row in found]
            )
            return [CancelRequest(row["conversation_id"], row["run_id"] or "") for row in found if row["holds"]]

        # Most changes of other processes are no request: those cost a read, and no turn at the writer.
        return await self._transactions.write(job) if await self._transactions.read(waiting) else []

    async def foreign_version(self) -> int:
        """A number that changes with each commit of another process."""
        return await self._transactions.foreign_version()

    def _overview(self, connection: sqlite3.Connection, row: Any, *, whole: bool = False) -> RunOverview:
        return RunOverview(
            record=run_records.overview(connection, row, whole=whole),
            conversation_id=row["conversation_id"],
            title=row["agent_task"] or row["title"],
            parent_id=row["parent_id"] or "",
            error_code=row["error_code"],
            owner_pid=self._owner(connection, row),
        )

    def _unbegun(self, connection: sqlite3.Connection, row: Any) -> RunOverview:
        title, error = row["agent_task"] or row["title"], row["result_error"] or ""
        status = QUEUED if row["state"] == STATE_NAMES[Idle] else row["result_status"] or "failure"
        record = RunRecord(
            "", "general", title, Strategy.SINGLE, "", status, error, (), Usage(), (), 0.0, 0, row["created_at"], 0.0
        )
        return RunOverview(
            record, row["conversation_id"], title, row["parent_id"] or "", owner_pid=self._owner(connection, row)
        )

    def _owner(self, connection: sqlite3.Connection, row: Any) -> int | None:
        living = self._instance.living_pid
        return living(connection, row["owner_instance"]) or living(connection, row["above"])
