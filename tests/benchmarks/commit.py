"""Cost of one committed move: time, and calls that force the disk."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from engine.store import StorePaths, open_store
from tests.benchmarks.bench import Bench
from tests.benchmarks.program import ROOT
from tests.benchmarks.rows import Row, median, spread
from tests.support.storage import move, new_conversation, say

SYNCS_ALLOWED: Final = {"wal": 2, "delete": 4}
MOVES: Final = 20


def commit(bench: Bench) -> Iterator[Row]:
    """A move with one message, beside a bare fsync of the same disk."""
    times = commit_milliseconds(bench, bench.rounds(200, 40))
    sync = median(_sync_milliseconds(bench.folder, bench.rounds(100, 30)))
    yield Row("store: commit of one move, p50", median(times), "ms", spread(times)).beside("one fsync", sync)
    if shutil.which("strace") is None:
        yield Row("store: fsyncs of one move", float("nan"), "", "needs strace, which is not installed")
        return
    mode, syncs = _syncs(bench)
    row = Row(f"store: fsyncs of one move, journal {mode}", syncs, "", f"SQLite {sqlite3.sqlite_version}")
    yield row.at_most(SYNCS_ALLOWED[mode])


def commit_milliseconds(
    bench: Bench, count: int, prepare: Callable[[Path], None] | None = None, text: str = "message"
) -> list[float]:
    """The time of each of `count` commits of a `text` in a store of its own; `prepare` may change its file before."""
    return asyncio.run(_commits(bench.folder / uuid.uuid4().hex, count, prepare, text))


async def _commits(
    folder: Path, count: int, prepare: Callable[[Path], None] | None = None, text: str = "message"
) -> list[float]:
    store = await open_store(StorePaths.under(folder))
    if prepare is not None:
        prepare(store.path)
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    times: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        await store.commit(move(conversation_id, say(f"{text} {number}")))
        times.append((time.perf_counter() - began) * 1000)
    await store.close()
    return times


def _sync_milliseconds(folder: Path, count: int) -> list[float]:
    times: list[float] = []
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(count):
            file.write(b"x" * 4096)
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    return times


def _syncs(bench: Bench) -> tuple[str, float]:
    """The journal mode, and fsync and fdatasync calls per move by strace: twice the moves less once the moves."""
    folder = bench.folder / uuid.uuid4().hex
    few, many = (_traced(folder / str(count), count) for count in (MOVES, 2 * MOVES))
    mode = sqlite3.connect(folder / str(MOVES) / "phoenix.db").execute("PRAGMA journal_mode").fetchone()[0]
    return mode, (many - few) / MOVES


def _traced(folder: Path, count: int) -> int:
    folder.mkdir(parents=True)
    log = folder / "strace"
    tracer = ["strace", "-f", "-o", str(log), "-e", "trace=fsync,fdatasync"]
    argv = [sys.executable, "-m", "tests.benchmarks.commit", str(folder), str(count)]
    subprocess.run(tracer + argv, cwd=ROOT, check=True, timeout=60)
    return len(re.findall(r"\bf(?:data)?sync\(", log.read_text("utf-8")))


if __name__ == "__main__":
    asyncio.run(_commits(Path(sys.argv[1]), int(sys.argv[2])))
