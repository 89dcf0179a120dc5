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
from engine.store.messages import plain_text
from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu, memory
from tests.benchmarks.keys import type_keys
from tests.benchmarks.program import READY, Model, Program, fresh_home, running, serving
from tests.benchmarks.rows import Row, median, spread
from tests.benchmarks.samples import markdown
from tests.benchmarks.terminal import COLUMNS, ROWS
from tests.support.storage import move, new_conversation, say

LONG: Final = 50_000
SHORT: Final = 60
SLACK: Final = 1.25
"""How much "as in an empty one" may differ by chance."""
KEYS: Final = {"PgUp": "\x1b[5~", "PgDn": "\x1b[6~", "End": "\x1b[1;5F", "Home": "\x1b[1;5H"}
CLAUDE_REOPEN: Final = 765.0
"""ms, claude, a conversation of only 1,002 messages: peer table "Long sessions"."""


@dataclass(slots=True)
class Figures:
    """What one conversation cost; CPU milliseconds by action."""

    opens: list[float] = field(default_factory=list[float])
    actions: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    echo: float = 0.0
    rss: float = 0.0


def history(bench: Bench) -> Iterator[Row]:
    """Open each conversation several times; in the last, do what people do."""
    home = fresh_home(bench.folder)
    ids = {name: _make(home, count) for name, count in (("empty", 0), ("short", SHORT), ("long", LONG))}
    figures = {name: Figures() for name in ids}
    with serving() as model:
        for turn in range(bench.rounds(7, 3) + 1):
            for name, conversation_id in ids.items():
                opened = _open(model, home, conversation_id, name)
                if turn:
                    figures[name].opens.append(opened)
        for name in ("short", "long"):
            _act(bench, model, home, ids[name], figures[name])
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


def _open(model: Model, home: Path, conversation_id: str, name: str) -> float:
    with running(model, home, "--resume", conversation_id, ready=False) as program:
        wanted = READY if name == "empty" else "LASTWORD"
        return (program.terminal.wait(wanted) - program.terminal.spawned_at) * 1000


def _act(bench: Bench, model: Model, home: Path, conversation_id: str, figures: Figures) -> None:
    with running(model, home, "--resume", conversation_id) as program:
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


def _make(home: Path, count: int) -> str:
    """A conversation of `count` messages, in turns of two; the last one ends in LASTWORD."""
    folder = home / "phoenix"
    (home / "work").mkdir(exist_ok=True)
    conversation_id = asyncio.run(_create(folder, home / "work", first=count > 0))
    with contextlib.closing(sqlite3.connect(folder / "phoenix.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO turns (id, conversation_id, turn_number, started_at) VALUES (?, ?, ?, ?)",
            ((f"{conversation_id}-{turn}", conversation_id, turn, 1.0) for turn in range(1, (count + 1) // 2)),
        )
        connection.executemany(
            """INSERT INTO messages (id, conversation_id, turn_id, seq, message_number, role, origin, content_json,
                text, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (_message(conversation_id, seq, count) for seq in range(3, count + 1)),
        )
    return conversation_id


async def _create(folder: Path, cwd: Path, *, first: bool) -> str:
    store = await open_store(StorePaths.under(folder))
    conversation_id = (await store.create(new_conversation("", str(cwd)), time.time())).id
    if first:
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
        "user" if asks else "assistant", "human" if asks else "llm", encode_blocks(blocks), plain_text(blocks), 1.0,
    )  # fmt: skip
