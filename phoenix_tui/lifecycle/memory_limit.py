"""The ceiling for the memory of one Phoenix: it frees caches, begins nothing new, then ends."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from phoenix_tui.config.sizes import AUTO, megabytes
from tools.process.link import ZygoteLink
from tools.process.zygote.wire import BEYOND
from tools.shedding import shedding

if TYPE_CHECKING:
    from phoenix_tui.config.settings import Settings

log = logging.getLogger(__name__)

MEGABYTE: Final = 1 << 20
LEAST: Final = 768 * MEGABYTE
MOST: Final = 4096 * MEGABYTE
SHARE: Final = 0.25
"""Share of the memory of the machine, or the control group; within `LEAST` and `MOST`. 60 MB are usual."""
AT_ALL: Final = 0.8
"""Share of all memory that bounds `LEAST` on a small machine."""
SHORT: Final = 0.6
"""Share of the ceiling from which caches are dropped."""
FULL: Final = 0.8
"""Share of the ceiling from which nothing new begins. A turn takes 10 to 50 MB while it runs."""
OVER_AT: Final = 0.9
"""Share of the threshold below which memory is no longer short, and the next shortage is reported again."""
AGAIN: Final = 60.0
"""Seconds until it is tried again to give memory back; a collection of 500 MB takes one."""
SHEDDING: Final = 1.0
"""Seconds for the loop to drop caches before free memory is returned to the system."""
LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
PAGE: Final = os.sysconf("SC_PAGESIZE")
KEY: Final = "memory_limit"
FIX: Final = f"stop what runs, restart Phoenix, or raise {KEY} in config.toml"


def ceiling() -> int:
    """Bytes that Phoenix may occupy where no setting says otherwise, without the commands it runs."""
    machine = os.sysconf("SC_PHYS_PAGES") * PAGE
    there = min(machine, min((limit for path in LIMITS if (limit := _limit(path))), default=machine))
    return int(min(max(there * SHARE, LEAST), MOST, there * AT_ALL))


class MemoryLimit(Struct, frozen=True):
    """Bytes that Phoenix may occupy, and the source of the limit."""

    most: int
    """0: no limit."""
    source: str = "default"

    @classmethod
    def of(cls, settings: Settings) -> MemoryLimit:
        """The limit of these settings."""
        text = settings.text(KEY)
        if text == AUTO:
            return cls(ceiling(), settings.sources[KEY])
        return cls((megabytes(text) or 0) * MEGABYTE, settings.sources[KEY])

    def refusal(self) -> str:
        """Reason why nothing new begins now, with the fix; empty while there is memory for it."""
        if not self.most or (occupied := resident()) <= self.most * FULL:
            return ""
        return f"Memory is short ({_used(occupied, self.most)}), so nothing new can start; {FIX}."


NO_LIMIT: Final = MemoryLimit(0)


class MemoryWatch:
    """Looks at the memory of this process, on the thread that watches the loop."""

    def __init__(self, link: ZygoteLink, limit: MemoryLimit, on_loop: Callable[[Callable[[], None]], bool]) -> None:
        self._most = limit.most
        self._on_loop = on_loop
        """Runs a function in the event loop and waits for it; returns False when the loop is blocked."""
        self._tried = float("-inf")
        self._ending = self._is_short = self._said = False
        self.tell: Callable[[str], None] = no_one
        """Says a sentence to the user; called by the loop."""
        self.last_words = ""
        """Reason of the end, once Phoenix ends for lack of memory."""
        self._statm = _open_statm()
        if limit.most:
            link.bound(int(limit.most * BEYOND))

    def look(self) -> None:
        """Give memory back above the first mark; end Phoenix above the ceiling."""
        if not self._most:
            return
        occupied = self._resident()
        if occupied > self._most and not self._ending:
            self._end(occupied)
        elif occupied > self._most * SHORT and time.monotonic() - self._tried > AGAIN:
            self._give_back(occupied)
        elif self._is_short and occupied < self._most * SHORT * OVER_AT:
            self._is_short = self._said = False
            self._tried = float("-inf")

    def _give_back(self, occupied: int) -> None:
        self._is_short = True
        gone: list[str] = []
        self._on_loop(lambda: gone.append(shedding.shed()))
        give_back()
        self._tried, left = time.monotonic(), self._resident()
        if logging.getLogger().handlers:
            log.warning("memory is short: %d MB became %d; dropped: %s", *_megabytes(occupied, left), *gone or ["-"])
        if left > self._most * SHORT and not self._said:
            self._said = True
            used, full = _used(left, self._most), _megabytes(int(self._most * FULL))[0]
            self._on_loop(
                lambda: self.tell(f"Memory is short: {used}. Above {full:,} MB nothing new can start; {FIX}.")
            )

    def _end(self, occupied: int) -> None:
        self._ending = True
        used, may = _megabytes(occupied, self._most)
        self.last_words = f"Phoenix stopped: it used {used:,} MB; the limit is {may:,} MB. Raise {KEY} in config.toml."
        log.error("%d MB are above the ceiling of %d MB: Phoenix ends", *_megabytes(occupied, self._most))
        os.kill(os.getpid(), signal.SIGTERM)

    def _resident(self) -> int:
        """Read resident memory without opening the file each time: 4 us instead of 30."""
        try:
            return int(os.pread(self._statm, 100, 0).split()[1]) * PAGE
        except (OSError, ValueError, IndexError):
            return 0


def in_words(limit: MemoryLimit) -> str:
    """The limit and its source, for the doctor."""
    if not limit.most:
        return f"no limit ({KEY}, {limit.source}), {_megabytes(resident())[0]} MB in use"
    where = f"{KEY}, {limit.source}" if limit.source != "default" else f"by this machine; {KEY} changes it"
    short, full = _megabytes(int(limit.most * SHORT), int(limit.most * FULL))
    most = _megabytes(limit.most)[0]
    return f"at most {most:,} MB ({where}); from {short:,} caches are cleared, from {full:,} nothing new can start"


def give_back() -> None:
    """Collect unused objects and return free pages to the system."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's own
        if trim is not None:
            trim(0)


def resident() -> int:
    """Bytes that this process occupies; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _open_statm() -> int:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _used(occupied: int, most: int) -> str:
    used, may = _megabytes(occupied, most)
    return f"{used:,} of the {may:,} MB limit"


def _megabytes(*numbers: int) -> tuple[int, ...]:
    return tuple(number // MEGABYTE for number in numbers)


def _limit(path: str) -> int:
    try:
        return int(Path(path).read_text("utf-8"))
    except (OSError, ValueError):  # "max", or another kind of system
        return 0


def no_one(_sentence: str) -> None:
    """Ignore a message: there is no listener."""
