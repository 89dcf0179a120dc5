"""The events of one move: collected while its writes are applied, inserted by one statement."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.ports import AppendMessage, RecordEvent
from engine.store import event_rows
from engine.store.event_rows import COLUMNS, EventRow

MOST_ROWS: Final = 16
"""Rows of one statement; each number of rows has its own, which SQLite keeps prepared."""
_MARKS: Final = f"({', '.join('?' * len(COLUMNS))})"
_INSERTS: Final = tuple(
    f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES {', '.join([_MARKS] * count)}" for count in range(MOST_ROWS + 1)
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
        self._rows.append(event_rows.row_of(self._connection, self._conversation_id, event, self._at))

    def add_message(self, addition: AppendMessage, seq: int) -> None:
        """Append the event of a message that is stored in this transaction."""
        self._rows.append(event_rows.message_row(self._conversation_id, self._agent_id, addition, seq, self._at))

    def store(self) -> None:
        """Insert them all."""
        for first in range(0, len(self._rows), MOST_ROWS):
            rows = self._rows[first : first + MOST_ROWS]
            self._connection.execute(_INSERTS[len(rows)], [value for row in rows for value in row])
        self._rows.clear()
