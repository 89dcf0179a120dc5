"""Watchdogs of one Phoenix: a ceiling for its memory, and a thread that ends it if it does not react to a signal.

The process next to it (`tools/process/zygote/deadline.py`) ends it even if no thread can run.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from phoenix_tui.config.settings import AUTO, megabytes
from phoenix_tui.lifecycle.stop_signals import SIGNAL_EXIT
from phoenix_tui.terminal import foreground_programs, state
from phoenix_tui.terminal.state import within
from tools.process.link import ZygoteLink
from tools.process.zygote.wire import BEYOND
from tools.shedding import shedding

if TYPE_CHECKING:
    from phoenix_tui.config.settings import Settings


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
        text = settings.text(KEY)
        if text == AUTO:
            return cls(ceiling(), settings.sources[KEY])
        return cls((megabytes(text) or 0) * MEGABYTE, settings.sources[KEY])

    def refusal(self) -> str:
        """Reason why nothing new begins now, with the fix; empty while there is memory for it."""
        if not self.most or (occupied := resident()) <= self.most * FULL:
            return ""
        return f"Memory is short ({_describe_use(occupied, self.most)}), so nothing new can start; {FIX}."


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
            link.limit_memory(int(limit.most * BEYOND))

    def look(self) -> None:
        """Give memory back above the first mark; end Phoenix above the ceiling."""
        if not self._most:
            return
        occupied = self._resident()
        if occupied > self._most and not self._ending:
            self._ending = True
            used, may = _megabytes(occupied, self._most)
            self.last_words = (
                f"Phoenix stopped: it used {used:,} MB; the limit is {may:,} MB. Raise {KEY} in config.toml."
            )
            log.error("%d MB are above the ceiling of %d MB: Phoenix ends", used, may)
            os.kill(os.getpid(), signal.SIGTERM)
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
            used, full = _describe_use(left, self._most), _megabytes(int(self._most * FULL))[0]
            self._on_loop(
                lambda: self.tell(f"Memory is short: {used}. Above {full:,} MB nothing new can start; {FIX}.")
            )

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


def _describe_use(occupied: int, most: int) -> str:
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


log = logging.getLogger(__name__)

LOOK_EVERY: Final = 2.0
"""Seconds between two looks at the loop; each wakes it once (60 us, 0.003 % of a core)."""
STANDS_AFTER: Final = 6.0
"""Seconds without an answer of the loop after which its stack goes to the log, once for each block."""
PATIENCE: Final = 1.6
"""Seconds after a signal until the loop must have taken it; shorter than the zygote's, which can only kill."""
FINISHING: Final = 8.0
"""Seconds for a proper end; shorter than the zygote's."""
LEAVING: Final = 15.0
"""Seconds for the end after a key, which no signal and no zygote bounds: hooks and servers may say goodbye."""
SOON: Final = 0.05
HURRYING: Final = frozenset({signal.SIGTERM, signal.SIGINT})
"""Signals that end Phoenix at once when they come again; a window that is closed sends several SIGHUP."""
AGAIN_AFTER: Final = 0.5
"""Seconds after which a signal has come again, and is not the same one sent to several."""
AFTERWARDS: Final = 0.4
"""Seconds for each last act of a forced end: a terminal that accepts nothing, a lock that another thread holds."""
DEEPEST: Final = 30
"""Frames of a stack that are logged."""


class LoopWatch:
    """Watches one loop from a thread; made and started in the loop it watches."""

    def __init__(self, link: ZygoteLink, limit: MemoryLimit, tell: Callable[[str], None]) -> None:
        self._link = link
        self._memory = MemoryWatch(link, limit, self._on_loop)
        self._memory.tell = tell
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._begun = threading.Event()
        self._over = threading.Event()
        self._answered = self._looked = time.monotonic()
        self._reported = False
        self._leaving_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="phoenix-watch", daemon=True)
        self._thread.start()

    def end_begins(self) -> None:
        """Note that the loop has taken the key or signal that ends Phoenix and does its last work."""
        if self._leaving_since is None:
            self._leaving_since = time.monotonic()
        self._begun.set()
        self._link.report_end_begun()

    def stop(self) -> None:
        self._over.set()

    @property
    def last_words(self) -> str:
        """Reason of an end for lack of memory: one sentence to print; else empty."""
        return self._memory.last_words

    def _on_loop(self, work: Callable[[], None]) -> bool:
        """Have the loop do something; False where it does not come to it."""
        done = threading.Event()

        def do() -> None:
            try:
                work()
            finally:
                done.set()

        try:
            self._loop.call_soon_threadsafe(do)
        except RuntimeError:  # the loop is closed
            return False
        return done.wait(SHEDDING)

    def _run(self) -> None:
        while not self._over.is_set():
            if number := self._link.wait_for_signal(LOOK_EVERY):
                # Wait until the loop has ended; the rest belongs to atexit, and the zygote waits for that.
                came = time.monotonic()
                while not self._over.is_set():
                    after = time.monotonic() - came
                    again = self._link.wait_for_signal(SOON) in HURRYING and after > AGAIN_AFTER
                    if again or after > (FINISHING if self._begun.is_set() else PATIENCE):
                        self._force(number)
                return
            if self._leaving_since is not None and time.monotonic() - self._leaving_since > LEAVING:
                self._force(0)
            now = time.monotonic()
            if now - self._looked > 2 * LOOK_EVERY:
                self._answered = now  # the process itself was stopped, or the machine slept
            self._looked = now
            stood = now - self._answered
            if stood > STANDS_AFTER and not self._reported and logging.getLogger().handlers:
                self._reported = True
                log.error("the event loop is blocked for %.0f s at: %s", stood, stack_of(self._loop_thread))
            try:
                self._loop.call_soon_threadsafe(self._answer)
            except RuntimeError:  # the loop is closed
                self._over.set()
            self._memory.look()

    def _answer(self) -> None:
        now = time.monotonic()
        if self._reported:
            self._reported = False
            log.error("the event loop continues after %.0f s", now - self._answered)
        self._answered = now

    def _force(self, number: int) -> None:
        """End at once; committed data is in the database, and the zygote ends every program. 0: a key, no signal."""
        self._link.report_end_begun()  # it waits for these acts, which take 1.2 s when the terminal accepts nothing
        stack = stack_of(self._loop_thread)
        why = f"Did not react to signal {number}" if number else f"Did not end within {LEAVING:.0f} s"
        words = f"phoenix: {why} and was killed; the log says where it was.\n"
        words = f"{words}phoenix: {self.last_words}\n" if self.last_words else words
        within(AFTERWARDS, lambda: log.error("killed by signal %d while blocked at: %s", number, stack))
        foreground_programs.hang_up()
        within(AFTERWARDS, state.restore)
        within(AFTERWARDS, lambda: os.write(2, words.encode()))
        os._exit(SIGNAL_EXIT + number if number else 1)


def stack_of(thread: int) -> str:
    """Stack of a thread, in one line: the innermost call last."""
    # The only way to another thread's stack; the documentation names it.
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - as said
    calls = traceback.extract_stack(frame)[-DEEPEST:] if frame is not None else ()
    return " > ".join(f"{Path(call.filename).name}:{call.lineno} {call.name}" for call in calls) or "no frame"
