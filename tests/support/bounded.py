"""A watcher for programs that may run away: it ends them before the machine suffers."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 1 << 20
LOOK = 0.02
PAGE = os.sysconf("SC_PAGESIZE")


@dataclass(slots=True)
class Bounded:
    """Observations of the watcher."""

    peak: float = 0.0
    """Megabytes of resident memory."""
    ended_for: str = ""
    """Reason why the program was killed; empty while it kept its bounds."""


@contextlib.contextmanager
def bounded(pid: int, megabytes: float = 500, seconds: float = 60) -> Generator[Bounded]:
    """Kill a process above this much memory or time, and report it."""
    seen, over, began = Bounded(), threading.Event(), time.monotonic()

    def watch() -> None:
        while not over.wait(LOOK):
            seen.peak = max(seen.peak, resident(pid))
            late = time.monotonic() - began > seconds
            if late or seen.peak > megabytes:
                seen.ended_for = "time" if late else "memory"
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
    assert not seen.ended_for, f"the program ran out of its bound of {seen.ended_for} ({seen.peak:.0f} MB)"


def resident(pid: int) -> float:
    """Megabytes that a process occupies; 0 once it is gone."""
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / MEGABYTE
    return 0.0


def within(seconds: float, work: Callable[[], object]) -> None:
    """Do `work`; fails where it is not over by then, whatever it waits for. What it raises is raised here."""
    raised: list[BaseException] = []

    def done() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    thread = threading.Thread(target=done, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it still waits for something"
    if raised:
        raise raised[0]
