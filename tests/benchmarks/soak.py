"""Two thousand turns in one process, sub-agents and sheets: what one costs and leaves stays the same to the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from phoenix_tui.modals.opening import KILOBYTES
from tests.benchmarks.agents import answered
from tests.benchmarks.program import READY, Heard, Model, Program, fresh_home, running, serving
from tests.benchmarks.rows import Bench, Row, cpu_of, median, resident
from tools.shedding import AFTERWARDS, DUE_AT

SHARE: Final = 0.05
"""Share of the compared turns: the first ones after the warm-up, and the last."""
WARM_UP: Final = 100
"""Turns in which modules load and what is kept by design fills: 300 drawn messages, Textual's caches."""
MEMORY_PER_TURN: Final = 8.0
"""kB of resident memory a turn may leave: its messages, twice, and their rows on the screen."""
CPU_GROWTH: Final = 1.1
"""Tolerance of a turn's processor time, measured in fixed work, since a busy machine is slower by more than that."""
FIXED: Final = 30_000
"""Rounds of the fixed work: some 5 ms."""
IN_ONE: Final = 50
"""Turns of each of many conversations."""
COMPACTED: Final = {"PHOENIX_COMPACT_PERCENT": "1"}
"""Share of a window of a million tokens: about every 30 turns older messages become a summary."""
QUIET: Final = 0.03
AT_ONCE: Final = 10
"""Sub-agents of one request."""
AFTER_AGENTS: Final = 6.0
"""Seconds in which those that have ended are closed: five, and a bit."""
SHEETS: Final = (("\x1bOP", "Keys and commands"), ("\x10", "Commands and settings"), ("\x1bOQ", "Turns"))
"""Keys that open one, and what it shows: F1, Ctrl+P, F2."""
MEMORY_PER_AGENT: Final = 100.0
"""kB: its row on the screen, its view in the list of all, what its start makes Python keep, and what is not collected
yet; 55 were measured."""
MEMORY_PER_SHEET: Final = 8.0
"""kB of resident memory that a sheet which was closed may leave."""


@dataclass(frozen=True, slots=True)
class Look:
    """The program after one turn."""

    cpu: float
    """Milliseconds of processor time of the turn."""
    floor: float
    """Milliseconds that the same work took in this benchmark alone, right afterwards."""
    memory: float
    """Megabytes."""
    threads: int
    descriptors: int


def soak(bench: Bench) -> Iterator[Row]:
    """A command and an answer, again and again, as fast as they go; the first 5 % beside the last 5 %.

    What a model is sent grows with its conversation until that is compacted, and with it what a turn costs. So what
    must be flat is measured where it can be: in many conversations, and in one that is compacted again and again.
    """
    turns = bench.rounds(2000, 200)
    yield from _rows(f"soak, {turns} turns, {IN_ONE} each", _looks(bench, turns, IN_ONE, {}))
    yield from _rows(f"soak, {turns} turns in one, compacted", _looks(bench, turns, 0, COMPACTED))
    yield from _agents(bench)
    yield from _sheets(bench)


def _agents(bench: Bench) -> Iterator[Row]:
    """Sub-agents, ten at a time, again and again: what each leaves once it was closed."""
    rounds = bench.rounds(5, 2)
    settings = {"PHOENIX_MAX_AGENTS": str(AT_ONCE)}
    with serving() as model, running(model, fresh_home(bench.folder), settings=settings) as program:
        left: list[float] = []
        for _ in range(1 + rounds):
            _work(program)
            left.append(_memory_after(program, AFTER_AGENTS))
    each = (left[-1] - left[0]) * 1024 / (rounds * AT_ONCE)
    yield Row(f"soak, {rounds * AT_ONCE} sub-agents: RSS left by one", each, "kB").at_most(MEMORY_PER_AGENT)


def _work(program: Program) -> None:
    asked = program.asked(program.say(f"go [[agents:{AT_ONCE},5]]"))
    answered(program, asked.at)


def _sheets(bench: Bench) -> Iterator[Row]:
    """Sheets opened and closed: what each leaves."""
    openings = bench.rounds(210, 50)
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.turn("hi [[text:10]]")
        for number in range(DUE_AT // KILOBYTES):
            _open_and_close(program, number)
        before = _memory_after(program, 4 * AFTERWARDS)
        for number in range(openings):
            _open_and_close(program, number)
        each = (_memory_after(program, 4 * AFTERWARDS) - before) * 1024 / openings
    yield Row(f"soak, {openings} sheets: RSS left by one", each, "kB").at_most(MEMORY_PER_SHEET)


def _open_and_close(program: Program, number: int) -> None:
    key, shows = SHEETS[number % len(SHEETS)]
    terminal = program.terminal
    terminal.write(key)
    terminal.wait(shows)
    terminal.write("\x1b")
    terminal.settle(QUIET * 5)


def _memory_after(program: Program, seconds: float) -> float:
    """Megabytes once nothing has been drawn for a while."""
    program.terminal.settle(seconds)
    return resident(program.pid)


def _looks(bench: Bench, turns: int, in_one: int, settings: Mapping[str, str]) -> list[Look]:
    looks: list[Look] = []
    home = fresh_home(bench.folder)
    with serving("--sized") as model, running(model, home, settings=settings) as program:
        talk = _Talk(program, model)
        for number in range(WARM_UP + turns):
            if in_one and number and number % in_one == 0:
                talk.begin_another()
            looks.append(talk.turn(number))
    return looks[WARM_UP:]


def _rows(name: str, looks: list[Look]) -> Iterator[Row]:
    count = max(1, round(len(looks) * SHARE))
    first, last = looks[:count], looks[-count:]
    early, late = median([look.cpu for look in first]), median([look.cpu for look in last])
    yield Row(f"{name}: CPU of a turn, last 5 %", late, "ms").beside("first 5 %", early)
    early, late = median([look.cpu / look.floor for look in first]), median([look.cpu / look.floor for look in last])
    row = Row(f"{name}: CPU of a turn in fixed work, last 5 %", late, "x").beside("first 5 %", early)
    yield row.at_most_times(CPU_GROWTH)
    early, late = median([look.memory for look in first]), median([look.memory for look in last])
    yield Row(f"{name}: RSS, last 5 %", late, "MB").beside("first 5 %", early)
    yield Row(f"{name}: RSS left by a turn", (late - early) * 1024 / len(looks), "kB").at_most(MEMORY_PER_TURN)
    for what in ("threads", "descriptors"):
        before, after = (median([getattr(look, what) for look in part]) for part in (first, last))
        yield Row(f"{name}: {what}, last 5 %", after, "").beside("first 5 %", before).at_most(before + 2)


class _Talk:
    """Types prompts and knows, from the model's side alone, when their runs are over."""

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
            terminal.drain()
        pid, spent = self._program.pid, cpu_of(self._program.pid)
        look = Look(
            (spent - self._spent) * 1000,
            _fixed_work() * 1000,
            resident(pid),
            _entries(Path(f"/proc/{pid}/task")),
            _entries(Path(f"/proc/{pid}/fd")),
        )
        self._spent = spent
        return look

    def begin_another(self) -> None:
        """A new conversation."""
        terminal = self._program.terminal
        terminal.write("/new\r")
        terminal.wait(READY)
        terminal.settle()
        self._spent = cpu_of(self._program.pid)

    def _until_answered(self) -> None:
        deadline, results = time.monotonic() + 60, 0
        while time.monotonic() < deadline:
            for heard in self._new():
                if heard.event == "asked":
                    results = heard.facts["results"]
                elif heard.event == "done" and results:
                    return
            self._program.terminal.drain()
            time.sleep(0.002)
        raise TimeoutError("a turn of the soak did not end")

    def _new(self) -> list[Heard]:
        heard = self._model.heard[self._heard :]
        self._heard += len(heard)
        return heard


def _fixed_work() -> float:
    """Seconds of processor time of one loop that is always the same: how fast the machine is in this minute."""
    begun, words = time.thread_time(), {}
    for number in range(FIXED):
        words[f"word {number % 997}"] = number
    return time.thread_time() - begun


def _entries(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())
