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

    async def __aenter__(self) -> None:
        """Wait until no other task is inside."""
        task = asyncio.current_task()
        if self._owner is None or self._owner is not task:
            await self._lock.acquire()
            self._owner = task
        self._depth += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the next one in once the outermost call is over."""
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()
