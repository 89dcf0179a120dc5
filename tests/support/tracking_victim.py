"""A process that is killed at one boundary of a pass: `python -m tests.support.tracking_victim HOME POINT`.

A boundary is before or after a write of a pass to the store, counted from 0. Without a kill it prints the number of
boundaries it went through.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from engine.engine import Engine
from engine.ports.task_store import AppliedChanges, BoardChange, MessageTracking, TakenMessages
from engine.records.runs import ModelCall
from tests.support.engine import engine_harness
from tests.support.tracking import BY_HAND, FINISH, agent, append, insert, say

REPLIES = (
    [insert(0, "A"), append(1, 1, 2)],
    [insert(1, "B"), append(2, 3)],
    [append(2, 4), FINISH],
)
"""A pass over four messages in three replies."""


class Killed:
    """The store of the task board; the process dies at one boundary of a write."""

    def __init__(self, tasks: Any, point: int) -> None:
        self._tasks = tasks
        self._point = point
        self.passed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tasks, name)

    def _boundary(self) -> None:
        if self.passed == self._point:
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed += 1

    async def take(self, conversation_id: str, limit: int, at: float) -> TakenMessages:
        self._boundary()
        taken: TakenMessages = await self._tasks.take(conversation_id, limit, at)
        self._boundary()
        return taken

    async def apply(
        self,
        conversation_id: str,
        seqs: Sequence[int],
        changes: Sequence[BoardChange],
        calls: Sequence[ModelCall],
        at: float,
        *,
        ends: bool = False,
    ) -> AppliedChanges:
        self._boundary()
        applied: AppliedChanges = await self._tasks.apply(conversation_id, seqs, changes, calls, at, ends=ends)
        self._boundary()
        return applied

    async def settle(
        self,
        conversation_id: str,
        to: MessageTracking,
        at: float,
        calls: Sequence[ModelCall] = (),
        *,
        of: MessageTracking = MessageTracking.RUNNING,
        problem: str | None = None,
    ) -> None:
        self._boundary()
        await self._tasks.settle(conversation_id, to, at, calls, of=of, problem=problem)
        self._boundary()


async def main(home: Path, point: int) -> None:
    """Say two messages, and let the task agent record them."""
    async with engine_harness(home, provider=agent(*REPLIES), settings=BY_HAND) as harness:
        killed = Killed(harness.store.tasks, point)
        engine = Engine(replace(harness.engine.ports, tasks=killed), BY_HAND)
        harness.engine = engine
        conversation = await harness.conversation()
        await say(conversation, "first", "second")
        await engine.tasks.flush(conversation.id)
        await engine.forget(conversation.id)
        sys.stdout.write(f"{killed.passed}\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
