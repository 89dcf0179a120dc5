"""`engine.ports.Library` on SQLite: what is done to whole conversations."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from engine.ports import ConversationChanges, OwnedElsewhere
from engine.records import ConversationRecord, SearchHit
from engine.store import attachments, conversations, forking, messages, transfer
from engine.store.connection import Transactions
from engine.store.ownership import Instance
from tools.contract import JsonObject


class SqliteLibrary:
    """Forks, purges, searches, exports and imports; shares the connections of its store."""

    def __init__(self, transactions: Transactions, instance: Instance, folder: Path) -> None:
        self._transactions = transactions
        self._instance = instance
        self._folder = folder

    async def fork(self, source_id: str, new_id: str, at: float, up_to_seq: int | None = None) -> ConversationRecord:
        """Copy a conversation, whole or up to a message, under a new id, owned by this process."""

        def job(connection: sqlite3.Connection) -> ConversationRecord:
            forking.fork(connection, source_id, new_id, at, up_to_seq)
            self._instance.claim(connection, new_id, at)
            return conversations.record(connection, new_id, self._instance)

        return await self._transactions.write(job)

    async def purge(self, conversation_id: str) -> None:
        """Remove a conversation for good, with its rows and its unshared attachments.

        Raises:
            OwnedElsewhere: a living process has it.
        """

        def remove_rows(connection: sqlite3.Connection) -> list[str]:
            self._instance.owns(connection, conversation_id)  # raises where another does
            names = attachments.files_of(connection, conversation_id)
            connection.execute("DELETE FROM events WHERE conversation_id = ?", (conversation_id,))
            connection.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))
            return names

        names = await self._transactions.write(remove_rows)
        if names:
            await self._transactions.write(
                lambda connection: attachments.remove_unshared(connection, self._folder, names)
            )

    async def change_all(self, ids: Sequence[str], changes: ConversationChanges, at: float) -> list[str]:
        """Change many in one transaction; gives those that another living process has, which stay as they are."""

        def job(connection: sqlite3.Connection) -> list[str]:
            refused: list[str] = []
            for conversation_id in ids:
                try:
                    self._instance.owns(connection, conversation_id)
                except OwnedElsewhere:
                    refused.append(conversation_id)
                else:
                    conversations.change(connection, conversation_id, changes, at)
            return refused

        return await self._transactions.write(job)

    async def search(self, text: str, *, limit: int = 50) -> list[SearchHit]:
        """Messages that contain `text`, newest first."""
        return await self._transactions.read(lambda connection: messages.search(connection, text, limit))

    async def export(self, conversation_id: str) -> JsonObject:
        """Everything of a conversation as JSON, lossless."""
        return await self._transactions.read(
            lambda connection: transfer.export(connection, self._folder, conversation_id)
        )

    async def import_conversation(self, data: JsonObject, at: float) -> str:
        """Read what `export` wrote; gives the id, a new one where the old is taken. Its times stay its own."""
        return await self._transactions.write(
            lambda connection: transfer.import_document(connection, self._folder, data)
        )
