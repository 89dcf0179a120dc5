"""`python -m tests.benchmarks [NAME ...] [--quick] [--rt] [--out FILE]`: every budget of Phoenix, measured.

Wall times mean something on a quiet machine or with `--rt` (root: everything runs under SCHED_RR, ahead of other work).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import Final

from tests.benchmarks import agents, cancel, commit, everyday, history, listing, machine, soak, start, turns
from tests.benchmarks.program import RUN_TAG
from tests.benchmarks.rows import HEAD, Bench, Failure, Family, Row, Table, kill_all, machine_line, tagged

FAMILIES: Final = (
    Family("start", start.first_frame, 90, 40),
    Family("typed-ahead", start.typed_ahead, 90, 45),
    Family("plain", start.plain_answers, 40, 20),
    Family("hosts", start.first_answer, 40, 20),
    Family("turns", turns.turns, 90, 35),
    Family("paced", turns.paced, 60, 30),
    Family("typing", turns.typing, 120, 45),
    Family("far-away", turns.far_away, 120, 60),
    Family("mention", listing.mention, 150, 60),
    Family("models", listing.model_list, 120, 60),
    Family("panes", listing.panes, 150, 80),
    Family("pane-keys", listing.opening, 60, 40),
    Family("full-speed", turns.full_speed, 180, 60),
    Family("recording", commit.recording, 300, 60),
    Family("history", history.history, 200, 90),
    Family("idle", start.idle, 90, 60),
    Family("extensions", everyday.extensions, 420, 150),
    Family("many", agents.many, 150, 90),
    Family("agents", agents.agents, 300, 180),
    Family("listing", listing.listing, 120, 60),
    Family("steps", turns.steps, 180, 40),
    Family("windows", agents.windows, 120, 60),
    Family("esc", cancel.esc_stream, 90, 40),
    Family("esc-command", cancel.esc_command, 90, 30),
    Family("bombs", cancel.bombs, 180, 80),
    Family("trees", cancel.trees, 600, 60),
    Family("services", cancel.services, 60, 20),
    Family("deaths", cancel.deaths, 240, 45),
    Family("store-crash", commit.store, 180, 30),
    Family("crash", commit.program, 420, 40),
    Family("commit", commit.commit, 60, 20),
    Family("rewind", commit.rewind, 240, 90),
    Family("search", history.search, 900, 90),
    Family("soak", soak.soak, 3000, 300),
    Family("machine", machine.machine, 360, 30),
    Family("guard", everyday.guard, 400, 200),
    Family("everyday", everyday.everyday, 600, 300),
    Family("questions", everyday.questions, 180, 120),
    Family("parse", machine.parse, 30, 15),
)


def main() -> int:
    """Measure what is asked for; 1 when a row is over its budget or failed."""
    arguments = _arguments()
    if arguments.rt:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    wanted = arguments.names or [family.name for family in FAMILIES]
    began, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="phoenix-bench-"))
    print(machine_line() + (", under SCHED_RR" if arguments.rt else ""))
    print(HEAD)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(lambda: kill_all(set(tagged(RUN_TAG))))
        out = stack.enter_context(arguments.out.open("a", encoding="utf-8")) if arguments.out else None
        table = Table(out)
        for family in FAMILIES:
            if family.name in wanted:
                _measure(family, Bench(folder, quick=arguments.quick), table)
    print(machine_line())
    print(f"{table.over} over budget, {table.failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if table.over or table.failed else 0


def _arguments() -> argparse.Namespace:
    names = [family.name for family in FAMILIES]
    parser = argparse.ArgumentParser("python -m tests.benchmarks", description="Measure every budget of Phoenix.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="fewer samples: about 4 minutes instead of 25")
    parser.add_argument("--rt", action="store_true", help="run under SCHED_RR (root)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="append the rows as JSON lines")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return arguments


def _measure(family: Family, bench: Bench, table: Table) -> None:
    """One family; whatever goes wrong costs its remaining rows and no others."""
    try:
        with _bounded(family.quick_seconds if bench.quick else family.seconds):
            for row in _rows(family, bench):
                table.add(family.name, row, os.getloadavg()[0])
    except Exception as error:  # noqa: BLE001 - the table must go on, and shows what it was
        table.add(family.name, Failure(family.name, f"{type(error).__name__}: {error}"), os.getloadavg()[0])


def _rows(family: Family, bench: Bench) -> Iterator[Row]:
    yield from family.measure(bench)


@contextlib.contextmanager
def _bounded(seconds: float) -> Generator[None]:
    """Raise TimeoutError in the main thread when it takes longer."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not finished within {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    sys.exit(main())
