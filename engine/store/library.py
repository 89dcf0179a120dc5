"""Operations on whole conversations."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from engine.ports import ConversationChanges, Imported, ImportTerms, OwnedElsewhere
from engine.ports.storage import IndexProgress
from engine.records import ForkPlace, FoundText, SearchAnswer, SideExchange, StoredCompaction, StoredConversation
from engine.records.runs import CallSum, RunRecord, TurnDigest, TurnSummary
from engine.search import SearchQuery
from engine.store.connection import Transactions, reads, reads_long, writes
from engine.store.conversations import change_conversation, list_compactions, require_conversation
from engine.store.forking import Fork
from engine.store.importing import export_conversation, prepare_import
from engine.store.message_search import find_text, index_slice, read_progress, search_messages
from engine.store.model_calls import has_called_model, sum_by_purpose
from engine.store.names import number_title
from engine.store.ownership import Instance, OwnedTables
from engine.store.runs import read_runs
from engine.store.slices import Slices, list_expired
from engine.store.tool_calls import list_taken_call_ids
from engine.store.traces import SqliteTraces
from engine.store.turns import read_newest_turn, read_turns
from tools.contract import JsonObject

SEARCH_SECONDS = 0.12
"""Seconds that one answer takes at most; first results are promised in 200 ms."""


class Library(OwnedTables):
    """Forks, purges, searches, exports and imports; shares the connections of its store."""

    def __init__(self, transactions: Transactions, instance: Instance, folder: Path, slices: Slices) -> None:
        super().__init__(transactions, instance)
        self._folder = folder
        self.slices = slices
        self.traces = SqliteTraces(transactions)
        self._version: int | None = None

    async def fork(
        self,
        source_id: str,
        new_id: str,
        at: float,
        up_to_seq: int | None = None,
        beside: Sequence[SideExchange] = (),
        place: ForkPlace | None = None,
    ) -> StoredConversation:
        """Copy a conversation, whole or up to a message, under a new id, owned by this process.

        Questions `beside` it and their answers become its last messages; `place` is another folder for it.
        """

        def last(connection: sqlite3.Connection) -> StoredConversation:
            self._instance.claim(connection, new_id, at)
            number_title(connection, new_id)
            return require_conversation(connection, new_id, self._instance)

        return await self.slices.make(Fork(source_id, new_id, at, up_to_seq, beside, place), at, last)

    async def purge(self, conversation_id: str) -> None:
        """Remove a conversation for good, with its rows and its unshared attachments.

        Raises:
            OwnedElsewhere: a living process has it.
        """
        await self.slices.remove(conversation_id, time.time())

    @reads
    def list_expired(self, connection: sqlite3.Connection, before: float) -> list[str]:
        """Conversations archived or moved to the trash before a time, in an order in which they may be removed."""
        return list_expired(connection, before)

    async def remove_expired(self, conversation_id: str, before: float) -> bool:
        """Remove one of those for good; False where it is open here, or was taken back meanwhile.

        Raises:
            OwnedElsewhere: a living process has it.
        """
        return await self.slices.remove(
            conversation_id, time.time(), lambda connection: conversation_id in list_expired(connection, before)
        )

    async def clear_partial(self) -> None:
        """Remove conversations that a killed process left half copied, half imported or half removed; they are hidden
        before.
        """
        await self.slices.clear()

    async def has_changed_externally(self) -> bool:
        """True when another process has written since the last call; False the first time."""
        before, self._version = self._version, await self.transactions.foreign_version()
        return before not in {None, self._version}

    @writes
    def change_all(
        self, connection: sqlite3.Connection, ids: Sequence[str], changes: ConversationChanges, at: float
    ) -> list[str]:
        """Change many in one transaction; returns those that another living process has, which stay as they are."""
        refused: list[str] = []
        for conversation_id in ids:
            try:
                self._instance.owns(connection, conversation_id)
            except OwnedElsewhere:
                refused.append(conversation_id)
            else:
                change_conversation(connection, conversation_id, changes, at)
        return refused

    @reads_long
    def search(
        self,
        connection: sqlite3.Connection,
        query: SearchQuery,
        *,
        limit: int = 300,
        below: int | None = None,
        seconds: float = SEARCH_SECONDS,
    ) -> SearchAnswer:
        """The newest `limit` matches, the best first; `below` is the `next` of the answer before."""
        return search_messages(connection, query, limit=limit, below=below, seconds=seconds)

    @reads_long
    def find(self, connection: sqlite3.Connection, conversation_id: str, text: str) -> Sequence[FoundText]:
        """Find `text` in one conversation, in its order, ignoring case."""
        return find_text(connection, conversation_id, text)

    async def index_older(self) -> IndexProgress:
        """Index a slice of the messages older than the search index; complete once `done` is `total`."""
        how_far = await self.transactions.look(read_progress)
        if how_far.done >= how_far.total:
            return how_far
        return await self.transactions.write(index_slice)

    @reads
    def turns(self, connection: sqlite3.Connection, conversation_id: str) -> list[TurnSummary]:
        """Every prompt and its effects, oldest first."""
        return read_turns(connection, conversation_id)

    @reads
    def newest_turn(self, connection: sqlite3.Connection, conversation_id: str) -> TurnDigest | None:
        """Digest of the newest turn; None without turns."""
        return read_newest_turn(connection, conversation_id)

    @reads
    def runs(self, connection: sqlite3.Connection, conversation_id: str, limit: int) -> list[RunRecord]:
        """The newest runs, newest first."""
        return read_runs(connection, conversation_id, limit)

    @reads
    def compactions(self, connection: sqlite3.Connection, conversation_id: str) -> list[StoredCompaction]:
        """The newest attempts to make its context shorter, newest first."""
        return list_compactions(connection, conversation_id)

    @reads
    def find_call_ids(self, connection: sqlite3.Connection, conversation_id: str, ids: Sequence[str]) -> frozenset[str]:
        """Ids of stored calls of a conversation that are among these, or one of them with `_dedup_` behind it."""
        return list_taken_call_ids(connection, conversation_id, ids)

    @reads
    def has_called_model(self, connection: sqlite3.Connection, reference: str) -> bool:
        """True when a title of any conversation was asked of this model."""
        return has_called_model(connection, reference)

    @reads
    def calls(self, connection: sqlite3.Connection, conversation_id: str) -> list[CallSum]:
        """Usage and cost of its model calls, by their purpose; without those of its sub-agents."""
        return sum_by_purpose(connection, conversation_id)

    @reads
    def export(self, connection: sqlite3.Connection, conversation_id: str) -> JsonObject:
        """Export a conversation as JSON, lossless."""
        return export_conversation(connection, self._folder, conversation_id)

    async def import_conversation(self, data: JsonObject, at: float, terms: ImportTerms) -> Imported:
        """Read an export, at rest and on the terms of the importing user; a new id where the old is taken.

        Raises:
            ImportRefused: it is no export, or its parts cannot be; nothing of it stays.
        """
        work = await self.transactions.look(
            lambda connection: prepare_import(connection, self._folder, data, terms, at)
        )
        return await self.slices.make(work, at, lambda _: Imported(work.conversation_id, work.left_out))
