"""Closing of idle conversations of the user without viewers; the store has all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Final

from engine.conversation import Conversation

PATIENCE: Final = 60.0
"""Seconds after the last look: going back and forth between two conversations reads neither again."""


class Resting:
    """Closes an idle conversation some time after its last viewer left."""

    def __init__(
        self,
        opened: Mapping[str, Conversation],
        needed: Callable[[Conversation], bool],
        close: Callable[[str], Coroutine[None, None, None]],
    ) -> None:
        self._opened = opened
        self._needed = needed
        self._close = close
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.patience = PATIENCE

    def __len__(self) -> int:
        """Number of conversations due to be closed."""
        return len(self._due)

    def soon(self, conversation: Conversation) -> None:
        """Close it after a while if it has no viewer then; look again later while it is busy."""
        self.stop(conversation.id)
        loop = asyncio.get_running_loop()
        self._due[conversation.id] = loop.call_later(self.patience, self._look, conversation)

    def now(self) -> None:
        """Close at once all due conversations that are not needed: memory is short."""
        for conversation_id in tuple(self._due):
            if (conversation := self._opened.get(conversation_id)) is not None:
                self._look(conversation)

    def stop(self, conversation_id: str) -> None:
        """Look at this one no more."""
        if (due := self._due.pop(conversation_id, None)) is not None:
            due.cancel()

    async def close(self) -> None:
        """Look no more, and wait for those that are being closed."""
        for conversation_id in tuple(self._due):
            self.stop(conversation_id)
        await asyncio.gather(*self._closing)

    def _look(self, conversation: Conversation) -> None:
        self.stop(conversation.id)
        if self._opened.get(conversation.id) is not conversation or conversation.agents.watched:
            return
        if self._needed(conversation):
            self.soon(conversation)
            return
        task = asyncio.get_running_loop().create_task(self._close(conversation.id))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
