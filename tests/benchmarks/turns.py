"""Turns: Enter to the request, tokens to the screen, keys meanwhile, and long runs of tools."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.benchmarks.commit import commit_milliseconds
from tests.benchmarks.program import Model, Program, fresh_home, running, serving
from tests.benchmarks.rows import Bench, Row, cpu, median, memory, percentile, spread
from tests.benchmarks.terminal import FAR_AWAY

CLAUDE_SUBMIT: Final = 10.0
"""ms, claude: peer table, "submit -> request, later turns"."""
CODEX_TOKEN: Final = 4.0
"""ms, codex: peer table, "first token sent -> on screen"."""
VIBE_LAST: Final = 5.0
"""ms, vibe3: peer table, "last token sent -> on screen"."""


def turns(bench: Bench) -> Iterator[Row]:
    """Run many short turns in one conversation; the first one is measured separately."""
    submits: list[float] = []
    tokens: list[float] = []
    lasts: list[float] = []
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        for _ in range(bench.rounds(30, 8) + 1):
            submit, token, last = _turn(program)
            submits.append(submit)
            tokens.append(token)
            lasts.append(last)
    commit = median(commit_milliseconds(bench, 20))
    yield Row("turn: Enter -> request, first turn", submits[0], "ms")
    row = Row("turn: Enter -> request, later turns, p50", median(submits[1:]), "ms", spread(submits[1:]))
    yield row.beside("claude", CLAUDE_SUBMIT).at_most(10 + commit, f"10 + commit {commit:.1f}")
    row = Row("turn: first token on the wire -> screen, p50", median(tokens[1:]), "ms", spread(tokens[1:]))
    yield row.beside("codex", CODEX_TOKEN).at_most(20)
    yield Row("turn: first token on the wire -> screen, p95", percentile(tokens[1:], 0.95), "ms")
    row = Row("turn: last token on the wire -> screen, p50", median(lasts[1:]), "ms", spread(lasts[1:]))
    yield row.beside("vibe3", VIBE_LAST)


def _turn(program: Program) -> tuple[float, float, float]:
    """Milliseconds: Enter to request, first token to screen, last token to screen."""
    entered = program.say("and now [[text:40,80]]")
    asked = program.asked(entered)
    shown = program.terminal.wait(rf"STARTMARK-{asked.number}\b")
    first = program.model.wait("first", number=asked.number)
    ended = program.terminal.wait(rf"ENDMARK-{asked.number}\b")
    done = program.model.wait("done", number=asked.number)
    program.terminal.settle(0.3)
    return (asked.at - entered) * 1000, (shown - first.at) * 1000, (ended - done.at) * 1000


CODEX_STEP: Final = 57.0
"""ms per step over 500, codex: peer table "Long sessions"; claude takes 70."""
AROUND: Final = 10
"""Steps on either side that a figure is the median of."""


def steps(bench: Bench) -> Iterator[Row]:
    """One run of 400 `echo`s, one per reply."""
    last, early = bench.rounds(400, 80), bench.rounds(40, 20)
    turns = ("--max-turns", str(last + 2 * AROUND))  # a run ends at 250 model calls by default
    with serving() as model, running(model, fresh_home(bench.folder), *turns) as program:
        program.turn("hi [[text:10]]")
        since = program.say(f"make it long [[loop:{last + AROUND}]]")
        looked_at = (early - AROUND, early + AROUND, last - AROUND, last + AROUND)
        costs = {step: _cost_at(program, since, step) for step in looked_at}
        done = {each.number: each.at for each in model.heard if each.event == "done"}
        walls = {
            each.facts["results"]: (each.at - done[each.number - 1]) * 1000
            for each in model.heard
            if each.event == "asked" and each.at >= since and each.facts["results"]
        }
    first, final = ([walls[step] for step in range(at - AROUND + 1, at + AROUND + 1)] for at in (early, last))
    row = Row(f"step {early} of a run: reply done -> next request", median(first), "ms", spread(first))
    yield row.beside("codex", CODEX_STEP)
    row = Row(f"step {last} of a run: reply done -> next request", median(final), "ms", spread(final))
    yield row.beside(f"step {early}", median(first)).at_most_times(1.2)
    cheap, dear = ((costs[at + AROUND] - costs[at - AROUND]) / (2 * AROUND) * 1000 for at in (early, last))
    yield Row(f"step {last} of a run: CPU of the tree", dear, "ms").beside(f"step {early}", cheap).at_most_times(1.2)


def _cost_at(program: Program, since: float, step: int) -> float:
    """CPU seconds spent when step `step` asked for the next."""
    looked = 0
    for _ in range(200_000):
        heard = program.model.heard
        while looked < len(heard):
            each = heard[looked]
            looked += 1
            if each.event == "asked" and each.at >= since and each.facts["results"] == step:
                return cpu(program.pid)
        program.terminal.drain(0.002)
        if program.terminal.ended:
            break
    raise TimeoutError(f"step {step} never came; the screen:\n{program.terminal.tail()}")


LETTERS = "bcdfghjklmnpqrstvwxz"
PATIENCE = 3.0
LINE = 50
"""Letters before the line is begun anew: it must not wrap."""
MARK = "QXQXQXQX"


@dataclass(frozen=True, slots=True)
class Echo:
    """Milliseconds from key to screen, one per key that was seen; and how many were not."""

    milliseconds: tuple[float, ...]
    missed: int

    @property
    def p50(self) -> float:
        """The median."""
        return median(self.milliseconds)

    @property
    def p99(self) -> float:
        """All but the slowest hundredth."""
        return percentile(self.milliseconds, 0.99)

    @property
    def note(self) -> str:
        """Number of samples, their range, and lost ones."""
        return spread(self.milliseconds) + (f", {self.missed} not seen" if self.missed else "")


def type_keys(program: Program, count: int, seed: int = 1) -> Echo:
    """Type `count` letters into the composer at a person's pace, then take them back."""
    chance, typed, times, missed = random.Random(seed), "", list[float](), 0
    for number in range(count):
        if number % LINE == 0:
            _erase(program, typed)
            typed = _begin(program)
        program.terminal.drain(chance.uniform(0.04, 0.1))
        letter = chance.choice(LETTERS)
        typed += letter
        sent = program.terminal.write(letter)
        try:
            shown = program.terminal.wait(re.escape(typed[-8:]), PATIENCE)
        except TimeoutError:
            missed += 1
            continue
        times.append((shown - sent) * 1000)
    _erase(program, typed)
    return Echo(tuple(times), missed)


def _begin(program: Program) -> str:
    """Type a mark in front of the next letters."""
    program.terminal.write(MARK)
    program.terminal.wait(MARK)
    return MARK


def _erase(program: Program, typed: str) -> None:
    program.terminal.write("\x7f" * len(typed))
    program.terminal.drain(0.3)


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
