"""A library to walk through: 200 conversations in five folders, one of 50,000 messages; always the same."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.machine.effects import FinishRun, RunStatus, SaveToolResult, StartRun
from engine.machine.messages import Origin, TextBlock, ToolCall, ToolResult, ToolResultBlock, ToolStatus
from engine.ports import AppendMessage, Write
from engine.records import NewConversation
from engine.store import Store, StorePaths, open_store
from tests.benchmarks.history import long_turns
from tests.support.storage import asks_for_tools, move, new_id, reply, say

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
FOLDERS: Final = ("relay", "gateway", "ledger", "docs", "infra/terraform-modules")
SUBJECTS: Final = (
    "the retry loop never gives up", "webhooks arrive twice", "flaky test in test_backoff", "rotate the signing keys",
    "latency spike at 09:40", "move the queue to SQLite", "日本語のファイル名が壊れる",
    "a changelog for 2.4",
    "why is the container 1.2 GB", "types for the ledger module", "cron runs an hour late", "upgrade to Python 3.13",
    "rate limits per customer", "the docs build warns 214 times", "dead letters of last week",
    "🦆 rename duck to drake",
)  # fmt: skip
VERBS: Final = ("Find out", "Explain", "Fix", "Review", "Plan")
ANSWERS: Final = (
    "It is the order of the two locks: `flush` takes the inner one first.\n\n```python\nwith outer, inner:\n"
    "    flush()\n```\n\nTwo tests fail without it.",
    "Three places, all in `forward.py`:\n\n1. the body is read twice\n2. the header is lower-cased too late\n"
    "3. **nothing** closes the socket\n\n| place | line |\n|---|---:|\n| body | 41 |\n| header | 77 |",
    "Done. The test passes, and the other 214 still do.",
)
OUTPUT: Final = TextBlock("....F...\n1 failed, 7 passed in 0.31s\nE  assert 2048.0 <= 30.0\n")


def make_library(paths: StorePaths, root: Path, now: float, count: int = 200, long: int = 50_000) -> str:
    """Write it beside whatever is there; gives the id of the long conversation."""
    folders = [root / name for name in FOLDERS]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(_conversations(paths, folders, now, count))
    conversation_id = asyncio.run(_first_turn(paths, folders[0], now))
    with closing(sqlite3.connect(paths.database)) as connection, connection:
        long_turns(connection, conversation_id, long)
        # A year of it, the last message now.
        connection.execute(
            "UPDATE messages SET created_at = ? - (? - seq) * ? WHERE conversation_id = ?",
            (now, long, 365 * DAY / long, conversation_id),
        )
        connection.execute(
            "UPDATE turns SET started_at = ? - (? - turn_number) * ? WHERE conversation_id = ?",
            (now, long // 2, 2 * 365 * DAY / long, conversation_id),
        )
    return conversation_id


async def _conversations(paths: StorePaths, folders: list[Path], now: float, count: int) -> None:
    chance = random.Random(2026)
    store = await open_store(paths)
    try:
        for number in range(count - 1):
            # Most are of this week, some of last year.
            age = min(chance.expovariate(1 / (4 * DAY)), 400 * DAY) + number
            await _conversation(store, chance, folders[number % len(folders)], now - age)
    finally:
        await store.close()


async def _conversation(store: Store, chance: random.Random, folder: Path, at: float) -> None:
    subject = chance.choice(SUBJECTS)
    new = NewConversation(new_id(), folder, "anthropic/claude-sonnet-5-5", subject)
    await store.create(new, at)
    for turn in range(chance.randint(1, 6)):
        await _turn(store, new.id, chance, f"{chance.choice(VERBS)}: {subject}", at + turn * 60)


async def _turn(store: Store, conversation_id: str, chance: random.Random, prompt: str, at: float) -> None:
    run_id = new_id()
    said = say(prompt, new_turn=True)
    writes: list[Write] = [said, StartRun(run_id, said.message.id)]
    if chance.choice((True, True, False)):
        call = ToolCall(new_id(), "bash", json.dumps({"command": "python3 -m pytest -q tests/test_backoff.py"}))
        seen = replace(said.message, id=new_id(), origin=Origin.TOOL, blocks=(ToolResultBlock(call.id, (OUTPUT,)),))
        writes += asks_for_tools(run_id, call)
        writes += [SaveToolResult(ToolResult(call.id, OUTPUT.text, ToolStatus.SUCCESS))]
        writes += [AppendMessage(seen, run_id=run_id)]
    writes += [reply(TextBlock(chance.choice(ANSWERS)), run_id=run_id), FinishRun(run_id, RunStatus.SUCCESS, 2)]
    await store.commit(move(conversation_id, *writes, at=at))


async def _first_turn(paths: StorePaths, folder: Path, now: float) -> str:
    store = await open_store(paths)
    try:
        new = NewConversation(new_id(), folder, "anthropic/claude-sonnet-5-5", "a year of pair programming")
        await store.create(new, now)
        await store.commit(move(new.id, say("Where do we stand?"), say("And what is next?"), at=now))
        return new.id
    finally:
        await store.close()
