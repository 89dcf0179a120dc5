"""Conversations of thousands of messages, and searches through all of them."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Final

from engine.codec import encode_blocks
from engine.machine.messages import TextBlock
from engine.search import parse_search
from engine.store import Store, StorePaths, open_store
from engine.store.library import Library
from engine.store.messages import join_text
from engine.store.opening import open_for_writing
from tests.benchmarks.commit import commit_milliseconds
from tests.benchmarks.machine import markdown
from tests.benchmarks.program import Model, Program, fresh_home, running, serving
from tests.benchmarks.rows import Bench, Row, cpu, median, memory, percentile, spread
from tests.benchmarks.terminal import COLUMNS, ROWS
from tests.benchmarks.turns import type_keys
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


SEARCHED: Final = 1_000_000
LONGEST: Final = 50_000
"""Messages of the longest conversation; the others have `USUAL`."""
FIRST_RESULTS_MS: Final = 200.0
USUAL: Final = 500
BATCH: Final = 5_000
BEGAN: Final = 1_704_067_200.0
"""The first message: New Year of 2024; the last is two years later."""
YEARS: Final = 2 * 365 * 86_400.0
SYLLABLES: Final = (
    "ka",
    "lo",
    "mi",
    "ter",
    "ron",
    "pre",
    "ing",
    "tion",
    "con",
    "ver",
    "sta",
    "the",
    "an",
    "de",
    "qu",
    "zo",
    "ous",
)
QUERIES: Final = (
    ("very common word", "the"),
    ("two common words", "file error"),
    ("rare word", "zebrafinch"),
    ("phrase", '"error in the"'),
    ("common word, rare folder", "error in:/work/project7"),
    ("common word without another", "test -error"),
    ("common word, an old week", "file before:2024-01-08"),
    ("one letter", "q"),
    ("nothing", "xyzzyplugh"),
)


def search(bench: Bench) -> Iterator[Row]:
    """First results over everything, beside what the index costs."""
    folder = bench.folder / uuid.uuid4().hex
    count = bench.rounds(SEARCHED, SEARCHED // 10)
    characters = _fill(StorePaths.under(folder), count)
    before = (folder / "phoenix.db").stat().st_size
    yield from asyncio.run(_measure(folder, count, bench.rounds(25, 8)))
    size = (folder / "phoenix.db").stat().st_size - before
    note = f"{size / characters:.2f} x the {characters / 1e6:,.0f} MB of text"
    yield Row("search: index on disk", size / 1e6, "MB", note)
    text = _Writer().text(1_000)
    times = commit_milliseconds(bench, bench.rounds(400, 80), text=text)
    bare = commit_milliseconds(bench, bench.rounds(400, 80), prepare=_without_index, text=text)
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        row = Row(
            f"search: commit of 1,000 characters with the index, {name}", percentile(times, share), "ms", spread(times)
        )
        yield row.beside("without", percentile(bare, share))


async def _measure(folder: Path, count: int, rounds: int) -> Iterator[Row]:
    store = await open_store(StorePaths.under(folder))
    rows = [await _backlog(store.library)]
    for name, text in QUERIES:
        times = await _timed(store.library, text, rounds)
        row = Row(f"search: {count:,} messages, {name}, p99", percentile(times, 0.99), "ms", spread(times))
        rows.append(row.at_most(FIRST_RESULTS_MS))
    rows.append(await _find(store, rounds))
    await store.close()
    return iter(rows)


def _without_index(path: Path) -> None:
    """A store that nothing indexes."""
    connection = sqlite3.connect(path)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        if name.startswith("search_"):
            connection.execute(f"DROP TRIGGER {name}")
    connection.commit()
    connection.close()


async def _backlog(library: Library) -> Row:
    """Index everything that is older than the index; what a move may have to wait for is the longest slice."""
    slices: list[float] = []
    began = time.perf_counter()
    while True:
        start = time.perf_counter()
        progress = await library.index_older()
        slices.append((time.perf_counter() - start) * 1000)
        if progress.done >= progress.total:
            break
    seconds = time.perf_counter() - began
    note = f"{progress.total / seconds:,.0f} messages a second, whole: {seconds:.0f} s"
    return Row("search: indexing older messages, one slice, p99", percentile(slices, 0.99), "ms", note)


async def _timed(library: Library, text: str, rounds: int) -> list[float]:
    question = parse_search(text, cwd=Path("/"))
    times: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        await library.search(question)
        times.append((time.perf_counter() - began) * 1000)
    return times


async def _find(store: Store, rounds: int) -> Row:
    times: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        await store.library.find("c0", "error in")
        times.append((time.perf_counter() - began) * 1000)
    return Row(f"search: find in {LONGEST:,} messages, p99", percentile(times, 0.99), "ms", spread(times))


def _fill(paths: StorePaths, count: int) -> int:
    """A file as it was before the index, made by SQL; gives the characters of its texts."""
    open_for_writing(paths).close()
    connection = sqlite3.connect(paths.database)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'search_%'")
    indexing = dict(triggers.fetchall())
    connection.executescript(";".join(f"DROP TRIGGER {name}" for name in indexing))
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA foreign_keys = OFF")
    writer, size = _Writer(), 0
    others = 1 + (count - LONGEST) // USUAL
    connection.executemany(
        _CONVERSATION, [(f"c{one}", f"Talk {one}", f"/work/project{one % 50}") for one in range(others)]
    )
    connection.executemany(_TURN, [(f"c{one}", f"c{one}") for one in range(others)])
    for first in range(0, count, BATCH):
        messages = [writer.message(number, count) for number in range(first, min(first + BATCH, count))]
        calls = [writer.call(message) for message in messages[1::4]]
        connection.executemany(_MESSAGE, messages)
        connection.executemany(_CALL, calls)
        size += sum(len(message[5]) for message in messages) + sum(len(call[3]) for call in calls)
    connection.execute("UPDATE search_backlog SET below = ?, total = ?", (count + 1, count))
    for trigger in indexing.values():
        connection.execute(trigger)
    connection.commit()
    connection.close()
    return size


_CONVERSATION: Final = """INSERT INTO conversations (id, title, cwd, model, state, state_json, gen, created_at,
    updated_at) VALUES (?, ?, ?, 'demo/guide', 'idle', '{"type":"Idle","gen":0}', 0, 1, 1)"""
_TURN: Final = "INSERT INTO turns (id, conversation_id, turn_number, started_at) VALUES (?, ?, 0, 1)"
_MESSAGE: Final = """INSERT INTO messages (id, conversation_id, turn_id, seq, role, text, created_at, message_number,
    origin, content_json) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 'llm', '[]')"""
_CALL: Final = """INSERT INTO tool_calls (id, conversation_id, assistant_message_id, output_text, ended_at, tool_use_id,
    ordinal, name, input_json, status) VALUES (?, ?, ?, ?, ?, ?, 0, 'bash', '{"command":"make test"}', 'success')"""


class _Writer:
    """Messages of a made-up language whose words are as uneven as those of a real one; the same ones every time."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        made = ["".join(self._random.choices(SYLLABLES, k=self._random.randint(2, 4))) for _ in range(30_000)]
        self._words = ["the", "a", "in", "and", "to", "file", "error", "test", *made]
        weights = list(accumulate(1 / (rank + 1) for rank in range(len(self._words))))
        self._sentences = [
            " ".join(self._random.choices(self._words, cum_weights=weights, k=self._random.randint(4, 14)))
            for _ in range(50_000)
        ]

    def message(self, number: int, count: int) -> tuple[str, str, str, int, str, str, float]:
        """The n-th of `count` messages; the first conversation holds the newest `LONGEST` of them."""
        start = count - LONGEST
        inside = number - start
        place, seq = (0, inside + 1) if inside >= 0 else (1 + number // USUAL, number % USUAL + 1)
        text = self._text(2 if number % 5 == 0 else 6)
        if number % (count // 3) == 5:
            text += " zebrafinch"
        role = "user" if number % 5 == 0 else "assistant"
        identity = f"{self._random.getrandbits(128):032x}"
        return identity, f"c{place}", f"c{place}", seq, role, text, BEGAN + number * YEARS / count

    def call(self, message: tuple[str, str, str, int, str, str, float]) -> tuple[str, str, str, str, float, str]:
        """Text of a tool result in one of them."""
        identity, conversation, _, seq, _, _, at = message
        return f"{identity}/0", conversation, identity, self._text(12), at, f"call-{seq}"

    def text(self, least: int) -> str:
        """At least `least` characters of text."""
        text = ""
        while len(text) < least:
            text += self._text(12) + "\n"
        return text

    def _text(self, most: int) -> str:
        return ".\n".join(self._random.choices(self._sentences, k=self._random.randint(1, 2 * most)))
