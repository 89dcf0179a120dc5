"""`engine.ports.Store` on SQLite: each method is one job on one of two connections."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

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
from engine.store import (
    attachments,
    conversations,
    event_rows,
    messages,
    moves,
    recovery,
    references,
    runs,
    tool_calls,
    turn_summaries,
)
from engine.store.agent_store import SqliteAgents
from engine.store.connection import Transactions
from engine.store.event_log import SqliteEventLog
from engine.store.library import SqliteLibrary
from engine.store.memory_index import SqliteNotes
from engine.store.ownership import Instance
from engine.store.queued import SqliteQueue
from engine.store.run_store import SqliteRuns
from engine.store.slices import Slices
from engine.store.statistics_store import SqliteStatistics
from engine.store.store_paths import StorePaths
from engine.store.task_store import SqliteTasks
from engine.store.trace_exports import SqliteTraceQueue
from engine.store.turn_log import SqliteTurnLog
from tools.contract import PreparedImage


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
            conversations.create(connection, new, at)
            self._instance.claim(connection, new.id, at)
            return conversations.record(connection, new.id, self._instance)

        return await self._transactions.write(job)

    async def conversation(self, conversation_id: str) -> StoredConversation | None:
        """One conversation, or None."""
        return await self._transactions.read(
            lambda connection: conversations.read(connection, conversation_id, self._instance)
        )

    async def conversations(self, query: ConversationQuery) -> list[ConversationSummary]:
        """The list, newest first."""
        return await self._transactions.read(
            lambda connection: conversations.list_page(connection, query, self._instance)
        )

    async def find(self, reference: str, *, partly: bool = False) -> list[ConversationSummary]:
        """See `Store.find`."""

        def job(connection: sqlite3.Connection) -> list[ConversationSummary]:
            found = references.find(connection, reference, self._instance)
            return found or (references.find_part(connection, reference, self._instance) if partly else found)

        return await self._transactions.read(job)

    async def take(self, conversation_id: str) -> Recovery:
        """Become the owner; conversations of a dead owner are recovered first.

        Raises:
            OwnedElsewhere: a living process has it.
        """

        def job(connection: sqlite3.Connection) -> Recovery:
            if self._instance.owns(connection, conversation_id):
                return Recovery(conversation_id)
            return recovery.take_over(connection, self._instance, conversation_id, time.time())

        return await self._transactions.write(job)

    async def mend(self, conversation_id: str) -> None:
        """Bring a conversation of this process to rest, whose last move could not be stored."""

        def job(connection: sqlite3.Connection) -> None:
            try:
                owned = self._instance.owns(connection, conversation_id)
            except OwnedElsewhere:
                owned = False
            if not owned:
                raise StorageError(moves.LOST)
            recovery.recover(connection, conversation_id, time.time(), quiet=False)

        await self._transactions.write(job)

    async def release(self, conversation_id: str) -> None:
        """Give ownership up."""
        await self._transactions.write(lambda connection: self._instance.release(connection, conversation_id))

    async def recover_all(self) -> list[Recovery]:
        """Recovery of every conversation whose owner is dead; returns those where there was something to do."""
        if not await self._transactions.read(lambda connection: recovery.is_needed(connection, self._instance)):
            return []
        return await self._transactions.write(
            lambda connection: recovery.recover_all(connection, self._instance, time.time())
        )

    async def commit(self, move: Move) -> Committed:
        """Write one move in one transaction; no cancellation reaches it once it is queued."""
        return await self._transactions.write(lambda connection: moves.commit(connection, move, self._instance))

    async def note_process(self, conversation_id: str, call_id: str, pid: int, started: int) -> None:
        """Remember the process of a running call."""
        await self._transactions.write(
            lambda connection: tool_calls.note_process(connection, conversation_id, call_id, pid, started)
        )

    async def change(self, conversation_id: str, changes: ConversationChanges, at: float) -> None:
        """Change fields outside a move.

        Raises:
            OwnedElsewhere: a living process has it.
        """

        def job(connection: sqlite3.Connection) -> None:
            self._instance.owns(connection, conversation_id)  # raises if another process has it
            conversations.change(connection, conversation_id, changes, at)
            for call in changes.calls:
                runs.record_call(connection, conversation_id, call)
            event_rows.add_changes(connection, conversation_id, changes, at)
            if changes.turn_note is not None:
                turn_summaries.keep(connection, conversation_id, changes.turn_note)

        await self._transactions.write(job)

    async def messages(
        self, conversation_id: str, *, first_seq: int = 1, last_seq: int | None = None, limit: int | None = None
    ) -> list[StoredMessage]:
        """Messages by seq, ascending; with `limit` the newest of the range."""
        return await self._transactions.read(
            lambda connection: messages.read_range(connection, conversation_id, first_seq, last_seq, limit)
        )

    async def tool_calls(self, conversation_id: str, message_ids: Sequence[str]) -> list[ToolCallRecord]:
        """The calls of these assistant messages, in request order."""
        return await self._transactions.read(
            lambda connection: tool_calls.read(connection, conversation_id, message_ids)
        )

    async def add_attachment(self, conversation_id: str, image: PreparedImage, at: float) -> Attachment:
        """Store an image once per content hash and conversation."""
        return await self._transactions.write(
            lambda connection: attachments.add(connection, self._paths.attachments, conversation_id, image, at)
        )

    async def attachments(self, ids: Sequence[str]) -> Mapping[str, Attachment]:
        """Attachments by id; unknown ids are missing from the answer."""
        return await self._transactions.read(
            lambda connection: attachments.read(connection, self._paths.attachments, ids)
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
