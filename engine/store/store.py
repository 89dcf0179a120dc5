"""`engine.ports.Store` on SQLite: each method is one job on one of two connections."""

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
from engine.ports.database_waits import DatabaseWaits
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
from engine.store.agents import SqliteAgents
from engine.store.connection import Transactions
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
from engine.store.events import SqliteEventLog, add_change_events
from engine.store.inbox import SqliteQueue
from engine.store.library import SqliteLibrary
from engine.store.memory_index import SqliteNotes
from engine.store.messages import add_attachment, read_attachments, read_messages
from engine.store.moves import LOST, commit_move
from engine.store.names import escape_like
from engine.store.opening import StorePaths
from engine.store.ownership import Instance
from engine.store.recovery import (
    is_recovery_needed,
    recover_all_conversations,
    recover_conversation,
    take_over_conversation,
)
from engine.store.runs import SqliteRuns, record_call
from engine.store.slices import Slices
from engine.store.statistics import SqliteStatistics
from engine.store.task_store import SqliteTasks
from engine.store.tool_calls import note_process, read_tool_calls
from engine.store.trace_export import SqliteTraceQueue
from engine.store.turns import SqliteTurnLog, store_turn_note
from tools.contract import PreparedImage
from tools.slugs import slug_of

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


class SqliteStore:
    """Conversations in one file, shared with other processes; `library` and `queue` are other ports on it."""

    def __init__(
        self,
        transactions: Transactions,
        paths: StorePaths,
        *,
        warning: str = "",
        temporary: Path | None = None,
    ) -> None:
        self._transactions = transactions
        self._instance = Instance(paths.locks)
        self._paths = paths
        self._warning = warning
        self._temporary = temporary
        slices = Slices(transactions, self._instance, paths.attachments, paths.remains)
        self.library = SqliteLibrary(transactions, self._instance, paths.attachments, slices)
        self.queue = SqliteQueue(transactions, self._instance)
        self.agents = SqliteAgents(transactions, self._instance)
        self.turn_log = SqliteTurnLog(transactions, self._instance, slices)
        self.notes = SqliteNotes(transactions)
        self.trace_queue = SqliteTraceQueue(transactions, self._instance)
        self.tasks = SqliteTasks(transactions, self._instance)
        self.events = SqliteEventLog(transactions)
        self.runs = SqliteRuns(transactions, self._instance)
        self.statistics = SqliteStatistics(transactions)

    @property
    def waits(self) -> DatabaseWaits:
        """Waits for another program that uses the database."""
        return self._transactions.waits

    @property
    def warning(self) -> str:
        """Reason and remedy while nothing is kept on disk; else empty."""
        return self._warning

    @property
    def path(self) -> Path:
        """The database file in use."""
        return self._paths.database

    async def create(self, new: NewConversation, at: float) -> StoredConversation:
        """Create a conversation in state idle, owned by this process."""

        def job(connection: sqlite3.Connection) -> StoredConversation:
            create_conversation(connection, new, at)
            self._instance.claim(connection, new.id, at)
            return require_conversation(connection, new.id, self._instance)

        return await self._transactions.write(job)

    async def conversation(self, conversation_id: str) -> StoredConversation | None:
        """One conversation, or None."""
        return await self._transactions.read(
            lambda connection: read_conversation(connection, conversation_id, self._instance)
        )

    async def conversations(self, query: ConversationQuery) -> list[ConversationSummary]:
        """The list, newest first."""
        return await self._transactions.read(lambda connection: list_conversations(connection, query, self._instance))

    async def find(self, reference: str, *, partly: bool = False) -> list[ConversationSummary]:
        """See `Store.find`."""

        def job(connection: sqlite3.Connection) -> list[ConversationSummary]:
            found = find_conversations(connection, reference, self._instance)
            return found or (find_by_part(connection, reference, self._instance) if partly else found)

        return await self._transactions.read(job)

    async def take(self, conversation_id: str) -> Recovery:
        """Become the owner; conversations of a dead owner are recovered first.

        Raises:
            OwnedElsewhere: a living process has it.
        """

        def job(connection: sqlite3.Connection) -> Recovery:
            if self._instance.owns(connection, conversation_id):
                return Recovery(conversation_id)
            return take_over_conversation(connection, self._instance, conversation_id, time.time())

        return await self._transactions.write(job)

    async def mend(self, conversation_id: str) -> None:
        """Bring a conversation of this process to rest, whose last move could not be stored."""

        def job(connection: sqlite3.Connection) -> None:
            try:
                owned = self._instance.owns(connection, conversation_id)
            except OwnedElsewhere:
                owned = False
            if not owned:
                raise StorageError(LOST)
            recover_conversation(connection, conversation_id, time.time(), quiet=False)

        await self._transactions.write(job)

    async def release(self, conversation_id: str) -> None:
        """Give ownership up."""
        await self._transactions.write(lambda connection: self._instance.release(connection, conversation_id))

    async def recover_all(self) -> list[Recovery]:
        """Recovery of every conversation whose owner is dead; returns those where there was something to do."""
        if not await self._transactions.read(lambda connection: is_recovery_needed(connection, self._instance)):
            return []
        return await self._transactions.write(
            lambda connection: recover_all_conversations(connection, self._instance, time.time())
        )

    async def commit(self, move: Move) -> Committed:
        """Write one move in one transaction; no cancellation reaches it once it is queued."""
        return await self._transactions.write(lambda connection: commit_move(connection, move, self._instance))

    async def note_process(self, conversation_id: str, call_id: str, pid: int, started: int) -> None:
        """Remember the process of a running call."""
        await self._transactions.write(
            lambda connection: note_process(connection, conversation_id, call_id, pid, started)
        )

    async def change(self, conversation_id: str, changes: ConversationChanges, at: float) -> None:
        """Change fields outside a move.

        Raises:
            OwnedElsewhere: a living process has it.
        """

        def job(connection: sqlite3.Connection) -> None:
            self._instance.owns(connection, conversation_id)  # raises if another process has it
            change_conversation(connection, conversation_id, changes, at)
            for call in changes.calls:
                record_call(connection, conversation_id, call)
            add_change_events(connection, conversation_id, changes, at)
            if changes.turn_note is not None:
                store_turn_note(connection, conversation_id, changes.turn_note)

        await self._transactions.write(job)

    async def messages(
        self, conversation_id: str, *, first_seq: int = 1, last_seq: int | None = None, limit: int | None = None
    ) -> list[StoredMessage]:
        """Messages by seq, ascending; with `limit` the newest of the range."""
        return await self._transactions.read(
            lambda connection: read_messages(connection, conversation_id, first_seq, last_seq, limit)
        )

    async def tool_calls(self, conversation_id: str, message_ids: Sequence[str]) -> list[ToolCallRecord]:
        """The calls of these assistant messages, in request order."""
        return await self._transactions.read(
            lambda connection: read_tool_calls(connection, conversation_id, message_ids)
        )

    async def add_attachment(self, conversation_id: str, image: PreparedImage, at: float) -> Attachment:
        """Store an image once per content hash and conversation."""
        return await self._transactions.write(
            lambda connection: add_attachment(connection, self._paths.attachments, conversation_id, image, at)
        )

    async def attachments(self, ids: Sequence[str]) -> Mapping[str, Attachment]:
        """Attachments by id; unknown ids are missing from the answer."""
        return await self._transactions.read(
            lambda connection: read_attachments(connection, self._paths.attachments, ids)
        )

    async def close(self) -> None:
        """Finish queued writes and close; releases every ownership."""
        if self._instance.registered:
            with suppress(StorageError):  # the next start checks the file
                await self._transactions.write(self._instance.leave)
        try:
            await self._transactions.close()
        finally:
            self._instance.unlock()
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)
