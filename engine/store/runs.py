"""The table `runs`: start, end, usage and cost of runs, their history (SPEC SDK-08), and requests to cancel them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from engine.codec import CodecError, decode_usage, encode_usage, storable
from engine.machine.effects import FinishRun, RunStatus, SaveRoute, StartRun, Strategy
from engine.machine.messages import Usage
from engine.machine.states import STATE_NAMES, Idle
from engine.ports import LimitRun, StorageError
from engine.ports.storage import QUEUED, CancelRequest, RunOverview
from engine.records.runs import CallPurpose, CallStatus, ModelCall, ModelUsage, RunAgents, RunRecord, total_cost
from engine.store.connection import reads, reads_long, writes
from engine.store.model_calls import read_run_usage, record_model_call
from engine.store.ownership import OwnedTables
from engine.store.trace_export import queue_late_call, queue_run
from engine.store.traces import FIRST_WORDS, add_call_span

TYPES = {"review": "code_review", "code": "code_generate", "explore": "research", "research": "research"}
"""Types of runs by profile (SPEC SDK-07); all others are general."""


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
_RUNS_OF_CONVERSATION = """SELECT r.*, substr(ltrim(m.text, char(10, 13, 32, 9)), 1, ?) AS words
    FROM runs AS r LEFT JOIN messages AS m ON m.id = r.trigger_message_id
    WHERE r.conversation_id = ? ORDER BY r.rowid DESC LIMIT ?"""
_AGENTS_OF_RUN = """SELECT c.id, c.result_status, r.cost_usd, r.usage_json, r.artifacts_json, r.ended_at
    FROM conversations AS c LEFT JOIN runs AS r ON r.conversation_id = c.id
    WHERE c.parent_id = ? AND c.spawn_tool_use_id IN (SELECT t.tool_use_id FROM tool_calls AS t
        JOIN messages AS m ON m.id = t.assistant_message_id WHERE m.run_id = ?) ORDER BY c.rowid"""


def set_run_route(connection: sqlite3.Connection, saving: SaveRoute) -> None:
    """Record the supervisor's decision."""
    connection.execute(
        "UPDATE runs SET strategy = ?, routing_json = ? WHERE id = ?",
        (saving.strategy, storable(saving.decision_json), saving.run_id),
    )


_AGENT = """SELECT c.profile, c.priority, c.agent_timeout,
    (SELECT id FROM runs WHERE conversation_id = c.parent_id ORDER BY rowid DESC LIMIT 1) AS parent_run_id
    FROM conversations AS c WHERE c.id = ? AND c.kind = 'subagent'"""


def set_run_type(connection: sqlite3.Connection, conversation_id: str, run_id: str) -> None:
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


def sum_up_usage(connection: sqlite3.Connection, run_id: str) -> None:
    """Store the usage of a run's model calls."""
    used = read_run_usage(connection, run_id)
    connection.execute(
        "UPDATE runs SET usage_json = ?, model_usage_json = ?, cost_usd = ?, retries ="
        " (SELECT count(*) FROM model_calls WHERE run_id = runs.id AND attempt > 0) WHERE id = ?",
        (
            encode_usage(sum((one.usage for one in used), Usage())),
            msgspec.json.encode(sum_by_model(used)).decode(),
            total_cost(*(one.cost_usd for one in used)),
            run_id,
        ),
    )


def sum_by_model(used: Iterable[ModelUsage]) -> list[ModelUsage]:
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


def read_runs(connection: sqlite3.Connection, conversation_id: str, limit: int) -> list[RunRecord]:
    """The newest runs of a conversation, newest first."""
    rows = connection.execute(_RUNS_OF_CONVERSATION, (FIRST_WORDS, conversation_id, limit)).fetchall()
    return [_read_record(row, _read_run_agents(connection, conversation_id, row["id"])) for row in rows]


def read_run_figures(connection: sqlite3.Connection, run_id: str) -> RunFigures | None:
    """Files, usage, cost and time of a run, as its row holds them; None where there is no such run."""
    row = connection.execute(
        "SELECT artifacts_json, usage_json, cost_usd, duration_ms, iterations FROM runs WHERE id = ?", (run_id,)
    ).fetchone()
    if row is None:
        return None
    return RunFigures(
        _decode_paths(row["artifacts_json"]),
        _decode_usage_leniently(row["usage_json"]),
        row["cost_usd"],
        row["duration_ms"] or 0,
        row["iterations"],
    )


def _read_record(row: Any, agents: RunAgents | None) -> RunRecord:
    return RunRecord(
        id=row["id"],
        type=row["type"] or "general",
        prompt=(row["words"] or "").split("\n", 1)[0],
        strategy=Strategy(row["strategy"]),
        decision_json=row["routing_json"] or "",
        status=row["status"],
        error=row["error"],
        artifacts=_decode_paths(row["artifacts_json"]),
        usage=_decode_usage_leniently(row["usage_json"]),
        by_model=_decode_model_usage(row["model_usage_json"]),
        cost_usd=row["cost_usd"],
        iterations=row["iterations"],
        started_at=row["started_at"],
        seconds=(row["duration_ms"] or 0) / 1000,
        agents=agents,
    )


def _read_run_agents(connection: sqlite3.Connection, conversation_id: str, run_id: str) -> RunAgents | None:
    rows = connection.execute(_AGENTS_OF_RUN, (conversation_id, run_id)).fetchall()
    if not rows:
        return None
    results = {row["id"]: row["result_status"] for row in rows}
    ended = [row for row in rows if row["ended_at"] is not None]
    usage = sum((_decode_usage_leniently(row["usage_json"]) for row in ended), Usage())
    return RunAgents(
        count=len(results),
        succeeded=sum(status == "success" for status in results.values()),
        tokens=usage.context_tokens,
        cost_usd=total_cost(*(row["cost_usd"] for row in ended)),
        artifacts=tuple(dict.fromkeys(path for row in ended for path in _decode_paths(row["artifacts_json"]))),
    )


def _decode_usage_leniently(text: str | None) -> Usage:
    try:
        return decode_usage(text) if text else Usage()
    except CodecError:
        return Usage()


def _decode_model_usage(text: str | None) -> tuple[ModelUsage, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[ModelUsage, ...]) if text else ()
    except msgspec.DecodeError:
        return ()


def _decode_paths(text: str | None) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[str, ...]) if text else ()
    except msgspec.DecodeError:
        return ()


_TRACE_STATUS = {RunStatus.SUCCESS: "completed", RunStatus.CANCELLED: "cancelled"}
"""The column `traces.status`; every other end of a run is an error."""


_ANSWER: Final = """(SELECT substr(trim(text), 1, 500) FROM messages
    WHERE run_id = r.id AND role = 'assistant' AND trim(text) <> '' ORDER BY seq DESC LIMIT 1)"""
"""Beginning of the last answer of the run `r`."""


def start_run(connection: sqlite3.Connection, conversation_id: str, starting: StartRun, at: float) -> None:
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
    set_run_type(connection, conversation_id, starting.run_id)


def place_run_in_turn(connection: sqlite3.Connection, conversation_id: str, run_id: str) -> None:
    """Put a run into the turn of its move; its inbox entries began it."""
    connection.execute(
        """UPDATE runs SET turn_id = (SELECT id FROM turns WHERE conversation_id = ?
            ORDER BY turn_number DESC LIMIT 1), trigger_message_id = COALESCE(trigger_message_id,
            (SELECT id FROM messages WHERE run_id = runs.id AND role = 'user' ORDER BY seq LIMIT 1)) WHERE id = ?""",
        (conversation_id, run_id),
    )


def finish_run(connection: sqlite3.Connection, finishing: FinishRun, at: float) -> None:
    """Close a run, its trace and the time of its turn."""
    queue_run(connection, finishing.run_id)
    connection.execute(
        f"""UPDATE runs AS r SET status = ?, error = ?, error_code = ?, recoverable = ?, iterations = ?, ended_at = ?,
            duration_ms = CAST(MAX(0, (? - started_at) * 1000) AS INTEGER), output = {_ANSWER} WHERE id = ?""",
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
    run_id = finishing.run_id
    written = dict.fromkeys(
        one["path"] for one in connection.execute(_WRITTEN, (run_id,)) if isinstance(one["path"], str)
    )
    paths = msgspec.json.encode(list(written)).decode()
    connection.execute("UPDATE runs SET artifacts_json = ? WHERE id = ?", (paths, run_id))
    connection.execute(
        "UPDATE traces SET status = ?, ended_at = ? WHERE run_id = ?",
        (_TRACE_STATUS.get(finishing.status, "error"), at, finishing.run_id),
    )
    sum_up_run(connection, finishing.run_id)
    connection.execute(
        "UPDATE turns SET ended_at = ? WHERE id = (SELECT turn_id FROM runs WHERE id = ?)", (at, finishing.run_id)
    )


def record_call(connection: sqlite3.Connection, conversation_id: str, call: ModelCall) -> None:
    """Store an ended call, with its span; an ended run is summed up again."""
    record_model_call(connection, conversation_id, call)
    add_call_span(connection, conversation_id, call)
    if call.run_id:
        row = connection.execute("SELECT status FROM runs WHERE id = ?", (call.run_id,)).fetchone()
        if not (row is not None and row["status"] != "running"):
            return
        sum_up_run(connection, call.run_id)
    queue_late_call(connection, call.run_id, call.id)


def record_cut_off_call(connection: sqlite3.Connection, conversation_id: str, run_id: str, at: float) -> None:
    """Store the call that a crash ended, with unknown usage."""
    row = connection.execute("SELECT model FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
    provider, _, model = str(row["model"]).partition("/")
    purpose, status, call_id = CallPurpose.REPLY, CallStatus.CANCELLED, str(uuid4())
    cut = ModelCall(call_id, purpose, status, provider, model, estimated=True, run_id=run_id, started_at=at)
    record_call(connection, conversation_id, replace(cut, error="interrupted"))


def sum_up_run(connection: sqlite3.Connection, run_id: str) -> None:
    """Store the usage of an ended run: the sums over its model calls, in its own row and its trace."""
    sum_up_usage(connection, run_id)
    connection.execute(
        """UPDATE traces SET cost_usd = (SELECT cost_usd FROM runs WHERE id = traces.run_id),
            input_tokens = (SELECT COALESCE(SUM(input_tokens), 0) FROM model_calls WHERE run_id = traces.run_id),
            output_tokens = (SELECT COALESCE(SUM(output_tokens), 0) FROM model_calls WHERE run_id = traces.run_id)
            WHERE run_id = ?""",
        (run_id,),
    )


def limit_run(connection: sqlite3.Connection, limiting: LimitRun) -> None:
    """Write how long a run may take; 0: any time."""
    connection.execute("UPDATE runs SET timeout_ms = ? WHERE id = ?", (round(limiting.seconds * 1000), limiting.run_id))


def find_active_run(connection: sqlite3.Connection, conversation_id: str) -> str:
    """The run that is under way, or empty."""
    row = connection.execute(
        "SELECT id FROM runs WHERE conversation_id = ? AND status = 'running'", (conversation_id,)
    ).fetchone()
    return row["id"] if row else ""


_PART_OF_ID: Final = re.compile(r"[0-9a-zA-Z-]{1,64}")
_OVERVIEWS: Final = f"""SELECT r.*, substr(ltrim(m.text, char(10, 13, 32, 9)), 1, 200) AS words,
    c.title, c.agent_task, c.parent_id, c.owner_instance, p.owner_instance AS above, c.profile, c.cwd, c.model,
    COALESCE(r.output, {_ANSWER}) AS answered
    FROM runs AS r JOIN conversations AS c ON c.id = r.conversation_id
    LEFT JOIN conversations AS p ON p.id = c.parent_id
    LEFT JOIN messages AS m ON m.id = r.trigger_message_id WHERE c.partial IS NULL"""
_NEWEST_OF: Final = "r.rowid = (SELECT rowid FROM runs WHERE conversation_id = c.id ORDER BY rowid DESC LIMIT 1)"
_UNBEGUN: Final = """SELECT c.id AS conversation_id, c.title, c.agent_task, c.parent_id, c.owner_instance,
    p.owner_instance AS above, c.profile, c.cwd, c.model, c.created_at, c.state, c.result_status, c.result_error
    FROM conversations AS c LEFT JOIN conversations AS p ON p.id = c.parent_id
    WHERE c.kind = 'subagent' AND c.partial IS NULL AND NOT EXISTS (SELECT 1 FROM runs WHERE conversation_id = c.id)"""
_BEGINS: Final = "{0} >= ?1 AND {0} < ?1 || '~'"
_OWN_REQUESTS: Final = """SELECT q.conversation_id, q.run_id, CASE WHEN q.run_id IS NULL THEN c.state = 'idle'
        ELSE EXISTS (SELECT 1 FROM runs WHERE id = q.run_id AND status = 'running') END AS holds
    FROM cancel_requests AS q JOIN conversations AS c ON c.id = q.conversation_id
    LEFT JOIN conversations AS p ON p.id = c.parent_id WHERE ?1 IN (c.owner_instance, p.owner_instance)"""
"""Requests for conversations of a process; those for runs that are over hold no longer."""


class RunStore(OwnedTables):
    """Runs by id; shares the connections of its store."""

    @reads_long
    def newest(self, connection: sqlite3.Connection, conversation_id: str, limit: int) -> list[RunOverview]:
        """The newest runs, newest first; of one conversation, or of all where it is empty."""
        chosen = " AND r.conversation_id = ?1" if conversation_id else " AND ?1 = ''"
        rows = connection.execute(
            f"{_OVERVIEWS}{chosen} ORDER BY r.rowid DESC LIMIT ?2", (conversation_id, limit)
        ).fetchall()
        return [self._overview(connection, row) for row in rows]

    @reads_long
    def find(self, connection: sqlite3.Connection, reference: str, limit: int) -> list[RunOverview]:
        """Runs whose id is `reference`, else those whose id or conversation's id begins with it.

        Of a conversation the newest run; of a sub-agent that has not begun its place in the queue.
        """
        if not _PART_OF_ID.fullmatch(reference):
            return []
        exact = connection.execute(f"{_OVERVIEWS} AND r.id = ?1", (reference,)).fetchall()
        if exact:
            return [self._overview(connection, row) for row in exact]
        of_runs, of_conversations = _BEGINS.format("r.id"), _BEGINS.format("c.id")
        rows = connection.execute(
            f"{_OVERVIEWS} AND ({of_runs} OR {of_conversations} AND {_NEWEST_OF}) ORDER BY r.rowid DESC LIMIT ?2",
            (reference, limit),
        ).fetchall()
        queued = connection.execute(f"{_UNBEGUN} AND {of_conversations} LIMIT ?2", (reference, limit)).fetchall()
        return [self._overview(connection, row) for row in rows] + [self._unbegun(connection, q) for q in queued]

    @reads
    def read(self, connection: sqlite3.Connection, conversation_id: str, run_id: str) -> RunOverview | None:
        """One run as it is now; without `run_id` the newest of the conversation, or its place in the queue."""
        chosen = "r.id = ?2" if run_id else _NEWEST_OF
        row = connection.execute(
            f"{_OVERVIEWS} AND c.id = ?1 AND ?2 = ?2 AND {chosen}", (conversation_id, run_id)
        ).fetchone()
        if row is not None:
            return self._overview(connection, row, whole=True)
        queued = connection.execute(f"{_UNBEGUN} AND c.id = ?1", (conversation_id,)).fetchone()
        return self._unbegun(connection, queued) if queued is not None and not run_id else None

    @reads
    def is_taken(self, connection: sqlite3.Connection, run_id: str) -> bool:
        """True when a run has this id."""
        return connection.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone() is not None

    @writes
    def request_cancel(self, connection: sqlite3.Connection, conversation_id: str, run_id: str, at: float) -> bool:
        """Ask the process that has the conversation to cancel the run; False where it has ended already."""
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
        return await self.transactions.write(job) if await self.transactions.read(waiting) else []

    async def foreign_version(self) -> int:
        """A number that changes with each commit of another process."""
        return await self.transactions.foreign_version()

    def _overview(self, connection: sqlite3.Connection, row: Any, *, whole: bool = False) -> RunOverview:
        return RunOverview(
            record=_read_record(
                row, _read_run_agents(connection, row["conversation_id"], row["id"]) if whole else None
            ),
            conversation_id=row["conversation_id"],
            title=row["agent_task"] or row["title"],
            parent_id=row["parent_id"] or "",
            error_code=row["error_code"],
            owner_pid=self._owner(connection, row),
            output=row["answered"] or "",
            agent=row["profile"] or "",
            cwd=row["cwd"],
            model=row["model"],
        )

    def _unbegun(self, connection: sqlite3.Connection, row: Any) -> RunOverview:
        title, error = row["agent_task"] or row["title"], row["result_error"] or ""
        status = QUEUED if row["state"] == STATE_NAMES[Idle] else row["result_status"] or "failure"
        record = RunRecord(
            "", "general", title, Strategy.SINGLE, "", status, error, (), Usage(), (), 0.0, 0, row["created_at"], 0.0
        )
        return RunOverview(
            record,
            row["conversation_id"],
            title,
            row["parent_id"] or "",
            owner_pid=self._owner(connection, row),
            agent=row["profile"] or "",
            cwd=row["cwd"],
            model=row["model"],
        )

    def _owner(self, connection: sqlite3.Connection, row: Any) -> int | None:
        living = self._instance.living_pid
        return living(connection, row["owner_instance"]) or living(connection, row["above"])
