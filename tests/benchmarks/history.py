"""A conversation of 50,000 messages beside a short and an empty one."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from engine.codec import encode_blocks
from engine.machine.messages import TextBlock
from engine.store import StorePaths, open_store
from engine.store.messages import join_text
from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu, memory
from tests.benchmarks.keys import type_keys
from tests.benchmarks.program import Model, Program, fresh_home, running, serving
from tests.benchmarks.rows import Row, median, spread
from tests.benchmarks.samples import markdown
from tests.benchmarks.terminal import COLUMNS, ROWS
from tests.support.storage import move, new_conversation, say

LONG: Final = 50_000
SHORT: Final = 60
EMPTY: Final = 2
"""Length of a nearly empty conversation; one without any message is dropped when Phoenix quits."""
SLACK: Final = 1.25
"""Factor by which "as in an empty one" may differ by chance."""
KEYS: Final = {"PgUp": "\x1b[5~", "PgDn": "\x1b[6~", "End": "\x1b[1;5F", "Home": "\x1b[1;5H"}
CLAUDE_REOPEN: Final = 765.0
"""ms, claude, a conversation of only 1,002 messages: peer table "Long sessions"."""


MESSAGES: Final = {"empty": EMPTY, "short": SHORT, "long": LONG}


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation, alone in its home."""

    name: str
    home: Path
    id: str
    wanted: str
    """Text on its screen once it is open."""


@dataclass(slots=True)
class Figures:
    """Cost of one conversation; CPU milliseconds by action."""

    opens: list[float] = field(default_factory=list[float])
    actions: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    echo: float = 0.0
    rss: float = 0.0


def history(bench: Bench) -> Iterator[Row]:
    """Open each conversation several times; in the last, do what people do."""
    cases = [_make(fresh_home(bench.folder), name, count) for name, count in MESSAGES.items()]
    figures = {case.name: Figures() for case in cases}
    with serving() as model:
        for turn in range(bench.rounds(7, 3) + 1):
            for case in cases:
                opened = _open(model, case)
                if turn:
                    figures[case.name].opens.append(opened)
        for case in cases[1:]:
            _act(bench, model, case, figures[case.name])
    yield from _rows(figures["empty"], figures["short"], figures["long"])


def _rows(empty: Figures, short: Figures, long: Figures) -> Iterator[Row]:
    row = Row("50,000 messages: spawn -> last one on the screen", median(long.opens), "ms", spread(long.opens))
    yield row.beside("empty one", median(empty.opens)).at_most_times(1.2)
    yield row.beside("claude, 1,002 of them", CLAUDE_REOPEN)
    row = Row("50,000 messages: key echo, p50", long.echo, "ms")
    yield row.beside(f"{SHORT} messages", short.echo).at_most_times(SLACK)
    for action, costs in long.actions.items():
        row = Row(f"50,000 messages: CPU of {action}", median(costs), "ms", spread(costs))
        yield row.beside(f"{SHORT} messages", median(short.actions[action])).at_most_times(SLACK)
    yield Row("50,000 messages: RSS after all of it, more than short", long.rss - short.rss, "MB").at_most(20)


def _open(model: Model, case: Case) -> float:
    """Milliseconds; then quits, so that the next start finds no crash to recover from."""
    with running(model, case.home, "--resume", case.id, ready=False) as program:
        opened = program.terminal.wait(case.wanted) - program.terminal.spawned_at
        program.terminal.settle()
        program.terminal.write("\x11")
        program.terminal.wait_end()
        return opened * 1000


def _act(bench: Bench, model: Model, case: Case, figures: Figures) -> None:
    with running(model, case.home, "--resume", case.id) as program:
        program.terminal.settle(0.5)
        rounds = bench.rounds(15, 5)
        figures.echo = type_keys(program, bench.rounds(60, 15)).p50
        for pair in (("PgUp", "PgDn"), ("Home", "End")):
            for name in pair * rounds:
                cost = _cost(program, partial(program.terminal.write, KEYS[name]))
                figures.actions.setdefault(name, []).append(cost)
        sizes = [(200, 60), (COLUMNS, ROWS)] * max(2, rounds // 3)
        figures.actions["resize"] = [_cost(program, partial(program.terminal.resize, *size)) for size in sizes]
        themes = ["phoenix-light", "phoenix-dark"] * 2
        figures.actions["theme change"] = [_theme(program, name) for name in themes]
        figures.rss = memory(program.pid).rss


def _theme(program: Program, name: str) -> float:
    program.terminal.write(f"/theme {name}")
    program.terminal.settle(0.2)
    return _cost(program, partial(program.terminal.write, "\r"))


def _cost(program: Program, act: Callable[[], object]) -> float:
    """CPU milliseconds from an action until the program is quiet again."""
    before = cpu(program.pid)
    act()
    time.sleep(0.03)
    program.terminal.settle(0.12)
    return (cpu(program.pid) - before) * 1000


def _make(home: Path, name: str, count: int) -> Case:
    """A conversation of `count` messages, in turns of two; the last one ends in LASTWORD."""
    folder = home / "phoenix"
    (home / "work").mkdir(exist_ok=True)
    conversation_id = asyncio.run(_create(folder, home / "work"))
    with contextlib.closing(sqlite3.connect(folder / "phoenix.db")) as connection, connection:
        long_turns(connection, conversation_id, count)
    return Case(name, home, conversation_id, "LASTWORD" if count > EMPTY else "And what is next")


def long_turns(connection: sqlite3.Connection, conversation_id: str, count: int) -> None:
    """Make a conversation of two messages one of `count`."""
    connection.executemany(
        "INSERT INTO turns (id, conversation_id, turn_number, started_at) VALUES (?, ?, ?, ?)",
        ((f"{conversation_id}-{turn}", conversation_id, turn, 1.0) for turn in range(1, (count + 1) // 2)),
    )
    connection.executemany(
        """INSERT INTO messages (id, conversation_id, turn_id, seq, message_number, role, origin, content_json,
            text, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (_message(conversation_id, seq, count) for seq in range(3, count + 1)),
    )


async def _create(folder: Path, cwd: Path) -> str:
    store = await open_store(StorePaths.under(folder))
    conversation_id = (await store.create(new_conversation("", str(cwd)), time.time())).id
    await store.commit(move(conversation_id, say("Where do we stand?"), say("And what is next?")))
    await store.close()
    return conversation_id


def _message(conversation_id: str, seq: int, count: int) -> tuple[object, ...]:
    """Two a turn: a question, and three answers of four in Markdown."""
    asks = seq % 2 == 1
    text = f"Question {seq}: and the next one?" if asks else markdown(seq) if seq % 8 else f"Plain answer {seq}."
    if seq == count:
        text += "\n\nLASTWORD"
    blocks = (TextBlock(text),)
    return (
        str(uuid.uuid4()), conversation_id, f"{conversation_id}-{(seq - 1) // 2}", seq, (seq - 1) % 2,
        "user" if asks else "assistant", "human" if asks else "llm", encode_blocks(blocks), join_text(blocks), 1.0,
    )  # fmt: skip
