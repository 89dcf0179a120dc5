"""`phoenix runs`, `events` and `trace`: real processes that find, wait for, cancel and read each other's runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engine.store import StorePaths, open_store
from phoenix_tui.wiring.installation import SLICE, remove_now
from tests.support.cli import Phoenix, ended, phoenix_in, with_claude
from tests.support.event_lines import rows_of
from tests.support.journeys import calls, says
from tests.support.loopback import Answer, serve
from tests.support.loopback_agents import by_last_message, never_ends, spawns
from tests.support.storage import move, new_conversation, query, say
from tests.support.waiting import poll

SLEEPS = {"go": calls("bash", command="touch begun; exec sleep 600")}
HANGS = {"go": never_ends}


@dataclass(frozen=True, slots=True)
class Working:
    """A `phoenix -p` at work, by the ids that its caller gave."""

    phoenix: Phoenix
    process: asyncio.subprocess.Process
    run_id: str
    session_id: str

    @property
    def database(self) -> Path:
        """Database of its installation."""
        return database_of(self.phoenix)


def database_of(phoenix: Phoenix) -> Path:
    return next(phoenix.home.rglob("phoenix.db"))


def rows(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


@asynccontextmanager
async def working(folder: Path, answers: Mapping[str, Answer], *arguments: str) -> AsyncGenerator[Working]:
    """A run that goes on until it is cancelled or its process ends."""
    async with serve(by_last_message(dict(answers))) as server:
        phoenix = with_claude(folder, server.url)
        run_id, session_id = str(uuid4()), str(uuid4())
        ids = ("--run-id", run_id, "--session-id", session_id)
        process = await phoenix.start("-p", "--permission-mode", "auto", *ids, *arguments, "go")
        await poll(lambda: _is_running(phoenix, run_id))
        try:
            yield Working(phoenix, process, run_id, session_id)
        finally:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            await process.communicate()


def _is_running(phoenix: Phoenix, run_id: str) -> bool:
    found = list(phoenix.home.rglob("phoenix.db"))
    if not found:
        return False
    with suppress(sqlite3.Error):
        return rows(found[0], f"SELECT 1 FROM runs WHERE id = '{run_id}' AND status = 'running'") != []
    return False


async def test_ids_that_a_caller_gives_name_conversation_and_run(tmp_path: Path) -> None:
    phoenix, run_id, session_id = phoenix_in(tmp_path), str(uuid4()), str(uuid4())
    ids = ("--run-id", run_id, "--session-id", session_id)
    ran = await phoenix.run("-p", *ids, "--output-format", "json", "hello")
    assert (ran.json["session_id"], ran.json["task_id"]) == (session_id, run_id)
    shown = (await phoenix.run("runs", "show", run_id[:8], "--json")).json
    assert (shown["task_id"], shown["session_id"], shown["status"]) == (run_id, session_id, "success")
    assert (shown["prompt"], shown["owner_pid"], shown["num_turns"]) == ("hello", None, 1)
    assert shown["output"]
    assert ran.json["result"].startswith(shown["output"])
    assert rows(database_of(phoenix), "SELECT output FROM runs") == [(shown["output"],)]
    assert shown["context"] == {"working_directory": str(phoenix.cwd), "model": "demo/guide"}
    taken = await phoenix.run("-p", "--run-id", run_id, "hello")
    assert (taken.code, taken.err) == (2, f"phoenix: There is already a run {run_id}; give another id.\n")
    taken = await phoenix.run("-p", "--session-id", session_id, "hello")
    assert (taken.code, taken.err) == (
        2,
        f"phoenix: There is already a conversation {session_id}; continue it with -r, or give another id.\n",
    )
    assert len(rows(database_of(phoenix), "SELECT 1 FROM runs")) == 1


@pytest.mark.parametrize("given", ["", "3f2b8c1e9a474d0b8c551e6f0a7d2b94", "../../etc/passwd", "\x1b[31m" + "a" * 32])
async def test_an_id_that_is_no_uuid_is_refused_in_a_sentence(tmp_path: Path, given: str) -> None:
    refused = await phoenix_in(tmp_path).run("-p", "--run-id", given, "hello")
    assert refused.code == 2
    assert "is not a UUID such as 3f2b8c1e-9a47-4d0b-8c55-1e6f0a7d2b94" in refused.err
    assert "\x1b" not in refused.err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--run-id", str(uuid4()), "hi"), "--run-id works with -p; add -p."),
        (("--session-id", str(uuid4()), "hi"), "--session-id works with -p; add -p."),
        (("-p", "-c", "--session-id", str(uuid4()), "hi"), "--session-id is for a new conversation; leave it out"),
    ],
)
async def test_ids_where_they_mean_nothing_are_refused(tmp_path: Path, given: tuple[str, ...], sentence: str) -> None:
    refused = await phoenix_in(tmp_path).run(*given)
    assert refused.code == 2
    assert sentence in refused.err


@pytest.mark.parametrize("answers", [SLEEPS, HANGS], ids=["tool", "model"])
async def test_another_process_cancels_a_run_as_esc_does(tmp_path: Path, answers: Mapping[str, Answer]) -> None:
    async with working(tmp_path, answers) as run:
        if answers is SLEEPS:
            await poll((run.phoenix.cwd / "begun").exists)
        waiting = asyncio.ensure_future(run.phoenix.run("runs", "wait", run.run_id))
        cancelled = await run.phoenix.run("runs", "cancel", run.run_id[:8])
        assert (cancelled.code, cancelled.out) == (0, f"Run {run.run_id[:8]}: cancelled\n")
        stopped = await ended(run.process)
        assert (stopped.code, stopped.err.splitlines()[-1]) == (130, "phoenix: Another process cancelled the run.")
        assert (await waiting).code == 130
        [end] = [row for row in rows_of(run.database) if row["type"] == "task:cancelled"]
        assert (end["run_id"], end["payload"]["agentId"]) == (run.run_id, "system")
        assert rows(run.database, "SELECT * FROM cancel_requests") == []
        again = await run.phoenix.run("runs", "cancel", run.run_id)
        assert (again.code, again.err) == (1, f"phoenix: Run {run.run_id[:8]} has already ended (cancelled).\n")


async def test_a_sub_agent_is_cancelled_by_its_own_id_and_its_parent_goes_on(tmp_path: Path) -> None:
    answers = {"Sub-agent results": says("One is back."), "TASK one": never_ends, "go": spawns("TASK one")}
    async with working(tmp_path, answers) as run:
        statement = "SELECT id FROM conversations WHERE parent_id IS NOT NULL AND state = 'awaiting_llm'"
        await poll(lambda: rows(run.database, statement))
        [(agent_id,)] = rows(run.database, statement)
        cancelled = await run.phoenix.run("runs", "cancel", agent_id, "--json")
        assert (cancelled.code, cancelled.json["status"]) == (0, "cancelled")
        assert cancelled.json["parent_session_id"] == run.session_id
        done = await ended(run.process)
        assert (done.code, done.out) == (0, "One is back.\n")


async def test_a_sub_agent_that_has_not_begun_leaves_its_queue(tmp_path: Path) -> None:
    answers = {"Sub-agent results": says("Back."), "TASK one": never_ends, "TASK two": never_ends,
        "go": spawns("TASK one", "TASK two")}  # fmt: skip
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("max_agents = 1\n")
    async with working(tmp_path, answers) as run:
        agents = "SELECT c.id FROM conversations AS c WHERE c.parent_id IS NOT NULL"
        begun = f"{agents} AND EXISTS (SELECT 1 FROM runs WHERE conversation_id = c.id)"
        queued = f"{agents} AND NOT EXISTS (SELECT 1 FROM runs WHERE conversation_id = c.id)"
        await poll(lambda: rows(run.database, begun) and rows(run.database, queued))
        [(waiting,)], [(working_one,)] = rows(run.database, queued), rows(run.database, begun)
        shown = await run.phoenix.run("runs", "show", waiting, "--json")
        assert (shown.json["status"], shown.json["task_id"]) == ("queued", None)
        cancelled = await run.phoenix.run("runs", "cancel", waiting)
        assert (cancelled.code, cancelled.out) == (0, f"Sub-agent {waiting[:8]}: cancelled\n")
        assert (await run.phoenix.run("runs", "cancel", working_one)).code == 0
        assert (await ended(run.process)).out == "Back.\n"


async def test_a_run_whose_process_is_killed_ends_for_those_who_wait_or_cancel(tmp_path: Path) -> None:
    async with working(tmp_path, HANGS) as run:
        waiting = await run.phoenix.start("runs", "wait", run.run_id)
        run.process.kill()
        await run.process.wait()
        done = await ended(waiting)
        assert (done.code, done.out) == (1, f"Run {run.run_id[:8]}: interrupted\n")
        failed = [row["payload"]["code"] for row in rows_of(run.database) if row["type"] == "task:failed"]
        assert failed == ["interrupted"]


async def test_no_run_of_a_dead_process_is_called_running(tmp_path: Path) -> None:
    async with working(tmp_path, HANGS) as run:
        run.process.kill()
        await run.process.wait()
        (listed,) = (await run.phoenix.run("runs", "list", "--json")).json
        shown = (await run.phoenix.run("runs", "show", run.run_id, "--json")).json
        trace = (await run.phoenix.run("trace", run.run_id, "--json")).json
        assert (listed["status"], shown["status"], trace["status"]) == ("interrupted",) * 3
        assert "running" not in json.dumps(trace["spans"])


async def test_cancelling_a_run_of_a_dead_process_brings_it_to_its_end(tmp_path: Path) -> None:
    async with working(tmp_path, HANGS) as run:
        run.process.kill()
        await run.process.wait()
        done = await run.phoenix.run("runs", "cancel", run.run_id)
        assert (done.code, done.out) == (0, f"Run {run.run_id[:8]}: interrupted\n")
        assert rows(run.database, "SELECT * FROM cancel_requests") == []


def stopped_at_rest(pid: int, database: Path) -> bool:
    """Stop a process; False, and it continues, where that came in the middle of a write, which locks all others out."""
    os.kill(pid, signal.SIGSTOP)
    with closing(sqlite3.connect(database, timeout=0.2, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            os.kill(pid, signal.SIGCONT)
            return False
    return True


async def test_a_process_that_does_not_answer_is_named_and_the_request_stays(tmp_path: Path) -> None:
    async with working(tmp_path, HANGS) as run:
        pid = rows(run.database, "SELECT pid FROM instances")[0][0]
        assert await poll(lambda: stopped_at_rest(pid, run.database))
        done = await run.phoenix.run("runs", "cancel", run.run_id)
        assert done.code == 75
        assert f"Process {pid} has not answered within 5 s; the request stays" in done.err
        late = await run.phoenix.run("runs", "wait", run.run_id, "--timeout", "0.2")
        assert (late.code, late.err) == (
            75,
            f"phoenix: Run {run.run_id[:8]} is still running after 0.2 s; wait again.\n",
        )
        os.kill(pid, signal.SIGCONT)
        assert (await ended(run.process)).code == 130


async def test_a_reference_that_names_no_run_is_one_sentence(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    await phoenix.run("-p", "hello")
    given = ("nothing", "%", "' OR 1=1 --", "\x1b[2J", "a" * 100_000, "~", "ü", "")
    for number, reference in enumerate(given):
        refused = await phoenix.run("runs", ("show", "wait", "cancel")[number % 3], reference)
        assert refused.code == 2
        assert refused.err.startswith("phoenix: No run matches ")
        assert refused.err.endswith("`phoenix runs list` shows them.\n")
        assert "\x1b" not in refused.err


async def test_many_runs_are_listed_in_bounds_and_an_ambiguous_id_names_candidates(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    first = (await phoenix.run("-p", "hello", "--output-format", "json")).json
    with closing(sqlite3.connect(database_of(phoenix))) as connection:
        connection.executemany(
            "INSERT INTO runs (id, conversation_id, status, started_at) VALUES (?, ?, 'success', ?)",
            [(f"aaaa{number:04}", first["session_id"], 2e9 + number) for number in range(5_000)],
        )
        connection.commit()
    listed = (await phoenix.run("runs", "list", "--json")).json
    assert [one["task_id"] for one in listed] == [f"aaaa{number:04}" for number in range(4_999, 4_949, -1)]
    of_one = (await phoenix.run("runs", "list", "--conversation", "hello", "--limit", "6000", "--json")).json
    assert len(of_one) == 5_001
    assert len((await phoenix.run("runs", "list", "--limit", "3")).out.splitlines()) == 4
    unclear = await phoenix.run("runs", "show", "aaaa")
    assert unclear.code == 2
    assert "'aaaa' matches more than 10 runs; give more of the id, or one of these:" in unclear.err
    assert len(unclear.err.splitlines()) == 11
    assert (await phoenix.run("runs", "show", "aaaa0007", "--json")).json["task_id"] == "aaaa0007"


async def test_waiting_exits_as_the_run_itself_would_have(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    run_id = (await phoenix.run("-p", "hello", "--output-format", "json")).json["task_id"]
    ends = {
        ("success", ""): 0,
        ("failure", "server"): 1,
        ("failure", "auth"): 41,
        ("failure", "iteration_limit"): 53,
        ("failure", "timeout"): 53,
        ("timeout", ""): 53,
        ("cancelled", ""): 130,
        ("interrupted", ""): 1,
    }
    for (status, code), exit_code in ends.items():
        with closing(sqlite3.connect(database_of(phoenix))) as connection:
            connection.execute("UPDATE runs SET status = ?, error_code = ?", (status, code))
            connection.commit()
        waited = await phoenix.run("runs", "wait", run_id, "--json")
        assert (waited.code, json.loads(waited.out)["status"]) == (exit_code, status)


async def test_an_empty_database_has_no_runs(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    assert (await phoenix.run("runs", "list")).out == "There are no runs yet.\n"
    assert (await phoenix.run("runs", "list", "--json")).json == []
    assert (await phoenix.run("runs", "list", "--conversation", "nothing")).code == 2


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


PROMPT = "run `echo built`"


async def ran(folder: Path) -> Phoenix:
    phoenix = phoenix_in(folder)
    assert (await phoenix.run("-p", PROMPT, "--permission-mode", "auto", "--name", "Builder")).code == 0
    return phoenix


async def test_a_conversation_names_its_newest_run_and_a_run_itself(tmp_path: Path) -> None:
    phoenix = await ran(tmp_path)
    shown = await phoenix.run("trace", "builder")
    head, *rows = shown.out.splitlines()
    assert head.startswith("success · ")
    assert "2 model calls, 1 tool call" in head
    assert [" ".join(row.split()[:3]) for row in rows] == [
        "✓ agent ━" + "━" * 33,
        *["✓ llm guide", "✓ tool bash"],
        "✓ llm guide",
    ]
    document = (await phoenix.run("trace", "builder", "--json")).json
    by_run = await phoenix.run("trace", document["run_id"][:8], "--json")
    assert by_run.json == document
    assert [(one["depth"], one["kind"]) for one in document["spans"]] == [
        (0, "agent"),
        (1, "llm"),
        (1, "tool"),
        (1, "llm"),
    ]
    tool = document["spans"][2]
    assert (tool["name"], tool["usage"], tool["message_seq"]) == ("bash", None, 2)
    assert "built" in tool["output"]


async def test_an_unknown_name_is_refused_in_a_sentence(tmp_path: Path) -> None:
    phoenix = await ran(tmp_path)
    found = await phoenix.run("trace", "nothing")
    assert (found.code, found.out) == (2, "")
    assert found.err == "phoenix: No conversation matches 'nothing'; `phoenix conversations list` shows them.\n"


async def test_a_verbose_run_keeps_the_request(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_TRACE_VERBOSE="1")
    assert (await phoenix.run("-p", PROMPT, "--permission-mode", "auto", "--name", "Builder")).code == 0
    kept = query(phoenix.home / "phoenix.db", "SELECT input_preview FROM spans ORDER BY started_at LIMIT 2")
    assert "echo built" in str(kept[0][0])
    assert "echo built" in str(kept[1][0])
