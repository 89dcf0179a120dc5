"""A lock that the task which holds it may take again."""

from __future__ import annotations

import asyncio
from types import TracebackType


class OneAtATime:
    """`async with`: the next task waits; a call within a call of the same task does not."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._owner: asyncio.Task[object] | None = None
        self._depth = 0

    @property
    def is_taken(self) -> bool:
        """True while a task is inside."""
        return self._owner is not None

    @property
    def is_mine(self) -> bool:
        """True within it."""
        return self._owner is not None and self._owner is asyncio.current_task()

    async def __aenter__(self) -> None:
        """Wait until no other task is inside."""
        if not self.is_mine:
            await self._lock.acquire()
            self._owner = asyncio.current_task()
        self._depth += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the next one in once the outermost call is over."""
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()
