"""Process trees that are hard to kill, and a look at them that does not go through Phoenix.

Every tree is bounded: it ends by itself after `LIFETIME` seconds, whatever happens to a test.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from tests.support.waiting import PATIENCE, poll, poll_blocking
from tools.contract import Command, Progress
from tools.process.hardening import harden
from tools.process.start import Processes, ProcessSettings, start_processes

LIFETIME = 60
ROOT = Path(__file__).resolve().parents[2]
MARK = "PHOENIX_TEST_MARK"
FIFO = "PHOENIX_TEST_FIFO"

_HOPPER = f"""
import os, sys, time
end = time.monotonic() + {LIFETIME}
for _ in range(8):
    if os.fork() == 0:
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
            os.setsid()
            time.sleep(0.002)
        os._exit(0)
time.sleep({LIFETIME})
"""


def descriptors_open() -> int:
    """Descriptors of this process, after those that earlier tests left to the garbage are closed."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


@dataclass(frozen=True, slots=True)
class Shape:
    """A command for bash, and the number of marked processes when it is complete."""

    name: str
    script: str
    processes: int


SHAPES = (
    Shape("plain", f"sleep {LIFETIME}", 1),
    Shape("20 children", f"for i in $(seq 20); do sleep {LIFETIME} & done; wait", 21),
    Shape(
        "ignores TERM, INT, HUP",
        f"trap '' TERM INT HUP; for i in 1 2 3 4 5; do sleep {LIFETIME} & done; sleep {LIFETIME}; :",
        7,
    ),
    Shape("setsid children", f"for i in 1 2 3 4 5; do setsid sleep {LIFETIME} & done; wait", 6),
    Shape(
        "double-fork daemon",
        f"(setsid bash -c 'cd /; (exec env -i bash -c \"exec -a ${MARK} sleep {LIFETIME}\" <&- >&- 2>&-) &' &)\n"
        f"sleep {LIFETIME}; :",
        3,
    ),
    Shape("pid hopper", f"exec {sys.executable} -S -c '{_HOPPER}'", 5),
)
SHAPES_BY_NAME = {shape.name: shape for shape in SHAPES}


def marked(mark: str) -> set[int]:
    """Pids whose environment or command line holds `mark`; zombies have neither."""
    wanted = mark.encode()
    found: set[int] = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes() or wanted in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
    return found


@dataclass(slots=True)
class Watch:
    """A mark to find a tree by, and a FIFO that hangs up at the moment its last process dies."""

    mark: str = field(default_factory=lambda: f"phx-{uuid.uuid4().hex}")
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="phx-watch-")))
    reader: int = -1
    opened: bool = False

    def __post_init__(self) -> None:
        os.mkfifo(self.fifo)
        self.reader = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def fifo(self) -> Path:
        """Named pipe that every process of the tree holds open for writing."""
        return self.folder / "fifo"

    @property
    def environment(self) -> dict[str, str]:
        """Additions to a command's environment."""
        return {MARK: self.mark, FIFO: str(self.fifo)}

    def command(self, script: str, timeout: float | None = None) -> Command:
        """`script` for bash, watched."""
        argv = ("/bin/bash", "-c", f'exec 9>"${FIFO}"; echo >&9\n{script}')
        return Command(argv, self.folder, timeout=timeout, environment=self.environment)

    def alive(self) -> set[int]:
        """The processes of the tree."""
        return marked(self.mark)

    def stands(self, processes: int = 1) -> bool:
        """True once the tree holds the FIFO and has at least `processes`."""
        if not self.opened:
            with contextlib.suppress(BlockingIOError):
                self.opened = os.read(self.reader, 1) != b""
        return self.opened and len(self.alive()) >= processes

    def emptied_at(self, limit: float = PATIENCE) -> float:
        """Block until the last process of the tree is dead; gives the moment on `time.perf_counter`."""
        poll = select.poll()
        poll.register(self.reader, select.POLLHUP)
        if not poll.poll(limit * 1000):
            raise TimeoutError("the tree is still there")
        return time.perf_counter()

    def close(self) -> None:
        """Kill whatever is left and remove the folder."""
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.close(self.reader)
        for path in self.folder.iterdir():
            if path.is_fifo():
                path.unlink()
        with contextlib.suppress(OSError):
            self.folder.rmdir()


@contextlib.contextmanager
def watching() -> Generator[Watch]:
    """A watch that cleans up after itself."""
    watch = Watch()
    try:
        yield watch
    finally:
        watch.close()


async def start_plain(mechanism: str = "") -> Processes:
    """Process control without a sandbox."""
    return await start_processes(ProcessSettings(mechanism=mechanism))


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds from a stop until the tree was empty, and how many processes outlived any of the rounds."""

    shape: str
    milliseconds: tuple[float, ...]
    returned: tuple[float, ...]
    """Milliseconds until the cancelled call came back."""
    survivors: int

    @property
    def median(self) -> float:
        """p50."""
        return statistics.median(self.milliseconds)

    def percentile(self, share: float) -> float:
        """Value at a rank, such as `percentile(0.99)`."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def measure_cancel(shape: Shape, rounds: int, mechanism: str = "") -> Figures:
    """Start `shape`, cancel it once it is complete, and time its end; `rounds` times."""
    processes = await start_plain(mechanism)
    times: list[float] = []
    returned: list[float] = []
    survivors = 0
    try:
        for _ in range(rounds):
            with watching() as watch:
                task = asyncio.create_task(processes.runner.run(watch.command(shape.script)))
                await poll(partial(watch.stands, shape.processes))
                emptied = asyncio.create_task(asyncio.to_thread(watch.emptied_at))
                await asyncio.sleep(0)
                began = time.perf_counter()
                task.cancel()
                await asyncio.wait({task})
                returned.append((time.perf_counter() - began) * 1000)
                survivors += len(watch.alive())
                times.append((await emptied - began) * 1000)
    finally:
        await processes.close()
    return Figures(shape.name, tuple(times), tuple(returned), survivors)


def measure_death(shape: Shape, rounds: int) -> Figures:
    """Measure like `measure_cancel`, but end Phoenix itself with SIGKILL."""
    times: list[float] = []
    survivors = 0
    for _ in range(rounds):
        with watching() as watch, phoenix(watch, shape.script) as host:
            poll_blocking(partial(watch.stands, shape.processes))
            began = time.perf_counter()
            host.kill()
            times.append((watch.emptied_at() - began) * 1000)
            survivors += len(watch.alive())
    return Figures(shape.name, tuple(times), (), survivors)


@contextlib.contextmanager
def phoenix(watch: Watch, script: str, *, hardened: bool = False) -> Generator[subprocess.Popen[bytes]]:
    """A process that runs `script` through Phoenix's process control, as `host` below."""
    order = msgspec.json.encode(Order(watch.command(script).argv, watch.environment, harden=hardened))
    arguments = [sys.executable, "-m", "tests.support.processes"]
    host = subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert host.stdin is not None
    host.stdin.write(order)  # not as an argument: the mark must be on the tree alone
    host.stdin.close()
    host.stdin = None
    try:
        yield host
    finally:
        host.kill()
        host.wait()
        if host.stdout is not None:
            host.stdout.close()


@dataclass(frozen=True, slots=True)
class Order:
    """Instructions of a host."""

    script: tuple[str, ...]
    mark: dict[str, str]
    harden: bool = False


async def host(order: Order) -> None:
    """Run one command and show what is reported, one line each; then the result."""
    if order.harden:
        harden()
    processes = await start_plain()
    _show("pid", os.getpid())

    def report(progress: Progress) -> None:
        _show("progress", progress)

    finished = await processes.runner.run(Command(order.script, Path("/"), environment=order.mark), report)
    _show("finished", finished)
    await processes.close()


def _show(word: str, value: object) -> None:
    sys.stdout.write(f"{word} {value}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(host(msgspec.json.decode(sys.stdin.buffer.read(), type=Order)))
