"""The store of all conversations: each method is one job on one of two connections."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from engine.codec import storable
from engine.ports import Committed, ConversationChanges, Move, OwnedElsewhere, StorageError
from engine.ports.storage import DatabaseWaits
from engine.records import (
    Attachment,
    ConversationQuery,
    ConversationSummary,
    NewConversation,
    Recovery,
    StoredConversation,
    StoredMessage,
    ToolCallRecord,
)
from engine.store.agents import AgentStore
from engine.store.connection import Transactions, reads, writes
from engine.store.conversations import (
    LISTED,
    NOT_SUPERSEDED,
    change_conversation,
    create_conversation,
    list_conversations,
    read_conversation,
    read_summaries,
    require_conversation,
)
from engine.store.events import EventLog, add_change_events
from engine.store.inbox import QueueStore
from engine.store.library import Library
from engine.store.memory_index import SqliteNotes
from engine.store.messages import add_attachment, read_attachments, read_messages
from engine.store.moves import LOST, commit_move
from engine.store.names import escape_like
from engine.store.opening import StorePaths
from engine.store.ownership import Instance, OwnedTables
from engine.store.recovery import (
    is_recovery_needed,
    recover_all_conversations,
    recover_conversation,
    take_over_conversation,
)
from engine.store.runs import RunStore, record_call
from engine.store.slices import Slices
from engine.store.statistics import StatisticsStore
from engine.store.task_store import TaskStore
from engine.store.tool_calls import note_process, read_tool_calls
from engine.store.trace_export import TraceQueue
from engine.store.turns import TurnLog, store_turn_note
from tools.contract import PreparedImage
from tools.fresh_ids import slug_of

_USERS = "c.kind = 'user' AND c.deleted_at IS NULL AND c.partial IS NULL"


def find_conversations(connection: sqlite3.Connection, reference: str, instance: Instance) -> list[ConversationSummary]:
    """Find by whole id, else by the beginning of an id, the slug and the title, all of them together."""
    wanted = storable(reference)
    if not wanted:
        return []
    begins = f"{escape_like(wanted)}%"
    named = f"c.id LIKE ? ESCAPE '\\' OR (c.slug = ? OR c.title = ?) AND {NOT_SUPERSEDED}"
    return (
        _select_where(connection, instance, "c.id = ?", wanted)
        or _select_where(connection, instance, named, begins, wanted, wanted)
        or _select_ids(connection, instance, _find_without_slug(connection, wanted))
    )


def find_by_part(connection: sqlite3.Connection, reference: str, instance: Instance) -> list[ConversationSummary]:
    """Find by the beginning of the title or slug, else by a part of the title, ignoring case."""
    wanted, slug = storable(reference).strip().casefold(), slug_of(reference)
    if not wanted:
        return []
    titles = connection.execute(
        f"SELECT c.id, c.title, c.slug FROM conversations AS c WHERE {_USERS} AND c.title <> '' AND {NOT_SUPERSEDED}"
    ).fetchall()
    begin = [
        row["id"]
        for row in titles
        if row["title"].casefold().startswith(wanted) or (slug and (row["slug"] or "").startswith(slug))
    ]
    hold = () if begin else (row["id"] for row in titles if wanted in row["title"].casefold())
    return _select_ids(connection, instance, begin or hold)


def _find_without_slug(connection: sqlite3.Connection, wanted: str) -> list[str]:
    """Ids of conversations without a slug whose title would give this one: they were stored before there were slugs."""
    rows = connection.execute(f"SELECT c.id, c.title FROM conversations AS c WHERE {_USERS} AND c.slug IS NULL")
    return [row["id"] for row in rows if slug_of(row["title"]) == wanted]


def _select_ids(connection: sqlite3.Connection, instance: Instance, ids: Iterable[str]) -> list[ConversationSummary]:
    wanted = json.dumps(list(ids))
    chosen = f"c.id IN (SELECT value FROM json_each(?)) AND {NOT_SUPERSEDED}"
    return _select_where(connection, instance, chosen, wanted) if wanted != "[]" else []


def _select_where(
    connection: sqlite3.Connection, instance: Instance, condition: str, *values: str
) -> list[ConversationSummary]:
    rows = connection.execute(
        f"{LISTED} WHERE {_USERS} AND ({condition}) ORDER BY c.updated_at DESC, c.rowid DESC", values
    ).fetchall()
    return read_summaries(connection, rows, instance)


class Store(OwnedTables):
    """Conversations in one file, shared with other processes; `library` and `queue` are other ports on it."""

    def __init__(
        self,
        transactions: Transactions,
        paths: StorePaths,
        *,
        warning: str = "",
        temporary: Path | None = None,
    ) -> None:
        super().__init__(transactions, Instance(paths.locks))
        self._paths = paths
        self._warning = warning
        self._temporary = temporary
        slices = Slices(transactions, self._instance, paths.attachments, paths.remains)
        self.library = Library(transactions, self._instance, paths.attachments, slices)
        self.queue = QueueStore(transactions, self._instance)
        self.agents = AgentStore(transactions, self._instance)
        self.turn_log = TurnLog(transactions, self._instance, slices)
        self.notes = SqliteNotes(transactions)
        self.trace_queue = TraceQueue(transactions, self._instance)
        self.tasks = TaskStore(transactions, self._instance)
        self.events = EventLog(transactions)
        self.runs = RunStore(transactions, self._instance)
        self.statistics = StatisticsStore(transactions)

    @property
    def waits(self) -> DatabaseWaits:
        """Waits for another program that keeps the database busy, to be shown and ended."""
        return self.transactions.waits

    @property
    def warning(self) -> str:
        """Reason and remedy while nothing is kept on disk; empty otherwise (FAULTS 30)."""
        return self._warning

    @property
    def path(self) -> Path:
        """The database file in use."""
        return self._paths.database

    @writes
    def create(self, connection: sqlite3.Connection, new: NewConversation, at: float) -> StoredConversation:
        """Create a conversation in state idle, owned by this process."""
        create_conversation(connection, new, at)
        self._instance.claim(connection, new.id, at)
        return require_conversation(connection, new.id, self._instance)

    @reads
    def conversation(self, connection: sqlite3.Connection, conversation_id: str) -> StoredConversation | None:
        """One conversation, or None."""
        return read_conversation(connection, conversation_id, self._instance)

    @reads
    def conversations(self, connection: sqlite3.Connection, query: ConversationQuery) -> list[ConversationSummary]:
        """The list, newest first."""
        return list_conversations(connection, query, self._instance)

    @reads
    def find(
        self, connection: sqlite3.Connection, reference: str, *, partly: bool = False
    ) -> list[ConversationSummary]:
        """Conversations whose id is `reference`, else all whose id starts with it or whose slug or title equals it.

        With `partly`, where there are none, those whose title or slug begins with it, else whose title holds it.
        """
        found = find_conversations(connection, reference, self._instance)
        return found or (find_by_part(connection, reference, self._instance) if partly else found)

    @writes
    def take(self, connection: sqlite3.Connection, conversation_id: str) -> Recovery:
        """Become the owner; conversations of a dead owner are recovered first (SPEC STM-10).

        Raises:
            OwnedElsewhere: a living process has it.
        """
        if self._instance.owns(connection, conversation_id):
            return Recovery(conversation_id)
        return take_over_conversation(connection, self._instance, conversation_id, time.time())

    @writes
    def mend(self, connection: sqlite3.Connection, conversation_id: str) -> None:
        """Bring a conversation of this process to rest, whose last move could not be stored, as after a crash."""
        try:
            owned = self._instance.owns(connection, conversation_id)
        except OwnedElsewhere:
            owned = False
        if not owned:
            raise StorageError(LOST)
        recover_conversation(connection, conversation_id, time.time(), quiet=False)

    @writes
    def release(self, connection: sqlite3.Connection, conversation_id: str) -> None:
        """Give ownership up."""
        self._instance.release(connection, conversation_id)

    async def recover_all(self) -> list[Recovery]:
        """Recovery of every conversation whose owner is dead; returns those where there was something to do."""
        if not await self.transactions.read(lambda connection: is_recovery_needed(connection, self._instance)):
            return []
        return await self.transactions.write(
            lambda connection: recover_all_conversations(connection, self._instance, time.time())
        )

    @writes
    def commit(self, connection: sqlite3.Connection, move: Move) -> Committed:
        """Write one move in one transaction; no cancellation reaches it once it is queued."""
        return commit_move(connection, move, self._instance)

    @writes
    def note_process(
        self, connection: sqlite3.Connection, conversation_id: str, call_id: str, pid: int, started: int
    ) -> None:
        """Remember the process of a running call."""
        note_process(connection, conversation_id, call_id, pid, started)

    @writes
    def change(
        self, connection: sqlite3.Connection, conversation_id: str, changes: ConversationChanges, at: float
    ) -> None:
        """Change fields outside a move.

        Raises:
            OwnedElsewhere: a living process has it.
        """
        self._instance.owns(connection, conversation_id)  # raises if another process has it
        change_conversation(connection, conversation_id, changes, at)
        for call in changes.calls:
            record_call(connection, conversation_id, call)
        add_change_events(connection, conversation_id, changes, at)
        if changes.turn_note is not None:
            store_turn_note(connection, conversation_id, changes.turn_note)

    @reads
    def messages(
        self,
        connection: sqlite3.Connection,
        conversation_id: str,
        *,
        first_seq: int = 1,
        last_seq: int | None = None,
        limit: int | None = None,
    ) -> list[StoredMessage]:
        """Messages by seq, ascending; with `limit` the newest of the range."""
        return read_messages(connection, conversation_id, first_seq, last_seq, limit)

    @reads
    def tool_calls(
        self, connection: sqlite3.Connection, conversation_id: str, message_ids: Sequence[str]
    ) -> list[ToolCallRecord]:
        """The calls of these assistant messages, in request order."""
        return read_tool_calls(connection, conversation_id, message_ids)

    @writes
    def add_attachment(
        self, connection: sqlite3.Connection, conversation_id: str, image: PreparedImage, at: float
    ) -> Attachment:
        """Store an image once per content hash and conversation."""
        return add_attachment(connection, self._paths.attachments, conversation_id, image, at)

    @reads
    def attachments(self, connection: sqlite3.Connection, ids: Sequence[str]) -> Mapping[str, Attachment]:
        """Attachments by id; unknown ids are missing from the answer."""
        return read_attachments(connection, self._paths.attachments, ids)

    async def close(self) -> None:
        """Finish queued writes and close; releases every ownership."""
        if self._instance.registered:
            with suppress(StorageError):  # the next start checks the file
                await self.transactions.write(self._instance.leave)
        try:
            await self.transactions.close()
        finally:
            self._instance.unlock()
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)
