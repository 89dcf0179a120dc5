"""Two thousand turns in one process: what a turn costs and what is kept must be the same at the end as at the start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu_of, resident
from tests.benchmarks.program import Heard, Model, Program, fresh_home, running, serving
from tests.benchmarks.rows import Row, median

SHARE: Final = 0.05
"""Of all turns that are compared: the first ones after the warm-up, and the last."""
WARM_UP: Final = 20
"""Turns in which modules load and caches fill."""
MEMORY_PER_TURN: Final = 8.0
"""kB of resident memory a turn may leave: its messages, twice, and their rows on the screen."""
CPU_GROWTH: Final = 1.25
"""A request grows with its conversation, and with it what is written to the model."""
QUIET: Final = 0.03


@dataclass(frozen=True, slots=True)
class Look:
    """The program after one turn."""

    cpu: float
    """Milliseconds of processor time of the turn."""
    memory: float
    """Megabytes."""
    threads: int
    descriptors: int


def soak(bench: Bench) -> Iterator[Row]:
    """A command and an answer, again and again, as fast as they go; the first 5 % beside the last 5 %."""
    turns = bench.rounds(2000, 200)
    looks: list[Look] = []
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        talk = _Talk(program, model)
        for number in range(WARM_UP + turns):
            looks.append(talk.turn(number))
    looks = looks[WARM_UP:]
    count = max(1, round(turns * SHARE))
    first, last = looks[:count], looks[-count:]
    name = f"soak, {turns} turns"
    early, late = median([look.cpu for look in first]), median([look.cpu for look in last])
    row = Row(f"{name}: CPU of a turn, last 5 %", late, "ms").beside("first 5 %", early)
    yield row.at_most_times(CPU_GROWTH)
    early, late = median([look.memory for look in first]), median([look.memory for look in last])
    yield Row(f"{name}: RSS, last 5 %", late, "MB").beside("first 5 %", early)
    yield Row(f"{name}: RSS left by a turn", (late - early) * 1024 / turns, "kB").at_most(MEMORY_PER_TURN)
    for what in ("threads", "descriptors"):
        before, after = (median([getattr(look, what) for look in part]) for part in (first, last))
        yield Row(f"{name}: {what}, last 5 %", after, "").beside("first 5 %", before).at_most(before + 2)


class _Talk:
    """Types prompts and hears, from the model's side alone, when their runs are over."""

    def __init__(self, program: Program, model: Model) -> None:
        self._program = program
        self._model = model
        self._heard = 0
        self._spent = cpu_of(program.pid)

    def turn(self, number: int) -> Look:
        """One prompt, one command, one answer."""
        terminal = self._program.terminal
        terminal.write(f"turn {number} [[loop:1]]\r")
        self._until_answered()
        written = -1
        while written != terminal.bytes_written:
            written = terminal.bytes_written
            time.sleep(QUIET)
            terminal.forget()
        pid, spent = self._program.pid, cpu_of(self._program.pid)
        look = Look(
            (spent - self._spent) * 1000,
            resident(pid),
            _entries(Path(f"/proc/{pid}/task")),
            _entries(Path(f"/proc/{pid}/fd")),
        )
        self._spent = spent
        return look

    def _until_answered(self) -> None:
        deadline, results = time.monotonic() + 60, 0
        while time.monotonic() < deadline:
            for heard in self._new():
                if heard.event == "asked":
                    results = heard.facts["results"]
                elif heard.event == "done" and results:
                    return
            self._program.terminal.forget()
            time.sleep(0.002)
        raise TimeoutError("a turn of the soak did not end")

    def _new(self) -> list[Heard]:
        heard = self._model.heard[self._heard :]
        self._heard += len(heard)
        return heard


def _entries(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())
