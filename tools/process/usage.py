"""CPU time and memory of a process and of all that it started, as the system counts them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from tools.wording import byte_size


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


PERCENT: Final = 100


class CommandUsage(Struct, frozen=True):
    """Figures of a running command at one time."""

    memory: int
    """Resident bytes of all its processes."""
    cpu: int | None = None
    """Per cent of one processor since the look before; None at the first look."""

    @property
    def words(self) -> str:
        """`83% cpu · 412.0 MB`."""
        memory = byte_size(self.memory)
        return memory if self.cpu is None else f"{self.cpu}% cpu · {memory}"


class UsageReader:
    """Figures of commands, each by the pid of its first process, from one look to the next."""

    def __init__(self) -> None:
        self._looks: dict[int, tuple[float, dict[int, float]]] = {}
        """Time of the last look, and seconds of CPU time by process."""

    def read(self, pid: int) -> CommandUsage | None:
        """Add up the whole tree; None where it is gone. Blocks."""
        now, tree = time.monotonic(), measure_tree(pid)
        before = self._looks.pop(pid, None)
        if not tree:
            return None
        seconds = {one.pid: one.cpu for one in tree}
        self._looks[pid] = now, seconds
        memory = sum(one.memory for one in tree)
        if before is None:
            return CommandUsage(memory)
        passed, known = now - before[0], before[1]
        used = sum(max(spent - known.get(one, 0.0), 0.0) for one, spent in seconds.items())
        return CommandUsage(memory, round(PERCENT * used / passed) if passed > 0 else 0)

    def keep(self, pids: set[int]) -> None:
        """Forget commands other than these."""
        self._looks = {pid: look for pid, look in self._looks.items() if pid in pids}
