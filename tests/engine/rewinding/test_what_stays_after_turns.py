"""A turn leaves nothing behind but what it said: no task, no thread, no descriptor, however many there were."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path

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


def write(number: int, folder: Path) -> None:
    """What a turn changes."""
    (folder / "file").write_text(f"{number}", "utf-8")


def counts() -> tuple[int, int, int]:
    """Tasks of this loop, threads and descriptors of this process."""
    return len(asyncio.all_tasks()), threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
