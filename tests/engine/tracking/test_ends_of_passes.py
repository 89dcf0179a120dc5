"""However a pass ends, no message is stuck in it, none is lost, and none is recorded twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.engine import Engine
from engine.executor.requests import EngineError
from engine.ports import StorageError
from engine.records.tracked_tasks import TrackingStatus
from engine.store.task_store import TaskStore
from engine.tracking import tracker
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import Hang, Reply, Script, ScriptedCall, ScriptedProvider, ScriptPart, says
from tests.support.storage import ROOT, query
from tests.support.tracking import BY_HAND, FINISH, append, call, insert, progress_events, say
from tests.support.tracking_victim import REPLIES, Killed

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
