"""Three conversations in panes of one 200x60 terminal, each answering at 80 tokens a second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu
from tests.benchmarks.keys import type_keys
from tests.benchmarks.program import READY, Program, fresh_home, running, serving
from tests.benchmarks.rows import Row
from tests.benchmarks.stream import VIBE_ECHO

PANES: Final = 3
RATE: Final = 80
NEXT: Final = b"\x1b[1;3C"
FOURTH: Final = "four"


def panes(bench: Bench) -> Iterator[Row]:
    """Cost of three visible streams, compared with one visible of three; keys meanwhile."""
    seconds, count = bench.rounds(10, 5), bench.rounds(150, 40)
    tokens = RATE * (seconds + count // 8 + 40)
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.terminal.resize(200, 60)
        program.terminal.settle()
        _stream(program, "one", tokens)
        for name in ("two", "three"):
            program.terminal.write("\x0e")
            program.terminal.wait(READY)
            _stream(program, name, tokens)
        hidden = _share(program, seconds)
        for name in ("one", "two"):
            _beside(program, name)
        share, sent = _share(program, seconds), program.terminal.bytes_written
        began = time.monotonic()
        echo = type_keys(program, count)
        written = (program.terminal.bytes_written - sent) / (time.monotonic() - began) / 1000
    row = Row("panes, 3 at 80 tok/s: CPU of a core", share, "%", f"{seconds} s, 200x60")
    yield row.beside("one in sight", hidden).at_most(30)
    yield Row("panes, 3 at 80 tok/s: written to the terminal", written, "kB/s")
    yield Row("panes: echo at 3 x 80 tok/s, p50", echo.p50, "ms", echo.note).beside("vibe3, 1", VIBE_ECHO[0])
    yield Row("panes: echo at 3 x 80 tok/s, p99", echo.p99, "ms").beside("vibe3, 1", VIBE_ECHO[1]).at_most(50)
    yield Row("panes: not seen on the screen", echo.missed, "", f"{count} keys").at_most(0)


def opening(bench: Bench) -> Iterator[Row]:
    """Time from the key to another pane having the dock, with two idle conversations."""
    times: list[float] = []
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.terminal.resize(200, 60)
        program.turn("one [[text:10]]")
        program.terminal.write("\x0e")
        program.terminal.wait(READY)
        program.turn("two [[text:10]]")
        _beside(program, "one")
        for number in range(bench.rounds(30, 10)):
            program.terminal.settle(0.2)
            sent = program.terminal.write(NEXT)
            times.append((program.terminal.wait(rf"› *\S+ +{('two', 'one')[number % 2]}") - sent) * 1000)
    yield Row("panes: key to another pane, median", sorted(times)[len(times) // 2], "ms", f"n{len(times)}").at_most(60)


def _stream(program: Program, name: str, tokens: int) -> None:
    program.asked(program.say(f"{name} [[md:{tokens},{RATE}]]"))
    program.terminal.drain(1.0)


def _beside(program: Program, name: str) -> None:
    program.terminal.write(f"/split {name} [[")
    program.terminal.drain(0.5)
    program.terminal.write("\r")
    program.terminal.drain(1.0)


def _share(program: Program, seconds: float) -> float:
    spent, began = cpu(program.pid), time.monotonic()
    time.sleep(seconds)
    return (cpu(program.pid) - spent) / (time.monotonic() - began) * 100
