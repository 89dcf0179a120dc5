"""`phoenix events`: stored events and those to come, as a real process, until a signal or the end of its reader."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.store import StorePaths, open_store
from phoenix_tui.wiring.installation import SLICE, remove_now
from tests.support.cli import Phoenix, ended, phoenix_in
from tests.support.event_lines import rows_of
from tests.support.storage import move, new_conversation, say

FIELDS = {"seq", "eventId", "type", "timestamp", "conversationId", "messageId", "taskId", "agentId", "payload"}
RUN = (
    "message.persisted",
    "task:started",
    "task:progress",
    "state.changed",
    "message.persisted",
    "task:completed",
    "context.usage",
    "state.changed",
)


def types(lines: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(line["type"] for line in lines)


async def read(process: asyncio.subprocess.Process, count: int) -> list[dict[str, Any]]:
    """The next lines of a process that goes on."""
    assert process.stdout is not None
    return [json.loads(await process.stdout.readline()) for _ in range(count)]


def database_of(phoenix: Phoenix) -> Path:
    return next(phoenix.home.rglob("phoenix.db"))


async def test_stored_events_are_objects_a_line_and_lines_for_people(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    ran = (await phoenix.run("-p", "hello", "-n", "First", "--output-format", "json")).json
    await phoenix.run("-p", "hello", "-n", "Second")
    told = (await phoenix.run("events", "--json")).lines
    assert types(told) == RUN * 2
    assert all(set(line) == FIELDS for line in told)
    assert [line["seq"] for line in told] == list(range(1, 17))
    one = (await phoenix.run("events", "--json", "--conversation", "First")).lines
    assert one == told[:8]
    assert {(line["conversationId"], line["taskId"]) for line in one} == {(ran["session_id"], ran["task_id"])}
    assert (await phoenix.run("events", "--json", "--since", "14")).lines == told[14:]
    shown = (await phoenix.run("events", "--since", "6")).out.splitlines()
    assert len(shown) == 10
    assert shown[1].split()[4:] == ["state.changed", "awaiting_llm", ">", "idle"]
    missing = await phoenix.run("events", "--conversation", "nothing")
    assert (missing.code, missing.out) == (2, "")


@pytest.mark.parametrize("given", ["-1", "x", "9" * 30, ""])
async def test_a_number_that_is_none_is_refused(tmp_path: Path, given: str) -> None:
    refused = await phoenix_in(tmp_path).run("events", f"--since={given}")
    assert refused.code == 2
    assert f"'{given}' is not a whole number of at least 0" in refused.err


async def test_a_follower_begins_with_a_snapshot_sees_runs_of_others_and_ends_on_a_signal(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    await phoenix.run("-p", "hello")
    following = await phoenix.start("events", "--follow", "--json")
    assert await read(following, 1) == [{"seq": 8, "type": "snapshot", "conversations": []}]
    await phoenix.run("-p", "hello again")
    told = await read(following, 8)
    assert types(told) == RUN
    assert [line["seq"] for line in told] == list(range(9, 17))
    following.send_signal(signal.SIGINT)
    rest = await ended(following)
    assert (rest.code, rest.out, rest.err) == (0, "", "")
    resumed = await phoenix.start("events", "--follow", "--json", "--since", "14")
    assert [line["seq"] for line in await read(resumed, 2)] == [15, 16]
    resumed.send_signal(signal.SIGTERM)
    assert (await ended(resumed)).code == 0


@pytest.mark.parametrize("more", [True, False])
async def test_a_follower_ends_when_its_reader_is_gone(tmp_path: Path, more: bool) -> None:
    """Also without another event that it could fail to print."""
    phoenix = phoenix_in(tmp_path)
    await phoenix.run("-p", "hello")
    shell = await asyncio.create_subprocess_exec(
        *("bash", "-c", f"{sys.executable} -m phoenix_tui events --follow --since 0 | head -n 1 > first"),
        cwd=phoenix.cwd,
        env=phoenix.environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    if more:
        await phoenix.run("-p", "hello again")
    ran = await ended(shell)
    assert (ran.out, ran.err) == ("", "")
    assert "message.persisted" in (phoenix.cwd / "first").read_text()


async def test_many_events_are_printed_without_being_held_and_hostile_text_is_shown(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    await phoenix.run("-p", "hello")
    with closing(sqlite3.connect(database_of(phoenix))) as connection:
        hostile = json.dumps({"message": "\x1b]0;title\x07\x1b[2J" + "x" * 400})
        connection.executemany(
            "INSERT INTO events (id, conversation_id, type, payload_json, ts) VALUES (?, 'c', ?, ?, 1.0)",
            [("e", "task:\x1b[31mfuture", hostile if number else "no json") for number in range(20_000)],
        )
        connection.commit()
    shown = await phoenix.run("events")
    assert len(shown.out.splitlines()) == 20_008
    assert "\x1b" not in shown.out
    assert max(map(len, shown.out.splitlines())) < 400
    told = (await phoenix.run("events", "--json", "--since", "8")).lines
    assert told[0]["payload"] == {"unreadable": "no json"}
    assert "\x1b" not in (await phoenix.run("events", "--json", "--since", "20006")).out


async def test_old_events_go_in_slices_and_zero_days_keep_all(tmp_path: Path) -> None:
    store = await open_store(StorePaths.under(tmp_path / "data"))
    try:
        conversation_id = (await store.create(new_conversation(), 1.0)).id
        month = 31 * 86_400
        for number in range(SLICE + 3):
            await store.commit(move(conversation_id, say("old"), at=time.time() - month - number))
        await store.commit(move(conversation_id, say("new"), at=time.time()))
        assert await remove_now(store.events, 0) == 0
        assert await remove_now(store.events, 30, most=1) == SLICE
        assert await remove_now(store.events, 30) == 3
        assert [row["seq"] for row in rows_of(store.path)] == [SLICE + 4]
        assert len(await store.messages(conversation_id)) == SLICE + 4
    finally:
        await store.close()


async def test_scripts_alone_remove_old_events_too(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    await phoenix.run("-p", "hello")
    with closing(sqlite3.connect(database_of(phoenix))) as connection:
        connection.execute("UPDATE events SET ts = ts - 40 * 86400")
        connection.commit()
    kept = phoenix_in(tmp_path, PHOENIX_EVENT_RETENTION_DAYS="0")
    await kept.run("-p", "hello again")
    assert [row["seq"] for row in rows_of(database_of(phoenix))] == list(range(1, 17))
    await phoenix.run("-p", "hello")
    assert [row["seq"] for row in rows_of(database_of(phoenix))] == list(range(9, 25))
