"""However a pass of the tracker ends, no message is stuck in it, lost, or recorded twice; its requests on the wire."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.engine import ConversationOptions, Engine
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, EngineError
from engine.machine.messages import Usage
from engine.ports import StorageError
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.records import PermissionMode
from engine.records.runs import CallPurpose
from engine.records.tracked_tasks import TrackingStatus
from engine.store.task_store import TaskStore
from engine.tracking import tracker
from engine.tracking.tracker import TrackingBuffer
from tests.support.counting_server import MODEL, cost_of
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import Event, recording, refuse, start, stop, text, tool
from tests.support.one_provider import OneProvider
from tests.support.scripted_provider import Hang, Reply, Script, ScriptedCall, ScriptedProvider, ScriptPart, says
from tests.support.storage import ROOT, query
from tests.support.tracking import BY_HAND, FINISH, append, board, call, insert, progress_events, say
from tests.support.tracking_victim import REPLIES, Killed
from tools.displays import TodoItem, TodoStatus

MESSAGES = (1, 2, 3, 4)
BOUNDARIES = 10
"""Before and after: failed messages wait again, four messages are taken, three replies are stored, and one more."""


def again(done: tuple[int, ...]) -> list[ScriptPart]:
    """A task agent that records what is left, on one task of its own."""
    left = [seq for seq in MESSAGES if seq not in done]
    return [insert(0, "rest"), append(1, *left), FINISH] if left else [FINISH]


async def linked(harness: EngineHarness, conversation_id: str) -> list[int]:
    """Seqs of all links, one for each."""
    view = await harness.engine.tasks.board(conversation_id)
    return sorted(seq for task in view.tasks for seq in task.message_seqs)


def statuses(home: Path) -> dict[int, str]:
    rows = query(home / "phoenix.db", "SELECT seq, task_process_status FROM messages ORDER BY seq")
    return {int(str(seq)): str(status) for seq, status in rows}


def newest_events(home: Path) -> dict[int, str]:
    """The progress of each message as a reader of the event stream knows it; a stored message waits."""
    told = progress_events(home / "phoenix.db")
    return {seq: (told[seq] or ["pending"])[-1] for seq in sorted(told)}


@pytest.mark.parametrize("point", range(BOUNDARIES))
async def test_a_killed_process_leaves_each_message_waiting_or_recorded_once(tmp_path: Path, point: int) -> None:
    command = [sys.executable, "-m", "tests.support.tracking_victim", str(tmp_path), str(point)]
    ended = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert ended.returncode == -9, ended.stderr
    before = query(tmp_path / "phoenix.db", "SELECT seq FROM messages WHERE tracked_task_id IS NOT NULL ORDER BY seq")
    done = tuple(int(str(seq)) for (seq,) in before)
    providers = ScriptedProvider({"main": says("x"), "cheap": Script((Reply(tuple(again(done))),))})
    async with engine_harness(tmp_path, provider=providers, settings=BY_HAND) as harness:
        (summary,) = await harness.engine.list()
        conversation = await harness.engine.open(summary.id)
        assert "running" not in statuses(tmp_path).values()
        assert newest_events(tmp_path) == statuses(tmp_path)
        assert [seq for seq, status in statuses(tmp_path).items() if status == "success"] == list(done)
        status = await harness.engine.tasks.flush(conversation.id)
        assert status == TrackingStatus(success=4, enabled=True)
        assert await linked(harness, conversation.id) == list(MESSAGES)
        assert newest_events(tmp_path) == statuses(tmp_path)


async def test_the_boundaries_are_all_there_are(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.tracking_victim", str(tmp_path), "-1"]
    ended = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, f"{BOUNDARIES}\n".encode())


class Failing(Killed):
    """A write fails once, in place of a death: with a full disk, or from inside. Nothing of it is stored."""

    def __init__(self, tasks: TaskStore, point: int, error: Exception) -> None:
        super().__init__(tasks, point)
        self._error = error

    def _boundary(self) -> None:
        self.passed += 1
        if self.passed - 1 == self._point:
            raise self._error


@pytest.mark.parametrize("error", [StorageError("The disk is full."), RuntimeError("inside")], ids=str)
@pytest.mark.parametrize("point", range(0, BOUNDARIES, 2))
async def test_an_error_of_any_write_leaves_messages_that_can_be_tried_again(
    tmp_path: Path, point: int, error: Exception
) -> None:
    provider = ScriptedProvider({"main": says("one", "two"), "cheap": Script(tuple(Reply(tuple(r)) for r in REPLIES))})
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        failing = Failing(harness.store.tasks, point, error)
        engine = harness.engine = Engine(replace(harness.engine.ports, tasks=failing), BY_HAND)
        conversation = await harness.conversation()
        await say(conversation, "first", "second")
        await engine.tasks.flush(conversation.id)
        assert "running" not in statuses(tmp_path).values()
        done = tuple(await linked(harness, conversation.id))
        provider._progress["cheap"].script = Script((Reply(tuple(again(done))),))
        provider._progress["cheap"].used.clear()
        assert await engine.tasks.flush(conversation.id) == TrackingStatus(success=4, enabled=True)
        assert await linked(harness, conversation.id) == list(MESSAGES)
        used = query(harness.store.path, "SELECT count(*) FROM model_calls WHERE purpose = 'tracking'")
        assert used == [(sum(request.model == "cheap" for request in provider.requests),)]


@pytest.mark.parametrize("replies", range(3))
async def test_a_close_during_any_reply_lets_the_rest_wait_for_the_next_opening(tmp_path: Path, replies: int) -> None:
    hanging = Script((*[Reply(tuple(parts)) for parts in REPLIES[:replies]], Reply((Hang(),))))
    provider = ScriptedProvider({"main": says("one", "two"), "cheap": hanging})
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        conversation = await harness.conversation()
        await say(conversation, "first", "second")
        flushing = asyncio.ensure_future(harness.engine.tasks.flush(conversation.id))
        await until(lambda: sum(request.model == "cheap" for request in provider.requests) > replies)
        await harness.engine.forget(conversation.id)
        await asyncio.wait((flushing,))
        done = (0, 2, 3)[replies]
        assert list(statuses(tmp_path).values()) == ["success"] * done + ["pending"] * (4 - done)
        calls = query(harness.store.path, "SELECT status FROM model_calls WHERE purpose = 'tracking' ORDER BY rowid")
        assert calls == [("ok",)] * replies + [("cancelled",)]
        rest = [append(2, 4), FINISH] if done == 3 else again(MESSAGES[:done])
        provider._progress["cheap"].script = Script((Reply(tuple(rest)),))
        provider._progress["cheap"].used.clear()
        conversation = await harness.engine.open(conversation.id)
        assert await harness.engine.tasks.flush(conversation.id) == TrackingStatus(success=4, enabled=True)
        assert await linked(harness, conversation.id) == list(MESSAGES)


async def test_t_buf_9_a_pass_that_is_cancelled_fails_its_messages_and_frees_the_conversation(tmp_path: Path) -> None:
    hanging = Script((Reply((Hang(),)), Reply((insert(0, "A"), append(1, 1, 2), FINISH))))
    provider = ScriptedProvider({"main": says("one"), "cheap": hanging})
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        conversation = await harness.conversation()
        await say(conversation, "first")
        flushing = asyncio.ensure_future(harness.engine.tasks.flush(conversation.id))
        await until(lambda: any(request.model == "cheap" for request in provider.requests))
        task = harness.engine._conversations.trackers[conversation.id]._task
        assert task is not None
        task.cancel()
        assert await flushing == TrackingStatus(failed=2, enabled=True, problem=tracker.STOPPED)
        assert task.cancelled()
        assert await harness.engine.tasks.flush(conversation.id) == TrackingStatus(success=2, enabled=True)


async def test_a_close_before_the_first_step_of_a_pass_changes_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider({"main": says("one"), "cheap": Script()})
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        conversation = await harness.conversation()
        await say(conversation, "first")
        flushing = asyncio.ensure_future(harness.engine.tasks.flush(conversation.id))
        await harness.engine.forget(conversation.id)
        await asyncio.wait((flushing,))
        assert list(statuses(tmp_path).values()) == ["pending", "pending"]


async def test_sub_agents_are_not_tracked(tmp_path: Path) -> None:
    spawn = ScriptedCall("spawn_agents", '{"tasks": [{"task": "look"}]}')
    parts = (Reply((spawn,), when="[go]"), Reply((call("submit_result", result="42"),), when="look", always=False))
    scripts = {"main": Script((*parts, Reply(says("done").replies[0].parts, when="42"))), "cheap": Script()}
    async with engine_harness(tmp_path, provider=ScriptedProvider(scripts), settings=BY_HAND) as harness:
        conversation = await harness.conversation()
        await say(conversation, "[go]")
        rows = query(
            harness.store.path,
            """SELECT DISTINCT c.kind, m.task_process_status FROM messages AS m
                JOIN conversations AS c ON c.id = m.conversation_id WHERE m.role <> 'system' ORDER BY c.kind""",
        )
        assert rows == [("subagent", "disabled"), ("user", "pending")]


async def test_only_the_owner_processes_messages_and_a_follower_does_once_it_takes_over(tmp_path: Path) -> None:
    records = Script((Reply((insert(0, "A"), append(1, 1, 2), FINISH)),))
    provider = ScriptedProvider({"main": says("one"), "cheap": Script()})
    other_provider = ScriptedProvider({"main": says("two"), "cheap": records})
    async with (
        engine_harness(tmp_path, provider=provider, settings=BY_HAND) as owner,
        engine_harness(tmp_path, provider=other_provider, settings=BY_HAND) as other,
    ):
        conversation = await owner.conversation()
        await say(conversation, "first")
        follower = await other.engine.open(conversation.id)
        await follower.subscribe(other.updates.append)
        assert (await other.engine.tasks.board(follower.id)).status == TrackingStatus(pending=2)
        with pytest.raises(EngineError, match="only its owner processes its messages"):
            await other.engine.tasks.flush(follower.id)
        await owner.engine.forget(conversation.id)
        await until(lambda: not follower.read_only)
        assert await other.engine.tasks.flush(follower.id) == TrackingStatus(success=2, enabled=True)
        assert await linked(other, follower.id) == [1, 2]


SETTINGS = EngineSettings(auto_title=False, task_tracking=True, track_always=True, track_after=3600.0)
PIECE = 11
"""Bytes of an HTTP chunk: no event arrives whole."""


@dataclass
class TaskServer:
    """Answers messages, and as a task agent makes a task of each message of the user, with its answer."""

    told: Usage = field(default_factory=Usage)
    """Usage of the task agent."""
    requests: int = 0
    systems: set[str] = field(default_factory=set[str])
    opened: list[str] = field(default_factory=list[str])
    """First message of each pass."""

    async def __call__(self, talk: Talk) -> None:
        if await refuse(talk):
            return
        body = talk.seen.json
        is_agent = any(one["name"] == "insert_task" for one in _list(body.get("tools", [])))
        parts = self._record(body) if is_agent else [start(), text(0, "An answer."), stop()]
        stream = b"".join(recording(*parts))
        await talk.begin()
        await talk.send(*[stream[at : at + PIECE] for at in range(0, len(stream), PIECE)])
        await talk.end()

    def _record(self, body: dict[str, object]) -> list[Event | list[Event]]:
        self.requests += 1
        self.systems.add(json.dumps([body["system"], body["tools"]]))
        used = Usage(1_000 + self.requests, 50 + self.requests, 3, 5)
        self.told += used
        opening = start({
            "input_tokens": used.input_tokens,
            "output_tokens": 1,
            "cache_creation_input_tokens": used.cache_creation_tokens,
            "cache_read_input_tokens": used.cache_read_tokens,
        })
        messages = _list(body["messages"])
        if len(messages) == 1:
            self.opened.append(messages[0]["content"][0]["text"])
        current = json.dumps(messages[0], ensure_ascii=False).split("## Current Messages")[1]
        asked = re.findall(r"<message id=(\d+)>User: (.*?)</message>", current)
        calls = self._inserts(messages, asked) if len(messages) == 1 else self._links(messages, asked)
        blocks = [
            tool(index, name, json.dumps(fields), tool_id=f"toolu_{self.requests}_{index}")
            for index, (name, fields) in enumerate(calls)
        ]
        return [opening, *blocks, stop("tool_use", used.output_tokens)]

    def _inserts(self, messages: list[Any], asked: list[tuple[str, str]]) -> list[tuple[str, dict[str, object]]]:
        there = len(re.findall(r"Task \d+: .*? \(Status", json.dumps(messages[0])))
        return [
            ("insert_task", {"after_task_order": there + number, "task_description": words})
            for number, (_, words) in enumerate(asked)
        ]

    def _links(self, messages: list[Any], asked: list[tuple[str, str]]) -> list[tuple[str, dict[str, object]]]:
        tasks = json.dumps(messages[-1])
        calls: list[tuple[str, dict[str, object]]] = []
        for seq, words in asked:
            (order,) = re.findall(rf"Task (\d+): {re.escape(words)} \(Status", tasks)
            bounds = [int(seq), int(seq) + 1]
            calls.append(("append_messages_to_task", {"task_order": int(order), "message_range": bounds}))
        return [*calls, ("finish", {})]


def _list(value: object) -> list[Any]:
    assert isinstance(value, list)
    return value


async def conversation_of(harness: EngineHarness) -> Conversation:
    options = ConversationOptions(harness.cwd, f"anthropic/{MODEL}", permission_mode=PermissionMode.AUTO)
    return await harness.engine.create(options)


async def test_the_board_and_every_sum_agree_with_the_server(tmp_path: Path) -> None:
    server = TaskServer()
    async with serve(server) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        async with engine_harness(tmp_path, providers=OneProvider(provider), settings=SETTINGS) as harness:
            one, other = await conversation_of(harness), await conversation_of(harness)
            for number in range(1, 21):
                await say(one, f"request {number}")
                if number % 4 == 0:
                    await say(other, f"other {number}")
            for conversation in (one, other):
                status = await harness.engine.tasks.flush(conversation.id)
                assert status == TrackingStatus(success=40 if conversation is one else 10, enabled=True)
            assert await board(harness, one) == [
                (number, f"request {number}", "running", (2 * number - 1, 2 * number)) for number in range(1, 21)
            ]
            assert await board(harness, other) == [
                (number, f"other {4 * number}", "running", (2 * number - 1, 2 * number)) for number in range(1, 6)
            ]
            sums = [
                each
                for conversation in (one, other)
                for each in await harness.store.library.calls(conversation.id)
                if each.purpose is CallPurpose.TRACKING
            ]
            assert sum(each.calls for each in sums) == server.requests
            totals = [each.totals for each in sums]
            assert (
                Usage(
                    sum(each.input_tokens for each in totals),
                    sum(each.output_tokens for each in totals),
                    sum(each.cache_creation_tokens for each in totals),
                    sum(each.cache_read_tokens for each in totals),
                )
                == server.told
            )
            assert round(sum(each.cost_usd or 0.0 for each in totals), 9) == round(cost_of(server.told), 9)
            assert len(server.systems) == 1, "instructions and tools are the same bytes in every request"
            for conversation in (one, other):
                stored = await harness.store.conversation(conversation.id)
                assert stored is not None
                assert stored.totals == conversation.record.totals, "what is shown is what is stored"
            assert query(harness.store.path, "SELECT count(*) FROM model_calls WHERE run_id IS NULL") == [
                (server.requests,)
            ]


async def test_the_task_agent_reads_the_todo_list_of_the_moment_and_makes_no_task_of_it(tmp_path: Path) -> None:
    server = TaskServer()
    async with serve(server) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        async with engine_harness(tmp_path, providers=OneProvider(provider), settings=SETTINGS) as harness:
            one = await conversation_of(harness)
            await say(one, "make it faster")
            await harness.engine.tasks.flush(one.id)
            items = (TodoItem("measure", TodoStatus.COMPLETED), TodoItem("cache", TodoStatus.IN_PROGRESS, "caching"))
            assert isinstance(await one.todos.replace(one.todos.now, items), Accepted)
            await say(one, "and smaller")
            await harness.engine.tasks.flush(one.id)
            first, second = (text.split("## Todo List of the Agent")[1].split("\n\n## ")[0] for text in server.opened)
            assert first == "\n(none)"
            assert second == " (1/2 done)\n1. [x] measure\n2. [>] cache"
            assert [task[1] for task in await board(harness, one)] == ["make it faster", "and smaller"]
            assert len(server.systems) == 1, "the list is in the message, so instructions and tools stay cached"
            assert "never tasks of their own" in server.systems.pop()


def filled(count: int, *, first: int = 1, at: float = 0.0) -> TrackingBuffer:
    buffer = TrackingBuffer()
    for seq in range(first, first + count):
        buffer.note_stored(seq, at)
    return buffer


def passes(buffer: TrackingBuffer, now: float) -> list[int]:
    """Sizes of the passes that follow each other at this moment."""
    sizes: list[int] = []
    while buffer.wait(now) == 0 and buffer.begin(now):
        taken = buffer.waiting[:32]
        buffer.take_out(taken, now)
        buffer.note_end()
        sizes.append(len(taken))
    return sizes


def test_t_buf_1_fifteen_messages_wait_for_eight_seconds_of_silence() -> None:
    buffer = filled(15)
    assert passes(buffer, 7.9) == []
    assert passes(buffer, 8.0) == [15]


def test_t_buf_2_the_sixteenth_message_begins_a_pass_at_once() -> None:
    buffer = filled(15)
    assert passes(buffer, 1.0) == []
    buffer.note_stored(16, 1.0)
    assert passes(buffer, 1.0) == [16]


def test_t_buf_3_a_message_restarts_the_eight_seconds() -> None:
    buffer = filled(1)
    buffer.note_stored(2, 7.0)
    assert (passes(buffer, 8.0), buffer.wait(8.0)) == ([], 7.0)
    assert passes(buffer, 15.0) == [2]


def test_t_buf_4_forty_messages_at_a_start_make_passes_of_32_and_8() -> None:
    buffer = TrackingBuffer()
    buffer.restore(range(1, 41), 100.0)
    assert passes(buffer, 100.0) == [32, 8]


def test_t_buf_6_a_busy_conversation_is_tried_again_after_a_second() -> None:
    buffer = filled(16)
    assert buffer.begin(0.0)
    assert (buffer.begin(5.0), buffer.wait(5.0), buffer.waiting) == (False, 1.0, list(range(1, 17)))
    buffer.note_end()
    assert (buffer.wait(5.5), buffer.wait(6.0)) == (0.5, 0.0)
    assert passes(buffer, 6.0) == [16]


def test_t_buf_7_two_conversations_wait_separately() -> None:
    one, other = filled(1), filled(1, at=5.0)
    assert (passes(one, 8.0), passes(other, 8.0)) == ([1], [])
    assert passes(other, 13.0) == [1]


def test_t_buf_10_nothing_waits_for_nothing() -> None:
    buffer = TrackingBuffer()
    assert buffer.wait(1e9) is None
    buffer.restore((), 5.0)
    assert buffer.wait(1e9) is None


def test_a_message_that_is_reported_twice_waits_once() -> None:
    buffer = filled(3)
    buffer.note_stored(2, 1.0)
    assert buffer.waiting == [1, 2, 3]


def test_a_postponed_pass_begins_later_however_many_messages_wait() -> None:
    buffer = filled(40)
    buffer.postpone(30.0, 0.0)
    assert (buffer.wait(0.0), passes(buffer, 29.0), passes(buffer, 30.0)) == (30.0, [], [32, 8])
