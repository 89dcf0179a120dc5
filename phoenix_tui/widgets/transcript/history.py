"""Loads messages that come into view and are not in memory, one window at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

from engine.records import StoredMessage, ToolCallRecord

History: TypeAlias = tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]]
Loader: TypeAlias = Callable[[int, int], Awaitable[History | None]]
"""`Conversation.history`: before_seq and limit -> messages and their calls; None where they cannot be read now."""
WINDOW: Final = 64
"""Messages loaded at once."""


def window_for(missing: Iterable[int], count: int) -> tuple[int, int] | None:
    """The `before_seq` and `limit` of one query around the newest missing slots; None when nothing is missing."""
    slots = [slot for slot in missing if slot < count]
    if not slots:
        return None
    newest = max(slots)
    oldest = max(min(slots), newest - WINDOW // 2)
    return newest + 2, min(max(newest - oldest + 1 + WINDOW // 2, WINDOW // 2), newest + 1)
