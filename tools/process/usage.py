"""CPU time and memory of a process and of all that it started, as the system counts them."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import Struct


class ProcessUsage(Struct, frozen=True):
    """Figures of one process."""

    pid: int
    name: str
    """Name that the process gave itself; not cleaned."""
    cpu: float
    """Seconds of CPU time since its start."""
    memory: int
    """Resident bytes; shared ones are counted in each process."""
    age: float
    """Seconds since its start."""


def measure_tree(pid: int) -> tuple[ProcessUsage, ...]:
    """The process and its descendants, itself first and then the largest; empty where the system does not tell."""
    import psutil  # noqa: PLC0415 - 20 ms, seldom asked for

    def measure(process: psutil.Process) -> Iterator[ProcessUsage]:
        try:
            with process.oneshot():
                times, memory = process.cpu_times(), process.memory_info().rss
                age = max(time.time() - process.create_time(), 0.0)
                yield ProcessUsage(process.pid, process.name(), times.user + times.system, memory, age)
        except (psutil.Error, OSError):  # it has ended, or is another user's
            return

    try:
        own = psutil.Process(pid)
        below = own.children(recursive=True)
    except (psutil.Error, OSError):
        return ()
    rest = sorted((one for each in below for one in measure(each)), key=lambda one: -one.memory)
    return (*measure(own), *rest)
