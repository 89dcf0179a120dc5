"""Operations on conversations without opening them: many at once, their newest messages, the trash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from engine.conversation import Conversation
from engine.executor.session import Ports
from engine.ports import ConversationChanges, OwnedElsewhere
from engine.ports.files import FilesError
from engine.records import StoredMessage


class ConversationBulk:
    """Every stored conversation; those in `opened` are changed through themselves, so that their screens know."""

    def __init__(self, ports: Ports, opened: Mapping[str, Conversation]) -> None:
        self._ports = ports
        self._opened = opened

    async def change(self, ids: Iterable[str], changes: ConversationChanges) -> Sequence[str]:
        """Change many, those that are not open in one transaction; returns those that another process has.

        Raises:
            StorageError: it cannot be stored; of the closed ones none has changed.
        """
        closed: list[str] = []
        refused: list[str] = []
        for conversation_id in ids:
            conversation = self._opened.get(conversation_id)
            if conversation is None:
                closed.append(conversation_id)
            elif conversation.read_only:
                refused.append(conversation_id)
            else:
                await conversation.change(changes)
        if closed:
            refused += await self._ports.library.change_all(closed, changes, self._ports.clock.now())
        return refused

    async def newest(self, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        """Read the newest messages, ascending, without becoming the owner."""
        return await self._ports.store.messages(conversation_id, limit=limit)

    async def purge(self, ids: Iterable[str]) -> Sequence[str]:
        """Remove for good all that are not open here; returns those that another process has."""
        refused: list[str] = []
        for conversation_id in ids:
            try:
                await self._ports.library.purge(conversation_id)
            except OwnedElsewhere:
                refused.append(conversation_id)
        if self._ports.rewinding is not None:
            with suppress(FilesError):  # the next collection drops the rest
                await self._ports.rewinding.collect()
        return refused
