"""Interface of hooks for the screens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.extensions.hooks.definitions import Hook, HookSet
    from engine.extensions.hooks.history import HookRun
    from engine.ports.hooks import HookReply
    from engine.records import ConversationRecord


class HooksApi(Protocol):
    """Hooks of a folder, and their newest runs."""

    async def look(self, folder: Path) -> HookSet:
        """Hooks of a folder as it is now."""
        ...

    def runs(self) -> Sequence[HookRun]:
        """The last runs in this process, newest first."""
        ...

    async def try_out(self, hook: Hook, record: ConversationRecord) -> HookReply:
        """Run a hook with a sample of its input."""
        ...
