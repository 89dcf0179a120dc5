"""The store: a commit, kills at any time, what is recorded, and rewinding."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Final

from engine.conversation import Conversation
from engine.executor import writes
from engine.machine.messages import NewMessage, Origin, Role, TextBlock
from engine.ports import AppendMessage
from engine.rewind.snapshots.folders import CheckpointFolders
from engine.rewind.turn_recorder import TurnRecorder
from engine.store import Store, StorePaths, events, moves, open_store, runs
from engine.store.events import EventBatch
from tests.benchmarks.program import ROOT, RUN_TAG, Model, fresh_home, running, serving
from tests.benchmarks.rows import Bench, Row, cpu, median, spread, tagged, tree
from tests.support.engine import RandomIds, engine_harness
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text
from tests.support.storage import crash_rounds, move, new_conversation, say
from tools.clock import SystemClock

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


MOST: Final = 0.05
"""Share of the processor time of a turn on the screen that recording may cost."""
CONVERSATIONS: Final = 20
WARM: Final = 10
"""Pairs of runs before the first that counts."""
TEXT: Final = (Reply((Text("Done."),)),)
TOOL: Final = Reply((ScriptedCall("bash", '{"command": "ls"}'),))
_EVENTS: Final = ((writes, "events_of_save"), (writes, "events_of_step"))
_ROWS: Final[tuple[tuple[ModuleType | type, str], ...]] = (
    (events, "add_event"),
    (EventBatch, "add_message"),
    (runs, "add_call_span"),
    (moves, "add_tool_span"),
    (runs, "queue_run"),
    (moves, "queue_late_tool"),
    (runs, "queue_late_call"),
)


def recording(bench: Bench) -> Iterator[Row]:
    """Runs with and without records in turn, in the same conversations: medians of what each pair differs by."""
    turn = _turn_milliseconds(bench)
    for name, replies, rounds in (
        ("a text reply", TEXT, bench.rounds(400, 60)),
        ("two rounds of tools", (TOOL, TOOL, *TEXT), bench.rounds(150, 20)),
    ):
        pairs = asyncio.run(_pairs(bench.folder / f"recording-{len(replies)}", replies, rounds))
        without = median([plain for plain, _ in pairs])
        added = median([recorded - plain for plain, recorded in pairs])
        row = Row(f"recording: CPU of a run in the engine, {name}", without + added, "ms")
        yield row.beside("without events and spans", without)
        row = Row(f"recording: CPU that it adds, {name}", added, "ms", spread([one - plain for plain, one in pairs]))
        yield row.beside("turn with a text reply on the screen", turn).at_most_times(MOST)


def _turn_milliseconds(bench: Bench) -> float:
    """Processor time of Phoenix for one short turn, from Enter until the screen is quiet again."""
    costs: list[float] = []
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        for _ in range(bench.rounds(12, 6)):
            program.terminal.settle(0.3)
            before = cpu(program.pid)
            asked = program.asked(program.say("and now [[text:40,80]]"))
            program.terminal.wait(rf"ENDMARK-{asked.number}\b")
            program.terminal.settle(0.3)
            costs.append((cpu(program.pid) - before) * 1000)
    return median(costs[1:])


async def _pairs(folder: Path, replies: tuple[Reply, ...], rounds: int) -> list[tuple[float, float]]:
    provider = ScriptedProvider({"main": Script(replies * (2 * (rounds + WARM)))})
    pairs: list[tuple[float, float]] = []
    async with engine_harness(folder, provider=provider) as home:
        conversations = [await home.conversation() for _ in range(CONVERSATIONS)]
        for number in range(rounds + WARM):
            conversation, found = conversations[number % CONVERSATIONS], dict[bool, float]()
            for records in random.sample((True, False), 2):
                found[records] = await _milliseconds(conversation, records=records)
            pairs.append((found[False], found[True]))
    return pairs[WARM:]


async def _milliseconds(conversation: Conversation, *, records: bool) -> float:
    """Processor time of the whole process for one run."""
    with _everything() if records else _nothing_recorded():
        began = time.process_time()
        await conversation.say("go")
        await conversation.wait_idle()
        return (time.process_time() - began) * 1000


@contextmanager
def _everything() -> Generator[None]:
    yield


@contextmanager
def _nothing_recorded() -> Generator[None]:
    """Replace what makes and stores events and spans by functions that do nothing."""
    saved = [(owner, name, getattr(owner, name)) for owner, name in (*_EVENTS, *_ROWS)]
    replaced: list[tuple[ModuleType | type, str, Callable[..., object]]] = [
        *((owner, name, lambda *_: ()) for owner, name in _EVENTS),
        *((owner, name, lambda *_: None) for owner, name in _ROWS),
    ]
    try:
        for owner, name, nothing in replaced:
            setattr(owner, name, nothing)
        yield
    finally:
        for owner, name, original in saved:
            setattr(owner, name, original)


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
        first = await _rewind_milliseconds(folders, folder)
        later = [await _rewind_milliseconds(folders, folder) for _ in range(bench.rounds(20, 5))]
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


async def _rewind_milliseconds(folders: CheckpointFolders, folder: Path) -> float:
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
