"""Cost of a process tree: CPU time to the nanosecond, memory, and survivors."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

TAG: Final = "PHOENIX_BENCHMARK"
"""The environment variable that marks everything a benchmark started."""
TICK: Final = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes of a tree; PSS counts shared pages by share."""

    rss: float
    pss: float


def cpu_of(pid: int) -> float:
    """CPU seconds of one process with all its threads, ended ones included; 0 once it is gone."""
    with contextlib.suppress(OSError):
        return time.clock_gettime(~pid << 3 | 2)  # Linux: the id of another process's CPU clock
    return 0.0


def tree(root: int) -> list[psutil.Process]:
    """A process and its descendants."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(root)
        return [process, *process.children(recursive=True)]
    return []


def cpu(root: int) -> float:
    """CPU seconds of the tree, reaped children included (those to 10 ms)."""
    return sum(cpu_of(process.pid) + _reaped(process.pid) for process in tree(root))


def memory(root: int) -> Memory:
    """Memory of the tree."""
    pids = [process.pid for process in tree(root)]
    return Memory(
        sum(_kilobytes(pid, "Rss:") for pid in pids) / 1024, sum(_kilobytes(pid, "Pss:") for pid in pids) / 1024
    )


def resident(pid: int) -> float:
    """Megabytes that one process occupies."""
    return _kilobytes(pid, "Rss:") / 1024


def tagged(tag: str) -> list[int]:
    """Pids whose environment carries this mark."""
    wanted, found = f"{TAG}={tag}".encode(), list[int]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found


def kill_all(pids: set[int]) -> None:
    """SIGKILL to each of these processes."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _reaped(pid: int) -> float:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[13]) + int(fields[14])) * TICK
    return 0.0


def _kilobytes(pid: int, name: str) -> int:
    with contextlib.suppress(OSError):
        for row in Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines():
            if row.startswith(name):
                return int(row.split()[1])
    return 0
