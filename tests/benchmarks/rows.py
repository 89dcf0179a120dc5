"""Rows of the table, the folder of a family, and what processes cost."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, TextIO, TypeAlias

import psutil


@dataclass(frozen=True, slots=True)
class Row:
    """A measured figure; a figure above `limit`, which is in the same unit, is over budget."""

    name: str
    figure: float
    unit: str
    note: str = ""
    """Number of samples, their range, and further notes for a reader."""
    other: float | None = None
    """A floor or a peer in the same unit."""
    other_name: str = ""
    limit: float | None = None
    budget: str = ""
    """The budget in words."""

    def beside(self, name: str, other: float) -> Row:
        """The row with a floor or a peer."""
        return replace(self, other=other, other_name=name)

    def at_most(self, limit: float, budget: str = "") -> Row:
        """The row with a budget."""
        return replace(self, limit=limit, budget=budget or f"<= {limit:.4g}")

    def at_most_times(self, factor: float) -> Row:
        """The row with a budget that is a multiple of its comparison."""
        other = math.nan if self.other is None else self.other
        return self.at_most(other * factor, f"{factor:g} x")

    @property
    def ratio(self) -> float | None:
        """Figure per floor or peer."""
        return self.figure / self.other if self.other else None

    @property
    def verdict(self) -> str:
        """ok, OVER, or nothing without a budget; a figure that is not there is over."""
        if self.limit is None:
            return ""
        return "ok" if self.figure <= self.limit else "OVER"


@dataclass(frozen=True, slots=True)
class Failure:
    """A family that could not be measured to its end."""

    family: str
    reason: str


def median(values: Sequence[float]) -> float:
    """p50, NaN without values."""
    return statistics.median(values) if values else math.nan


def percentile(values: Sequence[float], share: float) -> float:
    """Value at a rank, such as `percentile(values, 0.99)`, NaN without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(len(ordered) * share) - 1)] if ordered else math.nan


def spread(values: Sequence[float]) -> str:
    """Number of values, least and most."""
    return f"n{len(values)} {min(values):.4g}-{max(values):.4g}" if values else "n0"


HEAD: Final = f"{'figure':60} {'measured':>11}  {'floor or peer':>22} {'ratio':>6}  {'budget':>16} {'':4}  samples"


def line(row: Row | Failure) -> str:
    """The row as text."""
    if isinstance(row, Failure):
        return f"{row.family:60} FAILED: {row.reason}"
    other = f"{row.other_name} {row.other:.4g}" if row.other is not None else ""
    ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
    figure = f"{row.figure:.4g} {row.unit}"
    return f"{row.name:60} {figure:>11}  {other:>22} {ratio:>6}  {row.budget:>16} {row.verdict:4}  {row.note}".rstrip()


@dataclass(slots=True)
class Table:
    """Prints rows as they come and, where a file is given, keeps them as JSON lines."""

    out: TextIO | None = None
    over: int = 0
    failed: int = 0

    def add(self, family: str, row: Row | Failure, load: float) -> None:
        """Show one row; `load` is the machine's load average at that moment."""
        print(line(row), flush=True)
        if isinstance(row, Failure):
            self.failed += 1
            record: dict[str, object] = {"family": family, "failed": row.reason}
        else:
            self.over += row.verdict == "OVER"
            record = {"family": family, **asdict(row), "ratio": row.ratio, "verdict": row.verdict}
        if self.out is not None:
            self.out.write(json.dumps({**record, "load": load}) + "\n")
            self.out.flush()


def machine_line() -> str:
    """Machine of the figures."""
    model = next(
        (part.split(":")[1].strip() for part in _lines("/proc/cpuinfo") if part.startswith("model name")), "unknown CPU"
    )
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} cores, {model}; load {load}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class Bench:
    """One run of the benchmarks."""

    folder: Path
    """Folder for all files of a family."""
    quick: bool = False

    def rounds(self, full: int, quick: int) -> int:
        """Number of samples."""
        return quick if self.quick else full


Measure: TypeAlias = Callable[[Bench], Iterator[Row]]


@dataclass(frozen=True, slots=True)
class Family:
    """Rows that are measured together; `seconds` bounds them in a full run, `quick_seconds` in a quick one."""

    name: str
    measure: Measure
    seconds: float
    quick_seconds: float


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
