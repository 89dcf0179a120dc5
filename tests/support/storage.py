"""Makings of store tests and benchmarks: typical moves, whole dumps, and a writer that is killed again and again."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast
from uuid import uuid4

from msgspec.structs import replace

from engine.machine.effects import FinishRun, RunStatus, SaveToolCalls, StartRun
from engine.machine.messages import Block, NewMessage, Origin, Role, TextBlock, ToolCall, ToolUseBlock, Usage
from engine.machine.states import AwaitingLlm, Idle, Requesting, Run, State
from engine.ports import AppendMessage, ImportTerms, Move, RecordCall, Write
from engine.records import NewConversation
from engine.records.runs import CallPurpose, CallStatus, ModelCall
from engine.store import Store, StorePaths, open_store
from tools.contract import JsonObject, JsonValue

ROOT = Path(__file__).parents[2]
OUR_TERMS = ImportTerms(Path("/tmp"), "demo/guide")
"""Terms of a conversation that `new_conversation` makes."""


def new_id() -> str:
    """A fresh id."""
    return str(uuid4())


def new_conversation(title: str = "", cwd: str = "/tmp") -> NewConversation:
    """A conversation to be created."""
    return NewConversation(new_id(), Path(cwd), "demo/guide", title)


def say(text: str, *, new_turn: bool = False) -> AppendMessage:
    """Message of a user."""
    return AppendMessage(NewMessage(new_id(), Role.USER, Origin.HUMAN, (TextBlock(text),)), new_turn=new_turn)


def reply(*blocks: Block, run_id: str = "") -> AppendMessage:
    """Message of a model."""
    message = NewMessage(new_id(), Role.ASSISTANT, Origin.LLM, blocks)
    return AppendMessage(message, run_id=run_id, usage=Usage(100, 20), model="demo/guide", duration_ms=5)


def used(
    usage: Usage, cost_usd: float | None = 0.0, run_id: str = "", *, attempt: int = 0, at: float = 1000.0
) -> RecordCall:
    """A call of a model that ended well."""
    purpose, status = CallPurpose.REPLY, CallStatus.OK
    call = ModelCall(new_id(), purpose, status, "demo", "guide", usage, cost_usd=cost_usd, run_id=run_id)
    return RecordCall(replace(call, attempt=attempt, started_at=at, duration_ms=500))


def asking(run_id: str, gen: int = 1) -> AwaitingLlm:
    """The state while a model is asked."""
    return AwaitingLlm(gen, Run(run_id, 250), Requesting())


def move(conversation_id: str, *writes: Write, state: State | None = None, at: float = 1000.0) -> Move:
    """One step's transaction."""
    return Move(conversation_id, state or Idle(1), writes, at)


def asks_for_tools(run_id: str, *calls: ToolCall) -> tuple[AppendMessage, SaveToolCalls]:
    """An assistant message that wants these tools, and its calls."""
    message = reply(*(ToolUseBlock(call.id, call.name, call.input_json) for call in calls), run_id=run_id)
    return message, SaveToolCalls(message.message.id, calls)


def history(document: JsonObject) -> object:
    """Part of an export that an import takes, row by row: everything but settings, states and pending work."""
    tables = (document["tables"], *cast("list[JsonValue]", document["agents"]))
    left = {"conversations", "queued_messages", "inbox"}
    return document["files"], [
        {name: rows for name, rows in cast("JsonObject", each).items() if name not in left} for each in tables
    ]


async def start_run(store: Store, conversation_id: str, text: str = "Please look.") -> str:
    """Say something and open the run that answers it; gives the run's id."""
    run_id = new_id()
    said = say(text)
    await store.commit(move(conversation_id, said, StartRun(run_id, said.message.id), state=asking(run_id)))
    return run_id


def dump(database: Path) -> list[str]:
    """Every row of a database as SQL, in a fixed order; two equal dumps are two equal databases."""
    connection = sqlite3.connect(database)
    try:
        return sorted(connection.iterdump())
    finally:
        connection.close()


def query(database: Path, sql: str, *values: str | int | float | None) -> list[tuple[object, ...]]:
    """Rows as another program sees them, or a change as another program makes it."""
    connection = sqlite3.connect(database)
    try:
        rows = connection.execute(sql, values).fetchall()
        connection.commit()
    finally:
        connection.close()
    return rows


@dataclass(frozen=True, slots=True)
class CrashReport:
    """State after a series of killed writers; sound when all but the first three are zero."""

    rounds: int
    acknowledged: int
    stored: int
    lost: int
    doubled: int
    gaps: int
    damaged: int
    unstable: int
    """Rounds after which a second recovery changed something; every fifth is asked."""

    @property
    def sound(self) -> bool:
        """True when nothing is lost, doubled or damaged, and recovery came to rest."""
        return not (self.lost or self.doubled or self.gaps or self.damaged or self.unstable)


def crash_rounds(folder: Path, rounds: int, seed: int) -> CrashReport:
    """Kill a busy writer `rounds` times with SIGKILL at random points, recovering after each; about 0.15 s a round."""
    arguments = [sys.executable, "-m", "tests.support.storage", str(folder), str(rounds), str(seed)]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, check=True, timeout=30 + rounds * 2, text=True)
    return CrashReport(**json.loads(done.stdout))


def _run_rounds(folder: Path, rounds: int, seed: int) -> CrashReport:
    """Runs in a process without threads, so forking it is safe."""
    chance = random.Random(seed)
    paths = StorePaths.under(folder)
    acknowledged: list[str] = []
    damaged = unstable = 0
    for number in range(rounds):
        acknowledged += _killed_writer(paths, chance.uniform(0.01, 0.12))
        damaged += query(paths.database, "PRAGMA integrity_check") != [("ok",)] if paths.database.exists() else 0
        _recover_in_child(paths)
        if number % 5 == 0:
            once = dump(paths.database)
            _recover_in_child(paths)
            unstable += once != dump(paths.database)
    stored = [str(row[0]) for row in query(paths.database, "SELECT text FROM messages WHERE origin = 'human'")]
    gaps = query(
        paths.database,
        "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n, MAX(seq) AS top FROM messages GROUP BY conversation_id) "
        "WHERE n <> top",
    )
    return CrashReport(
        rounds,
        len(acknowledged),
        len(stored),
        len(set(acknowledged) - set(stored)),
        len(stored) - len(set(stored)),
        int(str(gaps[0][0])),
        damaged,
        unstable,
    )


def _killed_writer(paths: StorePaths, seconds: float) -> list[str]:
    """Fork a writer, kill it `seconds` after its first commit, give what it had acknowledged."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        asyncio.run(_write_for_ever(paths, writing))
    os.close(writing)
    with os.fdopen(reading, "r", encoding="ascii") as pipe:
        first = pipe.readline()
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        lines = [first, *pipe.readlines()]
    return [line.rstrip("\n") for line in lines if line.endswith("\n")]


async def _write_for_ever(paths: StorePaths, acknowledge: int) -> None:
    """Three busy conversations; each text goes to the pipe once its commit has returned."""
    store = await open_store(paths)

    async def busy() -> None:
        conversation_id = (await store.create(new_conversation(), time.time())).id
        while True:
            text = new_id()
            run_id = await start_run(store, conversation_id, text)
            os.write(acknowledge, f"{text}\n".encode())
            calls = asks_for_tools(run_id, ToolCall(new_id(), "bash", "{}"), ToolCall(new_id(), "bash", "{}"))
            await store.commit(move(conversation_id, *calls, state=asking(run_id)))
            await store.commit(move(conversation_id, FinishRun(run_id, RunStatus.SUCCESS, 1)))
            await store.release(conversation_id)
            await store.take(conversation_id)  # answers the calls that were left open

    await asyncio.gather(busy(), busy(), busy())


async def _recover(paths: StorePaths) -> None:
    store = await open_store(paths)
    await store.recover_all()
    await store.close()


def _recover_in_child(paths: StorePaths) -> None:
    """Recover in a child, so this process never has a thread."""
    pid = os.fork()
    if pid == 0:
        asyncio.run(_recover(paths))
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"The recovering process ended with {status}.")


if __name__ == "__main__":
    report = _run_rounds(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(json.dumps(asdict(report)))
