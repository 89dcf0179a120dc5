"""Going back: looks at a folder of 20,000 files, what a tool waits for them, and copying a long conversation."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engine.machine.messages import NewMessage, Origin, Role, TextBlock
from engine.ports import AppendMessage
from engine.rewind.snapshots.folders import CheckpointFolders
from engine.rewind.turn_recorder import TurnRecorder
from engine.store import Store, StorePaths, open_store
from tests.benchmarks.bench import Bench
from tests.benchmarks.rows import Row, median, spread
from tests.support.engine import RandomIds
from tests.support.storage import move, new_conversation
from tools.clock import SystemClock

FILES: Final = 20_000
A_FOLDER: Final = 20
MESSAGES: Final = 50_000
A_MOVE: Final = 500
WORDS: Final = ("def ", "return ", "self", "import ", "value", "\n    ", "(", ")", " = ", "0", "the ", "of ")
FIRST_LOOK_MS: Final = 4_000.0
LATER_LOOK_MS: Final = 250.0
FORK_MS: Final = 3_400.0
"""Milliseconds of a fork when rows were copied in Python."""


def rewind(bench: Bench) -> Iterator[Row]:
    """Looks, the wait of a tool, and a fork."""
    yield from asyncio.run(_looks(bench))
    yield asyncio.run(_fork(bench))


async def _looks(bench: Bench) -> list[Row]:
    folder = bench.folder / "tree"
    megabytes = await asyncio.to_thread(_make_tree, folder) / 1e6
    folders = CheckpointFolders(bench.folder / "kept" / "contents.db")
    store = await open_store(StorePaths.under(bench.folder / "store"))
    recorder = TurnRecorder(folders, store.turn_log, SystemClock(), RandomIds())
    try:
        first = await _milliseconds(folders, folder)
        later = [await _milliseconds(folders, folder) for _ in range(bench.rounds(20, 5))]
        waits = [await _wait_of_a_tool(store, recorder, folder) for _ in range(bench.rounds(10, 3))]
        ahead = [await _wait_of_a_tool(store, recorder, folder, ahead=True) for _ in range(bench.rounds(10, 3))]
    finally:
        await recorder.close()
        await folders.close()
        await store.close()
    note = f"{FILES:,} files, {megabytes:.0f} MB"
    return [
        Row("rewind: first look at a folder", first, "ms", note).at_most(FIRST_LOOK_MS),
        Row("rewind: later look, p50", median(later), "ms", spread(later)).at_most(LATER_LOOK_MS),
        Row("rewind: what the first command of a turn waits, p50", median(waits), "ms", spread(waits)),
        Row("rewind: the same, written by a model in 0.5 s, p50", median(ahead), "ms", spread(ahead)).at_most(20.0),
    ]


async def _milliseconds(folders: CheckpointFolders, folder: Path) -> float:
    began = time.perf_counter()
    await folders.look(folder)
    return (time.perf_counter() - began) * 1000


async def _wait_of_a_tool(store: Store, recorder: TurnRecorder, folder: Path, *, ahead: bool = False) -> float:
    record = await store.create(new_conversation(cwd=str(folder)), 1.0)
    if ahead:
        recorder.command_drafted(record)
        await asyncio.sleep(0.5)
    began = time.perf_counter()
    await recorder.before_command(record)
    waited = (time.perf_counter() - began) * 1000
    recorder.run_ended(record)
    await recorder.settle(record.id)
    return waited


async def _fork(bench: Bench) -> Row:
    count = bench.rounds(MESSAGES, MESSAGES // 10)
    store = await open_store(StorePaths.under(bench.folder / "long"))
    try:
        source = (await store.create(new_conversation(), 1.0)).id
        for first in range(0, count, A_MOVE):
            await store.commit(move(source, *(_message(number) for number in range(first, first + A_MOVE))))
        began = time.perf_counter()
        await store.library.fork(source, "fork", 2.0, count - 1)
        took = (time.perf_counter() - began) * 1000
    finally:
        await store.close()
    return Row(f"rewind: fork of {count:,} messages", took, "ms", "holds the write lock").at_most(FORK_MS)


def _message(number: int) -> AppendMessage:
    role, origin = (Role.ASSISTANT, Origin.LLM) if number % 2 else (Role.USER, Origin.HUMAN)
    text = f"Message {number}: " + "what was found, and what follows from it. " * 6
    return AppendMessage(NewMessage(str(uuid.uuid4()), role, origin, (TextBlock(text),)), new_turn=number % 2 == 0)


def _make_tree(folder: Path) -> int:
    """Source-like files in nested folders; gives their bytes."""
    chance = random.Random(1)
    text = "".join(chance.choices(WORDS, k=200_000))
    total = 0
    for number in range(FILES // A_FOLDER):
        place = folder / f"package{number // 50}" / f"module{number}"
        place.mkdir(parents=True)
        for member in range(A_FOLDER):
            start, length = chance.randrange(len(text) // 2), chance.randrange(200, 9_000)
            total += (place / f"file{member}.py").write_text(f"{text[start : start + length]}{number} {member}")
    return total
