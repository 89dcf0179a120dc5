"""The table `events`: written in the transaction of the move in which each thing happens, read in order."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec

from engine.codec import storable
from engine.ports import AppendMessage, ConversationChanges, RecordEvent
from engine.records import events as payloads
from engine.records.events import EventKind, EventSnapshot, StandingRun, StoredEvent
from engine.records.runs import PREVIEW
from engine.store.connection import TableGroup, reads, writes
from engine.store.runs import read_run_figures
from tools.contract import JsonObject
from tools.fresh_ids import fresh_id

PAGE: Final = 200
"""Events of one read."""
LOOK_EVERY: Final = 0.1
"""Seconds between two looks for newer events."""
EVENT_COLUMNS: Final = ("id", "conversation_id", "message_id", "run_id", "agent_id", "type", "payload_json", "ts")
EventRow: TypeAlias = tuple[str, str, str | None, str | None, str | None, str, str, float]
"""Values of `COLUMNS`."""
_INSERT: Final = f"INSERT INTO events ({', '.join(EVENT_COLUMNS)}) VALUES ({', '.join('?' * len(EVENT_COLUMNS))})"
_PROMPT: Final = """SELECT substr(COALESCE(
    (SELECT text FROM messages WHERE run_id = ?1 AND role = 'user' ORDER BY seq LIMIT 1),
    (SELECT text FROM messages WHERE conversation_id = ?2 AND role = 'user' AND origin = 'human'
        ORDER BY seq DESC LIMIT 1), ''), 1, ?3)"""
_ENDS: Final = frozenset({EventKind.TASK_COMPLETED, EventKind.TASK_FAILED, EventKind.TASK_CANCELLED})
_OF_AGENTS: Final = frozenset({EventKind.TASK_SUBAGENT_START, EventKind.TASK_SUBAGENT_STOP})
_MOST_FILES: Final = 50
"""Written files that the end of a run names."""
_MOST_STANDING: Final = 500
"""Conversations at work that a snapshot names."""


def add_event(connection: sqlite3.Connection, conversation_id: str, event: RecordEvent, at: float) -> None:
    """Append an event outside of a move."""
    connection.execute(_INSERT, make_event_row(connection, conversation_id, event, at))


def make_event_row(connection: sqlite3.Connection, conversation_id: str, event: RecordEvent, at: float) -> EventRow:
    """The row of an event; the start and the end of a run get what only the rows of the run know."""
    run_id, payload = event.run_id, event.payload_json
    if event.type in _ENDS:
        payload = _add_figures(connection, run_id, payload)
    elif event.type is EventKind.TASK_STARTED:
        payload = _add_prompt(connection, conversation_id, run_id, payload)
    elif event.type in _OF_AGENTS:
        row = connection.execute("SELECT parent_run_id FROM runs WHERE id = ?", (run_id,)).fetchone()
        run_id = str(row[0] or "") if row is not None else ""
    return (
        event.id,
        event.conversation_id or conversation_id,
        event.message_id or None,
        run_id or None,
        event.agent_id or None,
        event.type.value,
        storable(payload),
        at,
    )


def make_message_row(conversation_id: str, agent_id: str, addition: AppendMessage, seq: int, at: float) -> EventRow:
    """The row of the event of a message; its values are words of Phoenix, which need no escapes."""
    message = addition.message
    payload = f'{{"role":"{message.role.value}","origin":"{message.origin.value}","seq":{seq}}}'
    kind, run_id = EventKind.MESSAGE_PERSISTED.value, addition.run_id or None
    return fresh_id(), conversation_id, message.id, run_id, agent_id or None, kind, payload, at


def add_message_event(
    connection: sqlite3.Connection, conversation_id: str, addition: AppendMessage, seq: int, at: float
) -> None:
    """Append the event of a message that a recovery stores."""
    (kind,) = connection.execute("SELECT kind FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
    agent_id = conversation_id if kind == "subagent" else ""
    connection.execute(_INSERT, make_message_row(conversation_id, agent_id, addition, seq, at))


def add_update_events(
    connection: sqlite3.Connection, conversation_id: str, message_ids: Iterable[str], status: str, at: float
) -> None:
    """Append the event of each message whose `task_process_status` changes in this transaction."""
    payload = payloads.encode_payload({"taskProcessStatus": status})
    for message_id in message_ids:
        event = RecordEvent(fresh_id(), EventKind.MESSAGE_UPDATED, payload, message_id=message_id)
        add_event(connection, conversation_id, event, at)


def add_change_events(
    connection: sqlite3.Connection, conversation_id: str, changes: ConversationChanges, at: float
) -> None:
    """Append the events of a change outside moves, and that of a window that it filled or emptied."""
    for event in changes.events:
        add_event(connection, conversation_id, event, at)
    if changes.context_tokens is None:
        return
    row = connection.execute("SELECT context_window FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
    payload: JsonObject = {"tokens": changes.context_tokens, "window": row[0] if row is not None else 0}
    payload["estimated"] = not changes.context_counted
    event = RecordEvent(fresh_id(), EventKind.CONTEXT_USAGE, payloads.encode_payload(payload))
    add_event(connection, conversation_id, event, at)


def read_newest_seq(connection: sqlite3.Connection) -> int:
    """The highest number that was ever given to an event; 0 before the first."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row is not None else 0


def _read_event(row: Any) -> StoredEvent:
    return StoredEvent(
        row["seq"],
        row["id"],
        row["type"],
        row["ts"],
        row["conversation_id"] or "",
        row["message_id"] or "",
        row["run_id"] or "",
        row["agent_id"] or "",
        row["payload_json"],
    )


def _add_figures(connection: sqlite3.Connection, run_id: str, payload: str) -> str:
    figures = read_run_figures(connection, run_id)
    if figures is None:
        return payload
    added: JsonObject = {
        "artifacts": list(figures.artifacts[:_MOST_FILES]),
        "usage": payloads.usage(figures.usage),
        "duration": figures.duration_ms,
        "costUsd": figures.cost_usd,
        "numTurns": figures.iterations,
    }
    between = "," if payload != "{}" else ""
    return f"{payload[:-1]}{between}{payloads.encode_payload(added)[1:]}"  # no name is in both


def _add_prompt(connection: sqlite3.Connection, conversation_id: str, run_id: str, payload: str) -> str:
    """A run that reads its inbox, or repeats an earlier one, begins with a message that is stored."""
    if not payload.startswith(payloads.NO_PROMPT):
        return payload
    found = connection.execute(_PROMPT, (run_id, conversation_id, PREVIEW)).fetchone()
    return payloads.encode_payload(msgspec.json.decode(payload, type=dict[str, Any]) | {"prompt": found[0]})


MOST_ROWS: Final = 16
"""Rows of one statement; each number of rows has its own, which SQLite keeps prepared."""
_MARKS: Final = f"({', '.join('?' * len(EVENT_COLUMNS))})"
_INSERTS: Final = tuple(
    f"INSERT INTO events ({', '.join(EVENT_COLUMNS)}) VALUES {', '.join([_MARKS] * count)}"
    for count in range(MOST_ROWS + 1)
)


class EventBatch:
    """Events of one conversation at one time, in their order; nothing reads them before `store`.

    A statement for each row would raise the counter of AUTOINCREMENT, and give up Python's lock, as often.
    """

    def __init__(self, connection: sqlite3.Connection, conversation_id: str, agent_id: str, at: float) -> None:
        """`agent_id` is that of the conversation where it is a sub-agent, else empty."""
        self._connection = connection
        self._conversation_id = conversation_id
        self._agent_id = agent_id
        self._at = at
        self._rows: list[EventRow] = []

    def add(self, event: RecordEvent) -> None:
        """Append an event, with what only the rows of this moment know."""
        self._rows.append(make_event_row(self._connection, self._conversation_id, event, self._at))

    def add_message(self, addition: AppendMessage, seq: int) -> None:
        """Append the event of a message that is stored in this transaction."""
        self._rows.append(make_message_row(self._conversation_id, self._agent_id, addition, seq, self._at))

    def store(self) -> None:
        """Insert them all."""
        for first in range(0, len(self._rows), MOST_ROWS):
            rows = self._rows[first : first + MOST_ROWS]
            self._connection.execute(_INSERTS[len(rows)], [value for row in rows for value in row])
        self._rows.clear()


class EventLog(TableGroup):
    """The event stream of one database."""

    @reads
    def after(
        self, connection: sqlite3.Connection, seq: int, conversation_id: str = "", limit: int = PAGE
    ) -> list[StoredEvent]:
        """At most `limit` events behind `seq`, in order; of one conversation, or of all where it is empty."""
        chosen = "conversation_id = ?1" if conversation_id else "?1 = ''"
        rows = connection.execute(
            f"SELECT * FROM events WHERE {chosen} AND seq > ?2 ORDER BY seq LIMIT ?3", (conversation_id, seq, limit)
        ).fetchall()
        return [_read_event(row) for row in rows]

    @reads
    def snapshot(self, connection: sqlite3.Connection, conversation_id: str = "") -> EventSnapshot:
        """The newest number, with the state of the conversation, or of all at work, as of that event."""
        chosen = "c.id = ?1" if conversation_id else "?1 = '' AND r.id IS NOT NULL"
        rows = connection.execute(
            f"""SELECT c.id, c.state, r.id AS run_id FROM conversations AS c
                LEFT JOIN runs AS r ON r.conversation_id = c.id AND r.status = 'running'
                WHERE {chosen} AND c.partial IS NULL ORDER BY c.rowid LIMIT ?2""",
            (conversation_id, _MOST_STANDING),
        ).fetchall()
        standing = tuple(StandingRun(row["id"], row["state"], row["run_id"] or "") for row in rows)
        return EventSnapshot(read_newest_seq(connection), standing)

    async def follow(
        self,
        seq: int,
        conversation_id: str = "",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> AsyncGenerator[StoredEvent]:
        """Every event behind `seq`, in order, without end; a reader that stops resumes by the last number it has seen.

        At most one page is in memory, however far behind the reader is.
        """
        seen: int | None = None
        while True:
            version = await self.version()  # ahead of the read, so that what comes meanwhile is looked for again
            if version != seen:
                seen = version
                page = await self.after(seq, conversation_id)
                while page:
                    for event in page:
                        seq = event.seq
                        yield event
                    page = await self.after(seq, conversation_id)
            await sleep(LOOK_EVERY)

    async def version(self) -> int:
        """A number that changes with each commit, of this process or another."""
        return await self.transactions.version()

    @writes
    def remove_older(self, connection: sqlite3.Connection, before: float, limit: int) -> int:
        """Remove the oldest events from before a time, at most `limit`; returns how many went."""
        done = connection.execute(
            "DELETE FROM events WHERE seq IN (SELECT seq FROM events ORDER BY seq LIMIT ?) AND ts < ?", (limit, before)
        )
        return done.rowcount
