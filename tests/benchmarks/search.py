"""Search in a million messages: first results, finding in a conversation of 50,000, the index on disk and its price."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
import uuid
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final

from engine.search import parse_search
from engine.store import Store, StorePaths, open_store
from engine.store.library import Library
from engine.store.opening import open_for_writing
from tests.benchmarks.bench import Bench
from tests.benchmarks.commit import commit_milliseconds
from tests.benchmarks.rows import Row, percentile, spread

MESSAGES: Final = 1_000_000
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
    count = bench.rounds(MESSAGES, MESSAGES // 10)
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
