"""What the screens need of a conversation's queue (`engine.executor.message_queue`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.executor.requests import Receipt, RunCaps
from engine.records import QueuedMessage


class QueueSurface(Protocol):
    """Messages that are sent one by one whenever the conversation comes to rest."""

    @property
    def waiting(self) -> tuple[QueuedMessage, ...]:
        """First to be sent first."""
        ...

    @property
    def held(self) -> bool:
        """Whether they wait for the user: a stop, an error or a restart came between."""
        ...

    async def add(
        self, text: str, image_ids: Sequence[str] = (), caps: RunCaps | None = None, *, is_shell: bool = False
    ) -> Receipt:
        """Queue a message, or a line that begins with `!`, behind the others."""
        ...

    async def edit(self, message_id: str, text: str) -> Receipt:
        """Give one another text; without text and images it goes."""
        ...

    async def move(self, message_id: str, place: int) -> Receipt:
        """Put one at this place, counted from 0."""
        ...

    async def remove(self, message_id: str) -> Receipt:
        """Take one out."""
        ...

    async def go_on(self, caps: RunCaps | None = None) -> Receipt:
        """Hold them no longer."""
        ...

    async def send_now(self, message_id: str = "", caps: RunCaps | None = None) -> Receipt:
        """Stop what runs and send this one, or the first."""
        ...
