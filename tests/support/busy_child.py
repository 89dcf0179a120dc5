"""The real program in which SIGUSR1 keeps threads busy for a minute: `python -m tests.support.busy_child ...`.

One thread of `asyncio.to_thread`, and, where `BUSY` is `database`, the connection for long reads.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

from phoenix_tui.__main__ import main

BUSY: Final = "BUSY"
SECONDS: Final = 60.0
HELD: Final = "held"
"""File in the home folder that shows that the threads are busy."""
_tasks: Final[list[asyncio.Future[Any]]] = []


def hold(*_: object) -> None:
    """Work that nothing interrupts."""
    (Path(os.environ["HOME"]) / HELD).touch()
    threading.Event().wait(SECONDS)


def begin(_number: int, _frame: object) -> None:
    """Begin it in the loop that runs."""
    loop = asyncio.get_running_loop()
    loop.call_soon_threadsafe(lambda: _tasks.append(asyncio.ensure_future(_busy())))


async def _busy() -> None:
    if os.environ[BUSY] != "database":
        await asyncio.to_thread(hold)
        return
    from engine.store.connection import Transactions  # noqa: PLC0415 - loaded by then

    store = next(one for one in gc.get_objects() if isinstance(one, Transactions))
    await store.look(hold)


def run() -> int:
    """Phoenix with that signal."""
    signal.signal(signal.SIGUSR1, begin)
    return main()


if __name__ == "__main__":
    sys.exit(run())
