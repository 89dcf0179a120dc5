"""Esc: how soon the connection is closed, how soon the processes are gone, and what is left of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.program import Program, fresh_home, running, serving
from tests.benchmarks.rows import Row, median, percentile, spread
from tests.support.processes import SHAPES, measure_cancel, measure_death, watching

CODEX_CLOSE: Final = 2.3
"""ms, codex: peer table, "Esc in a mid-stream hang -> connection closed"; claude takes 54."""
VIBE_DEAD: Final = 14.0
"""ms, vibe3: peer table, "Esc in `sleep & sleep; wait` -> all dead"; codex leaks, claude takes 75."""
KITTY_ESC: Final = "\x1b[27u"
ESC_DELAY: Final = 40
"""ms that a lone ESC byte waits for more of a sequence."""


def esc_stream(bench: Bench) -> Iterator[Row]:
    """Esc while the model says nothing more: the connection must go."""
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.turn("hi [[text:10]]")
        for name, key, limit in (("a lone ESC byte", "\x1b", 60), ("kitty's Esc", KITTY_ESC, 25)):
            times = [_close(program, key) for _ in range(bench.rounds(20, 6))]
            row = Row(f"Esc -> connection closed, {name}, p50", median(times), "ms", spread(times))
            yield row.beside("codex", CODEX_CLOSE).at_most(limit)


def esc_command(bench: Bench) -> Iterator[Row]:
    """Esc in the real program while a command with children runs."""
    times: list[float] = []
    leaks = 0
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        for _ in range(bench.rounds(30, 5)):
            with watching() as watch:
                program.say(f"[[bash:exec 9>{watch.fifo}; echo >&9; sleep 61 & setsid sleep 62 & wait]]")
                deadline = time.monotonic() + 10
                while not watch.stands(0) and time.monotonic() < deadline:
                    program.terminal.drain(0.02)
                pressed = time.perf_counter()
                program.terminal.write("\x1b")
                try:
                    times.append((watch.emptied_at(5) - pressed) * 1000)
                except TimeoutError:
                    leaks += 1
            program.terminal.settle(0.4)
    row = Row("Esc in the real program -> tree empty, p50", median(times), "ms", spread(times))
    yield row.beside("vibe3", VIBE_DEAD)
    row = Row("Esc in the real program -> tree empty, p99", percentile(times, 0.99), "ms")
    yield row.at_most(100 + ESC_DELAY, f"100 + {ESC_DELAY} ESCDELAY")
    yield Row("Esc in the real program: trees left", leaks, "").at_most(0)


def trees(bench: Bench) -> Iterator[Row]:
    """Cancel each shape of process tree through the process control itself."""
    rounds = bench.rounds(200, 10)
    for shape in SHAPES:
        figures = asyncio.run(measure_cancel(shape, rounds))
        yield Row(f"cancel -> tree empty, {shape.name}, p50", figures.median, "ms", spread(figures.milliseconds))
        yield Row(f"cancel -> tree empty, {shape.name}, p99", figures.percentile(0.99), "ms").at_most(100)
        yield Row(f"cancel, {shape.name}: processes left", figures.survivors, "", f"{rounds} rounds").at_most(0)


def deaths(bench: Bench) -> Iterator[Row]:
    """Kill Phoenix with SIGKILL: its commands go too."""
    rounds = bench.rounds(20, 2)
    for shape in SHAPES:
        figures = measure_death(shape, rounds)
        note = spread(figures.milliseconds)
        yield Row(f"kill -9 of Phoenix -> tree empty, {shape.name}, p50", figures.median, "ms", note)
        yield Row(f"kill -9 of Phoenix, {shape.name}: processes left", figures.survivors, "").at_most(0)


def _close(program: Program, key: str) -> float:
    asked = program.asked(program.say("[[hang:30]]"))
    program.terminal.wait(rf"STARTMARK-{asked.number}\b")
    program.terminal.drain(0.4)
    pressed = time.monotonic()
    program.terminal.write(key)
    closed = program.model.wait("closed", number=asked.number, seconds=5)
    program.terminal.settle(0.4)
    return (closed.at - pressed) * 1000
