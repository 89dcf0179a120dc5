"""Closing of finished sub-agents without viewers: ten of them hold ten transcripts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Final

from engine.conversation import Conversation

PATIENCE: Final = 5.0
"""Seconds that one stays open after its end or its last viewer: opened in this time it is still live."""


class AgentCloser:
    """Looks a while after an end whether a conversation is still wanted."""

    def __init__(
        self,
        opened: Mapping[str, Conversation],
        works: Callable[[str], bool],
        forget: Callable[[str], Coroutine[None, None, None]],
        background: Callable[[Coroutine[None, None, None]], None],
    ) -> None:
        self._opened = opened
        self._works = works
        self._forget = forget
        self._background = background
        self.patience = PATIENCE

    def soon(self, conversation: Conversation) -> None:
        """Close it after a while, if it has no viewer then and does not work again."""
        asyncio.get_running_loop().call_later(self.patience, self._look, conversation)

    def _look(self, conversation: Conversation) -> None:
        wanted = conversation.agents.watched or self._works(conversation.id)
        if self._opened.get(conversation.id) is conversation and not wanted:
            self._background(self._forget(conversation.id))
