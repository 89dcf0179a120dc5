"""Many conversations at once: twenty open, four of them answering, one in view."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu, memory
from tests.benchmarks.keys import type_keys
from tests.benchmarks.program import Program, fresh_home, running, serving
from tests.benchmarks.rows import Row
from tests.benchmarks.stream import CODEX_RATE, VIBE_ECHO

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
