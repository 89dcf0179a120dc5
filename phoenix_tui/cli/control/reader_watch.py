"""Notices that the reader of stdout is gone while nothing is being written, as in a long command."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import stat
from collections.abc import Callable, Generator


@contextlib.contextmanager
def reader_watched(gone: Callable[[], object], descriptor: int = 1) -> Generator[None]:
    """Call `gone` in the loop once the other end of a pipe or socket is closed; other outputs are not watched."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        loop.remove_reader(descriptor)  # also for bytes that a host writes into its own end
        if _has_hung_up(descriptor):
            gone()

    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        loop.add_reader(descriptor, look)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)


def _has_hung_up(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(found & (select.POLLERR | select.POLLHUP) for _, found in poll.poll(0))
