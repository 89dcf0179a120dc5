"""Doing nothing: it must cost nothing, with one conversation open and with twenty."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu, memory
from tests.benchmarks.program import Program, fresh_home, running, serving
from tests.benchmarks.rows import Row

OPEN: Final = 20
CLAUDE_IDLE: Final = 0.65
"""% of a core, claude: peer table, "idle CPU %"; its tty bytes are 0 too."""
TAU_PSS: Final = 69.0
"""MB, tau: peer table "The living Textual relatives"."""


def idle(bench: Bench) -> Iterator[Row]:
    """After a turn in each of the conversations, wait and see."""
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.turn("hi [[text:10]]")
        yield from _look(program, bench, "one conversation")
        one = memory(program.pid)
        row = Row("idle, one conversation: PSS", one.pss, "MB", f"RSS {one.rss:.0f} MB")
        yield row.beside("tau", TAU_PSS).at_most(50)
        for _ in range(OPEN - 1):
            program.terminal.write("\x0e")
            program.terminal.settle(0.2)
            program.turn("hi [[text:10]]")
        yield from _look(program, bench, f"{OPEN} conversations")
        more = memory(program.pid)
        each = (more.pss - one.pss) / (OPEN - 1)
        yield Row("idle: PSS of each further conversation", each, "MB", f"{more.pss:.0f} MB with {OPEN}").at_most(1)


def _look(program: Program, bench: Bench, name: str) -> Iterator[Row]:
    program.terminal.settle(1.0)
    time.sleep(3)
    seconds = bench.rounds(10, 5)
    program.terminal.drain()
    spent, sent = cpu(program.pid), program.terminal.bytes_written
    time.sleep(seconds)
    share = (cpu(program.pid) - spent) / seconds * 100
    written = (program.terminal.bytes_written - sent) / seconds
    yield Row(f"idle, {name}: CPU of a core", share, "%", f"{seconds} s").beside("claude", CLAUDE_IDLE).at_most(0.1)
    yield Row(f"idle, {name}: written to the terminal", written, "B/s").at_most(0)
