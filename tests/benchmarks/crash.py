"""kill -9 at random points: of a busy store, and of the real program at work."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import tagged, tree
from tests.benchmarks.program import RUN_TAG, Model, fresh_home, running, serving
from tests.benchmarks.rows import Row
from tests.support.storage import crash_rounds

SEED: Final = 20
LONGEST: Final = 0.8
"""Seconds after Enter by which a program of these rounds has been killed."""


@dataclass(slots=True)
class Told:
    """Reports to the rounds from other sources than Phoenix."""

    prompts: list[str] = field(default_factory=list[str])
    """Words whose prompt has reached the model: Phoenix may not lose them."""
    commands: list[str] = field(default_factory=list[str])
    starts_failed: int = 0


def store(bench: Bench) -> Iterator[Row]:
    """A writer of three conversations, killed again and again, each time recovered."""
    report = crash_rounds(bench.folder / uuid.uuid4().hex, bench.rounds(200, 20), SEED)
    note = f"{report.rounds} kills, {report.acknowledged} acknowledged, {report.stored} stored"
    yield Row("kill -9 of a busy store: acknowledged moves lost", report.lost, "", note).at_most(0)
    rest = report.doubled + report.gaps + report.damaged + report.unstable
    yield Row("kill -9 of a busy store: doubled, gaps, damaged, unstable", rest, "").at_most(0)


def program(bench: Bench) -> Iterator[Row]:
    """The real program, killed while it starts a run, streams, or runs a command."""
    home, told, chance = fresh_home(bench.folder), Told(), random.Random(SEED)
    rounds = bench.rounds(100, 8)
    with serving() as model:
        for number in range(rounds):
            try:
                _round(model, home, told, chance, number)
            except TimeoutError:
                told.starts_failed += 1
        with running(model, home, "--continue") as last:  # recovers the state of the last kill
            last.terminal.settle(1.0)
            left = len(set(tagged(RUN_TAG)) - {model.process.pid, *(each.pid for each in tree(last.pid))})
    yield from _judge(home, told, rounds, left)


def _round(model: Model, home: Path, told: Told, chance: random.Random, number: int) -> None:
    word = uuid.uuid4().hex[:12]
    continued = ("--continue",) if number else ()
    with running(model, home, *continued) as phoenix:
        if number % 2:
            told.commands.append(word)
            entered = phoenix.say(f"{word} [[bash:echo {word} >> {home}/ran; sleep 0.2]]")
        else:
            entered = phoenix.say(f"{word} [[md:400,400]]")
        phoenix.terminal.drain(chance.uniform(0.0, LONGEST))
        os.kill(phoenix.pid, signal.SIGKILL)
        phoenix.terminal.drain(0.05)
        if any(each.event == "asked" and each.at >= entered for each in model.heard):
            told.prompts.append(word)


def _judge(home: Path, told: Told, rounds: int, left: int) -> Iterator[Row]:
    note = f"{rounds} kills, {len(told.prompts)} had reached the model"
    with contextlib.closing(sqlite3.connect(home / "phoenix" / "phoenix.db")) as connection:
        texts = [row[0] for row in connection.execute("SELECT text FROM messages WHERE origin = 'human'")]
        sound = connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        open_runs = connection.execute("SELECT count(*) FROM runs WHERE status = 'running'").fetchone()[0]
        open_calls = connection.execute(
            "SELECT count(*) FROM tool_calls WHERE status IN ('queued', 'awaiting_approval', 'running')"
        ).fetchone()[0]
    found = [sum(word in text for text in texts) for word in told.prompts]
    ran = (home / "ran").read_text("utf-8").split() if (home / "ran").exists() else []
    yield Row("kill -9 of Phoenix: starts that failed afterwards", told.starts_failed, "", note).at_most(0)
    yield Row("kill -9 of Phoenix: prompts lost or doubled", sum(count != 1 for count in found), "").at_most(0)
    yield Row("kill -9 of Phoenix: commands run twice", len(ran) - len(set(ran)), "", f"{len(ran)} ran").at_most(0)
    yield Row("kill -9 of Phoenix: database damaged", not sound, "").at_most(0)
    yield Row("kill -9 of Phoenix: runs and calls left open after recovery", open_runs + open_calls, "").at_most(0)
    yield Row("kill -9 of Phoenix: processes left", left, "").at_most(0)
