"""Streaming Markdown: at a model's pace, while one types, and as fast as the wire allows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu, memory
from tests.benchmarks.keys import type_keys
from tests.benchmarks.program import Model, Program, fresh_home, running, serving
from tests.benchmarks.rows import Row, median
from tests.benchmarks.terminal import FAR_AWAY

CODEX_RATE: Final = 11.5
"""% of a core, codex (Rust): peer table, "CPU % of one core during that"."""
VIBE_ECHO: Final = (2.6, 18.9)
"""ms p50 and p99, vibe3 (Rust): peer table, "key -> echo while md streams at 80 tok/s"."""
VIBE_CPU: Final = 0.085
VIBE_WALL: Final = {2000: 0.112, 20000: 1.12}
"""CPU s per 1,000 tokens and s, vibe3 (Rust): peer table, "2k md" and "20k md"."""
CLAUDE_TRAFFIC: Final = (8.0, 28.0)
"""kB/s at 80 tokens a second, and kB of 2,000 tokens, claude: peer table."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Cost of an answer at full speed."""

    cpu: float
    """Seconds per 1,000 tokens."""
    wall: float
    """Seconds from the first token on the wire to the last on the screen."""
    growth: float
    """Megabytes of RSS."""
    written: float
    """kB to the terminal."""


def paced(bench: Bench) -> Iterator[Row]:
    """Stream at 80 tokens a second, first alone, then with typing."""
    seconds = bench.rounds(12, 5)
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.turn("hi [[text:10]]")
        asked = program.asked(program.say(f"go [[md:{80 * (seconds + 3)},80]]"))
        time.sleep(1.5)
        spent, sent, began = cpu(program.pid), program.terminal.bytes_written, time.monotonic()
        time.sleep(seconds)
        length = time.monotonic() - began
        share = (cpu(program.pid) - spent) / length * 100
        written = (program.terminal.bytes_written - sent) / length / 1000
        program.terminal.wait(rf"ENDMARK-{asked.number}\b", 20)
    yield Row("stream, 80 tok/s: CPU of a core", share, "%", f"{seconds} s").beside("codex", CODEX_RATE).at_most(8)
    row = Row("stream, 80 tok/s: written to the terminal", written, "kB/s")
    yield row.beside("claude", CLAUDE_TRAFFIC[0]).at_most(8)


def typing(bench: Bench) -> Iterator[Row]:
    """Key echo, idle and while an answer streams at 80 tokens a second."""
    count = bench.rounds(150, 40)
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.turn("hi [[text:10]]")
        idle = type_keys(program, count)
        program.asked(program.say(f"go [[md:{80 * (count // 8 + 20)},80]]"))
        program.terminal.drain(1.5)
        echo = type_keys(program, count, seed=2)
    yield Row("keys: echo while idle, p50", idle.p50, "ms", idle.note)
    yield Row("keys: echo at 80 tok/s, p50", echo.p50, "ms", echo.note).beside("vibe3", VIBE_ECHO[0]).at_most(6)
    yield Row("keys: echo at 80 tok/s, p99", echo.p99, "ms").beside("vibe3", VIBE_ECHO[1]).at_most(25)
    yield Row("keys: not seen on the screen", idle.missed + echo.missed, "", f"{2 * count} keys").at_most(0)


def far_away(bench: Bench) -> Iterator[Row]:
    """Key echo at 80 tokens a second over a link of 100 ms there and back."""
    count = bench.rounds(100, 30)
    with serving() as model, running(model, fresh_home(bench.folder), link=FAR_AWAY) as program:
        program.turn("hi [[text:10]]")
        program.asked(program.say(f"go [[md:{80 * (count // 4 + 20)},80]]"))
        program.terminal.drain(1.5)
        echo = type_keys(program, count, seed=3)
    trip = 2 * FAR_AWAY.delay * 1000
    row = Row("keys: echo at 80 tok/s, link of 100 ms and 100 kB/s, p50", echo.p50, "ms", echo.note)
    yield row.beside("round trip", trip).at_most(trip + 20, "trip + 20 ms")
    yield Row("keys: echo at 80 tok/s over that link, p99", echo.p99, "ms")


def full_speed(bench: Bench) -> Iterator[Row]:
    """2,000 and 20,000 tokens as fast as the server writes them."""
    with serving() as model:
        short = [_burst(bench, model, 2000) for _ in range(bench.rounds(5, 2))]
        long = [_burst(bench, model, 20000) for _ in range(bench.rounds(3, 1))]
    few, many = _median(short), _median(long)
    row = Row("stream, 2,000 at full speed: CPU per 1,000", few.cpu, "s", f"n{len(short)}")
    yield row.beside("vibe3", VIBE_CPU).at_most(0.08)
    row = Row("stream, 2,000 at full speed: first token -> all shown", few.wall, "s")
    yield row.beside("vibe3", VIBE_WALL[2000])
    row = Row("stream, 2,000 at full speed: written to the terminal", few.written, "kB")
    yield row.beside("claude", CLAUDE_TRAFFIC[1]).at_most(30)
    row = Row("stream, 20,000 at full speed: CPU per 1,000", many.cpu, "s", f"n{len(long)}")
    yield row.beside("2,000 tokens", few.cpu).at_most_times(1)
    row = Row("stream, 20,000 at full speed: first token -> all shown", many.wall, "s")
    yield row.beside("vibe3", VIBE_WALL[20000])
    yield Row("stream, 20,000 at full speed: growth", many.growth, "MB").at_most(20)


def _median(bursts: Sequence[Burst]) -> Burst:
    return Burst(*(median([getattr(each, name) for each in bursts]) for name in ("cpu", "wall", "growth", "written")))


def _burst(bench: Bench, model: Model, tokens: int) -> Burst:
    with running(model, fresh_home(bench.folder)) as program:
        program.turn("hi [[md:200]]")
        wait_quiet(program)
        program.terminal.write(f"go [[md:{tokens}]]")
        program.terminal.settle(0.3)
        spent, before, sent = cpu(program.pid), memory(program.pid).rss, program.terminal.bytes_written
        asked = program.asked(program.terminal.write("\r"))
        model.wait("done", number=asked.number, seconds=60)
        wait_quiet(program)
        cost, after = cpu(program.pid) - spent, memory(program.pid).rss
        ended = program.terminal.wait(rf"ENDMARK-{asked.number}\b", 30)
    first = model.wait("first", number=asked.number)
    written = (program.terminal.bytes_written - sent) / 1000
    return Burst(cost / tokens * 1000, ended - first.at, after - before, written)


def wait_quiet(program: Program, seconds: float = 30.0) -> None:
    """Wait until the program has cost next to nothing for half a second; the screen is not fed meanwhile."""
    deadline, quiet = time.monotonic() + seconds, 0
    while quiet < 5 and time.monotonic() < deadline:
        before = cpu(program.pid)
        time.sleep(0.1)
        quiet = quiet + 1 if cpu(program.pid) - before < 0.01 else 0
