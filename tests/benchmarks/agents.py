"""Ten sub-agents at once on a real repository: wall time, CPU, the screen meanwhile, Esc, memory."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu, memory
from tests.benchmarks.keys import type_keys
from tests.benchmarks.model_server import FIRST_TOKEN, PACE, SMALL_TALK
from tests.benchmarks.program import ROOT, Program, fresh_home, running, serving
from tests.benchmarks.rows import Row

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
