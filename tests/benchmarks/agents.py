"""Sub-agents, many conversations at once, and long runs in small and large windows."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.context.omissions import PruningRule
from engine.executor.engine_settings import EngineSettings
from engine.machine.views import CompactionKind
from tests.benchmarks.model_server import FIRST_TOKEN, PACE, SMALL_TALK
from tests.benchmarks.program import ROOT, Program, fresh_home, running, serving
from tests.benchmarks.rows import Bench, Row, cpu, memory
from tests.benchmarks.turns import CODEX_RATE, VIBE_ECHO, type_keys
from tests.support.engine import Providers, engine_harness
from tests.support.long_run import LongRunProvider, LongTool, cost_of

AGENTS: Final = 10
REPORT: Final = 80
"""Tokens that a task ends with."""
ONE_TASK: Final = 3 * FIRST_TOKEN + (2 * SMALL_TALK + REPORT) / PACE
"""Seconds that the model alone takes for one task: no program can be quicker."""
SLEEP: Final = "299.7713"
TREE: Final = f"sleep {SLEEP} & setsid sleep {SLEEP} & sleep {SLEEP}"
EACH: Final = 3
"""Processes of the tree beside its shell."""


def agents(bench: Bench) -> Iterator[Row]:
    """The same ten tasks by ten agents at once and by one agent in turn; then ten that write on, and ten that run."""
    keys = bench.rounds(100, 40)
    home = _home(bench)
    with serving() as model, running(model, home) as program:
        program.turn("hi [[text:10]]")
        before = memory(program.pid).pss
        ten, ten_cpu = _timed(program, f"go [[agents:{AGENTS},{REPORT}]]")
        held = memory(program.pid).pss
        alone, alone_cpu = _timed(program, f"go [[alone:{AGENTS},{REPORT}]]")
        streaming, echo_p50, echo_p99, note = _typed_meanwhile(program, keys)
        gone, left = _stopped(program)
    name = f"{AGENTS} agents at once, search and read each"
    yield Row(f"{name}: wall", ten, "s").beside("model alone, 1 task", ONE_TASK).at_most_times(2)
    yield Row(f"{name}: wall", ten, "s").beside("one agent, in turn", alone).at_most_times(0.25)
    yield Row(f"{name}: CPU time", ten_cpu, "s").beside("one agent, in turn", alone_cpu)
    yield Row(f"{AGENTS} agents at 80 tok/s: CPU of a core", streaming, "%")
    yield Row(f"{AGENTS} agents at 80 tok/s: key echo, p50", echo_p50, "ms", note)
    yield Row(f"{AGENTS} agents at 80 tok/s: key echo, p99", echo_p99, "ms").at_most(25)
    yield Row(f"{AGENTS} agents with 3 processes each: Esc until all are gone", gone, "ms").at_most(1000)
    yield Row("processes left after it", left, "").at_most(0)
    yield Row("PSS of each agent that has ended", (held - before) / AGENTS, "MB")


def _home(bench: Bench) -> Path:
    """A home whose work folder is a clone of this repository, with room for all agents."""
    home = fresh_home(bench.folder)
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", str(home / "work")], check=True)
    (home / "work" / "AGENTS.md").unlink(missing_ok=True)
    (home / "phoenix").mkdir()
    (home / "phoenix" / "config.toml").write_text(f"max_agents = {AGENTS}\n", "utf-8")
    return home


def _timed(program: Program, prompt: str) -> tuple[float, float]:
    """Seconds from the parent's first request to its answer, and the CPU seconds of Phoenix."""
    spent, since = cpu(program.pid), program.say(prompt)
    asked = program.asked(since)
    last = answered(program, asked.at)
    program.terminal.settle(0.15)
    return last - asked.at, cpu(program.pid) - spent


def answered(program: Program, since: float) -> float:
    """Time of the answer to the newest request: only a final answer has the mark."""
    deadline = time.monotonic() + 90.0
    while time.monotonic() < deadline:
        program.terminal.drain(0.01)
        last = next(one for one in reversed(program.model.heard) if one.event == "asked")
        with suppress(TimeoutError):
            program.terminal.wait(rf"ENDMARK-{last.number}\b", 0.02)
            return program.model.wait("done", since=since, number=last.number).at
    raise TimeoutError(f"no answer; the screen:\n{program.terminal.tail()}")


def _typed_meanwhile(program: Program, keys: int) -> tuple[float, float, float, str]:
    """% of a core, and the echo of keys while ten agents write."""
    seconds = keys // 5 + 6
    since = program.say(f"go [[agents:{AGENTS},{seconds * round(PACE)}]]")
    program.asked(since)
    reports = AGENTS * 3 + 1
    deadline = time.monotonic() + 30.0
    while sum(one.event == "asked" and one.at >= since for one in program.model.heard) < reports:
        program.terminal.drain(0.02)
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all of them write; the screen:\n{program.terminal.tail()}")
    program.terminal.drain(FIRST_TOKEN * 2)
    spent, began = cpu(program.pid), time.monotonic()
    program.terminal.drain(3.0)
    share = (cpu(program.pid) - spent) / (time.monotonic() - began) * 100
    echo = type_keys(program, keys, seed=4)
    program.terminal.write("\x1b")
    program.terminal.settle(0.5)
    return share, echo.p50, echo.p99, echo.note


def _stopped(program: Program) -> tuple[float, float]:
    """Milliseconds from Esc until no process of ten agents is there, and how many are left a second later."""
    program.asked(program.say(f"go [[crowd:{TREE}]]"))
    deadline = time.monotonic() + 30.0
    while len(_sleeping()) < AGENTS * EACH:
        program.terminal.drain(0.02)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(_sleeping())} processes run; the screen:\n{program.terminal.tail()}")
    pressed = program.terminal.write("\x1b")
    while _sleeping() and time.monotonic() < pressed + 10.0:
        program.terminal.drain(0.002)
    gone = (time.monotonic() - pressed) * 1000
    program.terminal.drain(1.0)
    return gone, float(len(_sleeping()))


def _sleeping() -> list[int]:
    """The processes of the tree."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid, command = int(folder.name), (folder / "cmdline").read_bytes()
            if command == f"sleep\0{SLEEP}\0".encode():
                found.append(pid)
    return found


OPEN: Final = 20
STREAMING: Final = 4
NEW: Final = "\x0e"


def many(bench: Bench) -> Iterator[Row]:
    """One answer at 80 tokens a second, then four at once, then typing meanwhile."""
    count = bench.rounds(100, 30)
    seconds = bench.rounds(10, 5)
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        for number in range(OPEN):
            if number:
                _new(program)
            program.turn("hi [[text:10]]")
        one = _streaming(program, 1, seconds)
        four = _streaming(program, STREAMING, seconds, typed=count // 8)
        echo = type_keys(program, count, seed=3)
        held = memory(program.pid)
    name = f"{OPEN} conversations open"
    row = Row(f"{name}, one at 80 tok/s: CPU of a core", one, "%", f"{seconds} s")
    yield row.beside("codex, one alone", CODEX_RATE)
    row = Row(f"{name}, {STREAMING} at 80 tok/s: CPU of a core", four, "%", f"{seconds} s")
    yield row.beside("one of them", one).at_most_times(STREAMING)
    row = Row(f"{name}, {STREAMING} at 80 tok/s: key echo, p50", echo.p50, "ms", echo.note)
    yield row.beside("vibe3, one", VIBE_ECHO[0])
    row = Row(f"{name}, {STREAMING} at 80 tok/s: key echo, p99", echo.p99, "ms")
    yield row.beside("vibe3, one", VIBE_ECHO[1]).at_most(25)
    yield Row(f"{name}, {STREAMING} at 80 tok/s: PSS", held.pss, "MB")


def _new(program: Program) -> None:
    program.terminal.write(NEW)
    program.terminal.settle(0.2)


def _streaming(program: Program, answers: int, seconds: float, typed: int = 0) -> float:
    """Per cent of a core while `answers` arrive, the last one in view."""
    tokens = 80 * (round(seconds) + 3 * answers + 3 + typed)
    for _ in range(answers):
        _new(program)
        program.asked(program.say(f"go [[md:{tokens},80]]"))
    time.sleep(1.5)
    spent, began = cpu(program.pid), time.monotonic()
    time.sleep(seconds)
    share = (cpu(program.pid) - spent) / (time.monotonic() - began) * 100
    if not typed:
        program.terminal.settle(1.5)
    return share


CACHE_GOAL: Final = 0.10
"""Share of the input tokens that no cache may have to serve: at least 90 % come from it."""
ENDLESS: Final = 20_000_000
"""A window that holds everything."""


@dataclass(frozen=True, slots=True)
class LongRun:
    """Outcome of one run."""

    provider: LongRunProvider
    summaries: int
    prunings: int

    @property
    def uncached(self) -> float:
        """Share of the input tokens that were not read from a cache."""
        return 1 - self.provider.cache_share

    @property
    def note(self) -> str:
        """The sizes and changes behind the figures."""
        sizes = self.provider.sizes
        changes = f"{self.summaries} summaries, {self.prunings} prunings, {len(self.provider.misses)} misses"
        return f"{changes}, last request {sizes[-1]:,}, largest {max(sizes):,}, {self.provider.overflows} overflows"


def windows(bench: Bench) -> Iterator[Row]:
    """50 calls with and without making room, then 500 in a small and a large window, beside one without end."""
    for window, makes_room in ((200_000, True), (200_000, False), (32_000, True)):
        done = _run_in(bench.folder / f"50-{window}-{makes_room}", 50, window, makes_room=makes_room)
        name = f"50 calls, {window:,} tokens{'' if makes_room else ', no pruning or summary'}: input not from the cache"
        yield Row(name, done.uncached * 100, "%", done.note).at_most(CACHE_GOAL * 100)
    calls = bench.rounds(500, 150)
    whole = _run_in(bench.folder / "all", calls, ENDLESS, makes_room=False)
    for window in (32_000, 200_000):
        done = _run_in(bench.folder / f"{calls}-{window}", calls, window, makes_room=True)
        name = f"{calls} calls, {window:,} tokens"
        yield Row(f"{name}: input not from the cache", done.uncached * 100, "%", done.note).at_most(CACHE_GOAL * 100)
        cost = Row(f"{name}: cost", cost_of(done.provider.spent), "$")
        yield cost.beside("sending all", cost_of(whole.provider.spent))


def _run_in(home: Path, calls: int, window: int, *, makes_room: bool) -> LongRun:
    home.mkdir()
    return asyncio.run(_run(home, calls, window, makes_room=makes_room))


async def _run(home: Path, calls: int, window: int, *, makes_room: bool) -> LongRun:
    settings = EngineSettings(
        max_iterations=2 * calls,
        auto_title=False,
        compact_percent=75 if makes_room else 1_000,
        pruning=PruningRule(enabled=makes_room),
    )
    provider, tool = LongRunProvider(window, calls, checked_every=50), LongTool()
    async with engine_harness(home, tool=tool, settings=settings, providers=Providers(provider)) as harness:
        conversation = await harness.conversation()
        await conversation.say("Do all the steps.")
        await conversation.wait_idle()
        kinds = [one.facts.kind for one in await harness.store.library.compactions(conversation.id)]
    if len(tool.calls) != calls:
        raise AssertionError(f"the run ended after {len(tool.calls)} calls")
    return LongRun(provider, kinds.count(CompactionKind.SUMMARY), kinds.count(CompactionKind.SHORTENED))
