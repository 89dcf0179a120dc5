"""A turn leaves nothing behind but what it said, and asks for nothing of the turns before it, however many."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any, cast

from engine.store.turns import TurnLog
from tests.support.rewinding import scene
from tests.support.waiting import poll

TURNS = 50
WARM_UP = 3


async def test_fifty_turns_leave_no_task_thread_or_descriptor(tmp_path: Path) -> None:
    async with scene(tmp_path, *[1] * (WARM_UP + TURNS)) as it:
        conversation = await it.conversation()
        for number in range(WARM_UP):
            await it.turn(conversation, f"warm {number}", partial(write, number))
        before = counts()
        for number in range(TURNS):
            await it.turn(conversation, f"turn {number}", partial(write, number))
        assert await poll(lambda: all(now <= then + 1 for now, then in zip(counts(), before, strict=True)), 5), (
            f"tasks, threads and descriptors: {before} became {counts()}: {asyncio.all_tasks()}"
        )


async def test_a_turn_reads_no_step_of_the_turns_before_it(tmp_path: Path) -> None:
    async with scene(tmp_path, *[1] * 20) as it:
        conversation = await it.conversation()
        log = CountingLog(it.store.turn_log)
        it.rewinding.recorder.log = cast("TurnLog", log)
        for number in range(20):
            await it.turn(conversation, f"turn {number}", partial(write, number))
        assert len(await it.store.turn_log.steps(conversation.id)) == 20
        assert log.given <= 20, "more than the step of each turn itself was read"


class CountingLog:
    """A log that counts the steps it gives."""

    def __init__(self, log: TurnLog) -> None:
        self._log = log
        self.given = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._log, name)

        async def counted(*arguments: Any) -> Any:
            found = await method(*arguments)
            self.given += len(found) if isinstance(found, list) else 0
            return found

        return counted if callable(method) else method


def write(number: int, folder: Path) -> None:
    """Change of a turn."""
    (folder / "file").write_text(f"{number}", "utf-8")


def counts() -> tuple[int, int, int]:
    """Tasks of this loop, threads and descriptors of this process."""
    return len(asyncio.all_tasks()), threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
