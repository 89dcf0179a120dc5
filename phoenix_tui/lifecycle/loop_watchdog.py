"""A thread beside the event loop: ends a Phoenix that received a signal and does not end, and reports a blocked loop.

The process behind it (`tools/process/zygote/deadline.py`) does the same where not even a thread can run.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from phoenix_tui.lifecycle.memory_limit import SHEDDING, MemoryLimit, MemoryWatch
from phoenix_tui.lifecycle.stop_signals import SIGNAL_EXIT
from phoenix_tui.terminal import foreground_programs, state
from phoenix_tui.terminal.state import within
from tools.process.link import ZygoteLink

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
        self._link.begun()

    def stop(self) -> None:
        """The loop ends; a forced end comes no more."""
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
            if number := self._link.heard(LOOK_EVERY):
                self._see_to_the_end(number)
                return
            if self._leaving_since is not None and time.monotonic() - self._leaving_since > LEAVING:
                self._force(0)
            self._look()
            self._memory.look()

    def _see_to_the_end(self, number: int) -> None:
        """Wait until the loop has ended; the rest belongs to atexit, and the zygote waits for that."""
        came = time.monotonic()
        while not self._over.is_set():
            after = time.monotonic() - came
            again = self._link.heard(SOON) in HURRYING and after > AGAIN_AFTER
            if again or after > (FINISHING if self._begun.is_set() else PATIENCE):
                self._force(number)

    def _look(self) -> None:
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

    def _answer(self) -> None:
        now = time.monotonic()
        if self._reported:
            self._reported = False
            log.error("the event loop continues after %.0f s", now - self._answered)
        self._answered = now

    def _force(self, number: int) -> None:
        """End at once; committed data is in the database, and the zygote ends every program. 0: a key, no signal."""
        self._link.begun()  # it waits for these last acts, which take 1.2 s when the terminal accepts nothing
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
    frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage] - as said
    calls = traceback.extract_stack(frame)[-DEEPEST:] if frame is not None else ()
    return " > ".join(f"{Path(call.filename).name}:{call.lineno} {call.name}" for call in calls) or "no frame"
