"""The ceiling for the memory of one Phoenix: it gives back what it can, then ends, before the machine suffers."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

from tools.process.link import ZygoteLink

log = logging.getLogger(__name__)

MEGABYTE: Final = 1 << 20
LEAST: Final = 768 * MEGABYTE
MOST: Final = 4096 * MEGABYTE
SHARE: Final = 0.25
"""Of what the machine, or the control group, has; within `LEAST` and `MOST`. 60 MB are usual."""
SOFT: Final = 0.6
"""Of the ceiling: from here on memory is given back."""
AGAIN: Final = 60.0
"""Seconds until that is tried again; a collection of 500 MB takes one."""
KILL: Final = 1.25
"""Times the ceiling at which the zygote ends a Phoenix that could not end itself."""
LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
PAGE: Final = os.sysconf("SC_PAGESIZE")


def ceiling() -> int:
    """Bytes that Phoenix may occupy, without the commands it runs."""
    machine = os.sysconf("SC_PHYS_PAGES") * PAGE
    group = min((limit for path in LIMITS if (limit := _limit(path))), default=machine)
    return int(min(max(min(machine, group) * SHARE, LEAST), MOST))


class MemoryWatch:
    """Looks at the memory of this process, on the thread that watches the loop."""

    def __init__(self, link: ZygoteLink, most: int) -> None:
        self._most = most
        self._tried = float("-inf")
        self._ending = False
        link.bound(int(most * KILL))

    def look(self) -> None:
        """Give memory back above the soft mark; end Phoenix above the ceiling."""
        occupied = resident()
        if occupied > self._most and not self._ending:
            self._ending = True
            log.error("%d MB are above the ceiling of %d MB: Phoenix ends", *_megabytes(occupied, self._most))
            os.kill(os.getpid(), signal.SIGTERM)
        elif occupied > self._most * SOFT and time.monotonic() - self._tried > AGAIN:
            give_back()
            self._tried = time.monotonic()
            if logging.getLogger().handlers:
                log.warning("%d MB of memory became %d", *_megabytes(occupied, resident()))


def give_back() -> None:
    """Collect what nobody uses and hand free pages to the system."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's own
        if trim is not None:
            trim(0)


def resident() -> int:
    """Bytes that this process occupies; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _megabytes(*numbers: int) -> tuple[int, ...]:
    return tuple(number // MEGABYTE for number in numbers)


def _limit(path: str) -> int:
    try:
        return int(Path(path).read_text("ascii"))
    except (OSError, ValueError):  # "max", or another kind of system
        return 0
