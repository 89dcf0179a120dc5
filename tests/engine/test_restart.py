"""`kill -9` at every stage, then a restart (SPEC STM-10, T-SM 9); conversations that rest and are opened again."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.requests import ApprovalAnswer, ApprovalChoice, Refused
from engine.machine.messages import Block, Role, TextBlock, ToolResultBlock, ToolStatus
from engine.machine.states import AwaitingApproval, AwaitingSubagents, Idle
from engine.open_conversations import KILOBYTES
from engine.records import PermissionMode
from engine.updates import RunEnded, Snapshot, Update
from tests.support.crash_child import STAGES, TWO_CALLS, SecondWaits, reach
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.event_lines import rows_of
from tests.support.processes import start_plain
from tests.support.scripted_provider import Fail, Hang, Reply, ScriptedCall, Text
from tools import shedding
from tools.bash import Bash

INTERRUPTED = "[Tool execution interrupted by restart]"
ANSWER = Reply((Text("done"),))
RESULTS = {
    "streaming": [],
    "first tool": [("t1", INTERRUPTED, True), ("t2", INTERRUPTED, True)],
    "second tool": [("t1", "ran one", False), ("t2", INTERRUPTED, True)],
    "question": [("t1", INTERRUPTED, True), ("t2", INTERRUPTED, True)],
    "cancelling": [("t1", INTERRUPTED, True), ("t2", INTERRUPTED, True)],
}


async def killed_at(home: Path, stage: str) -> None:
    root = Path(__file__).parents[2]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.crash_child", str(home), stage, cwd=root, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    assert (await child.stdout.readline()).decode().strip() == stage
    child.kill()
    await child.communicate()


async def reopened(harness: EngineHarness) -> Conversation:
    [summary] = await harness.engine.list()
    return await harness.engine.open(summary.id)


@pytest.mark.parametrize("stage", STAGES)
async def test_a_killed_conversation_is_idle_and_valid_after_a_restart(tmp_path: Path, stage: str) -> None:
    await killed_at(tmp_path, stage)
    async with engine_harness(tmp_path, ANSWER) as harness:
        conversation = await reopened(harness)
        assert isinstance(conversation.state, Idle)
        assert harness.provider.requests == [], "nothing is sent to a model at boot"
        assert harness.tool.calls == [], "no command runs twice"
        rows = await harness.store.messages(conversation.id)
        results = [b for row in rows for b in row.blocks if isinstance(b, ToolResultBlock)]
        assert [(b.tool_use_id, _said(b), b.is_error) for b in results] == RESULTS[stage]
        assert [row.role for row in rows if row.role is not Role.SYSTEM] == [Role.USER, Role.ASSISTANT, Role.USER][
            : 3 if results else 1
        ]


@pytest.mark.parametrize("stage", ["streaming", "second tool"])
async def test_an_interrupted_turn_is_resumed_on_request(tmp_path: Path, stage: str) -> None:
    await killed_at(tmp_path, stage)
    async with engine_harness(tmp_path, ANSWER) as harness:
        conversation = await reopened(harness)
        await conversation.retry()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert (await harness.store.messages(conversation.id))[-1].blocks == (TextBlock("done"),)


async def test_a_second_boot_changes_nothing(tmp_path: Path) -> None:
    await killed_at(tmp_path, "second tool")
    async with engine_harness(tmp_path) as harness:
        first = await harness.store.messages((await reopened(harness)).id)
    async with engine_harness(tmp_path) as harness:
        assert not any(recovery.changed for recovery in await harness.engine.start())
        assert await harness.store.messages((await reopened(harness)).id) == first


@pytest.mark.parametrize("boots", [0, 1])
async def test_what_a_command_of_the_user_printed_waits_for_no_answer(tmp_path: Path, boots: int) -> None:
    async with engine_harness(tmp_path, ANSWER) as harness:
        conversation = await harness.run("hi")
        await conversation.shell("ls", send_to_model=True)
        await conversation.wait_idle()
        if not boots:
            assert not await _is_resumable(conversation)
            return
    async with engine_harness(tmp_path, ANSWER) as harness:
        conversation = await reopened(harness)
        assert not await _is_resumable(conversation)
        assert await conversation.retry() == Refused("Nothing to retry")
        await run_turn(conversation, "and?")
        rows = [row for row in await harness.store.messages(conversation.id) if row.role is not Role.SYSTEM]
        assert [(_text(row.blocks), row.turn_number) for row in rows] == [
            ("hi", 0),
            ("done", 0),
            ("$ ls\nran ls", 1),
            ("and?", 1),
            ("done", 1),
        ]


async def test_a_prompt_that_was_stopped_still_waits_behind_a_command_of_the_user(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Hang(),)), ANSWER) as harness:
        conversation = await harness.start("hi")
        conversation.cancel()
        await conversation.wait_idle()
        await conversation.shell("ls", send_to_model=True)
        await conversation.wait_idle()
        assert await _is_resumable(conversation)
    async with engine_harness(tmp_path, ANSWER) as harness:
        conversation = await reopened(harness)
        assert await _is_resumable(conversation)
        await conversation.retry()
        await conversation.wait_idle()
        assert _text((await harness.store.messages(conversation.id))[-1].blocks) == "done"


async def ended_at(home: Path, stage: str) -> list[str]:
    """End the engine in order while a run is at this stage; returns the statuses of its runs."""
    tools = {"first tool": StubTool(release=asyncio.Event()), "second tool": SecondWaits()}
    reply = Reply((Text("half"), Hang())) if stage == "streaming" else TWO_CALLS
    async with engine_harness(home, reply, tool=tools.get(stage)) as harness:
        await reach(harness, stage)
        await harness.engine.close()
        return [ended.status for ended in harness.seen(RunEnded)]


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "cancelling"])
async def test_an_end_of_phoenix_leaves_what_a_crash_leaves(tmp_path: Path, stage: str) -> None:
    """A lost terminal, a signal: no one stopped the run, and Enter resumes it (SPEC STM-12)."""
    killed, ended = tmp_path / "killed", tmp_path / "ended"
    await killed_at(killed, stage)
    assert await ended_at(ended, stage) == ["interrupted"]
    left: list[list[tuple[Role, str]]] = []
    for home in (killed, ended):
        async with engine_harness(home, ANSWER) as harness:
            conversation = await reopened(harness)
            assert await _is_resumable(conversation)
            [summary] = await harness.engine.list()
            assert summary.last_status == "interrupted"
            rows = [row for row in await harness.store.messages(conversation.id) if row.role is not Role.SYSTEM]
            left.append([(row.role, _read(row.blocks)) for row in rows])
            calls = await harness.store.tool_calls(conversation.id, [row.id for row in rows])
            assert {call.status for call in calls} <= {ToolStatus.INTERRUPTED, ToolStatus.SUCCESS}
            assert _ends(harness.store.path) == [
                ("task:failed", "interrupted", "Phoenix ended before this run did.", True)
            ]
            await conversation.retry()
            await conversation.wait_idle()
            assert _text((await harness.store.messages(conversation.id))[-1].blocks) == "done"
    assert left[0] == left[1]


async def test_the_row_about_an_end_of_phoenix_names_it_and_no_user(tmp_path: Path) -> None:
    await ended_at(tmp_path, "first tool")
    async with engine_harness(tmp_path) as harness:
        rows = await harness.store.messages((await reopened(harness)).id)
        assert [_text(row.blocks) for row in rows if row.role is Role.SYSTEM] == [
            "Interrupted: Phoenix ended after 0 s · 3 processes ended"
        ]


def _ends(path: Path) -> list[tuple[str, str, str, bool]]:
    """The events about ends of runs."""
    ends = [row for row in rows_of(path) if row["type"] in {"task:failed", "task:cancelled"}]
    payloads = [(row["type"], row["payload"]) for row in ends]
    return [(kind, one["status"], one["error"], one["recoverable"]) for kind, one in payloads]


def _read(blocks: tuple[Block, ...]) -> str:
    """A message as its model reads it."""
    return "\n".join(_said(block) if isinstance(block, ToolResultBlock) else _text((block,)) for block in blocks)


async def _is_resumable(conversation: Conversation) -> bool:
    seen: list[Update] = []
    unsubscribe = await conversation.subscribe(seen.append)
    unsubscribe()
    (snapshot,) = seen
    assert isinstance(snapshot, Snapshot)
    return snapshot.resumable


def _text(blocks: tuple[Block, ...]) -> str:
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def _said(block: ToolResultBlock) -> str:
    return "".join(part.text for part in block.content if isinstance(part, TextBlock))


SAYS = Reply((Text("one"),), always=True)
LISTS = Reply((ScriptedCall("bash", '{"command": "ls"}', "t1"),), when="list")
FAILS = Reply((Fail("no more today", retryable=False),), when="fail")
SPAWNS = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": "TASK 1"}]})),), when="begin")
HANGS = Reply((Hang(),), when="TASK", always=True)


async def watched(
    harness: EngineHarness, mode: PermissionMode = PermissionMode.AUTO
) -> tuple[Conversation, Callable[[], None]]:
    """A new one, and what ends looking at it."""
    conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main", permission_mode=mode))
    return conversation, await conversation.subscribe(lambda _update: None)


def is_open(harness: EngineHarness, conversation: Conversation) -> bool:
    """True while it is open, after closing those that are due."""
    harness.engine.resting.now()
    waits = len(harness.engine.resting)
    assert (conversation in harness.engine.live()) is bool(waits)
    return bool(waits)


def none_is_open(harness: EngineHarness) -> bool:
    """True when none is open; otherwise closes those that are due."""
    if not harness.engine.live():
        return True
    harness.engine.resting.now()
    return False


async def test_one_that_was_left_is_closed_and_comes_back_whole(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAYS) as harness:
        harness.engine.resting.patience = 0.0
        conversation, leave = await watched(harness)
        await run_turn(conversation, "a")
        assert harness.engine.live() == (conversation,)
        leave()
        await until(lambda: harness.engine.live() == ())
        again = await harness.engine.open(conversation.id)
        assert again is not conversation
        assert not again.read_only, "it was given up before"
        await run_turn(again, "b")
        sent = harness.provider.requests[-1].messages
        assert [block.text for one in sent for block in one.blocks if isinstance(block, TextBlock)] == ["a", "one", "b"]
        assert harness.jobs.ended == [], "its temporary folder stays"


async def test_one_that_is_looked_at_again_stays(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAYS) as harness:
        conversation, leave = await watched(harness)
        leave()
        await conversation.subscribe(lambda _update: None)
        harness.engine.resting.now()
        assert harness.engine.live() == (conversation,)
        assert len(harness.engine.resting) == 0


async def test_one_at_work_stays_until_it_is_done(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, LISTS, SAYS, tool=StubTool(release=asyncio.Event())) as harness:
        conversation, leave = await watched(harness)
        await conversation.say("list")
        await harness.tool.started.wait()
        leave()
        assert is_open(harness, conversation)
        assert harness.tool.release is not None
        harness.tool.release.set()
        await conversation.wait_idle()
        harness.engine.resting.patience = 0.0
        await until(lambda: none_is_open(harness))


async def test_a_question_an_error_a_rule_and_a_side_question_keep_one_open(tmp_path: Path) -> None:
    slow = Reply((Hang(),), when="The question beside")
    async with engine_harness(tmp_path, LISTS, FAILS, slow, SAYS) as harness:
        conversation, leave = await watched(harness, PermissionMode.ASK)
        await conversation.say("list")
        await until(lambda: isinstance(conversation.state, AwaitingApproval))
        leave()
        assert is_open(harness, conversation)
        await until(lambda: conversation.question is not None)
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.CONVERSATION))
        await until(lambda: isinstance(conversation.state, Idle))
        assert conversation.rules
        assert is_open(harness, conversation), "its rule would be gone"
        conversation.rules.clear()
        await run_turn(conversation, "fail")
        assert is_open(harness, conversation), "its error was not seen"
        conversation.cancel()
        await until(lambda: isinstance(conversation.state, Idle))
        asking = asyncio.create_task(conversation.side.ask("why"))
        await until(lambda: conversation.side.asked)
        assert is_open(harness, conversation)
        asking.cancel()
        await asyncio.wait((asking,))
        harness.engine.resting.now()
        await until(lambda: not harness.engine.live())


async def test_a_parent_stays_while_a_sub_agent_works_or_is_looked_at(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SPAWNS, HANGS, SAYS) as harness:
        parent, leave = await watched(harness)
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        await parent.say("begin")
        await until(lambda: isinstance(parent.state, AwaitingSubagents) and sub_agents.at_work(parent.id))
        (view,) = sub_agents.views(parent.id)
        child = await harness.engine.open(view.id)
        leave_child = await child.subscribe(lambda _update: None)
        leave()
        harness.engine.resting.now()
        assert parent in harness.engine.live()
        parent.cancel()
        await parent.wait_idle()
        await sub_agents.wait_finished(parent.id)
        harness.engine.resting.now()
        assert parent in harness.engine.live(), "its sub-agent is looked at"
        leave_child()
        await until(lambda: none_is_open(harness))


async def test_a_job_keeps_one_open_and_what_it_printed_stays_to_be_read(tmp_path: Path) -> None:
    processes = await start_plain()
    (tmp_path / "spill").mkdir()
    bash: Any = Bash(processes.jobs, tmp_path / "spill")
    command = json.dumps({"command": "echo begun; sleep 60", "background": True})
    begins = Reply((ScriptedCall("bash", command, "t1"),), when="begin")
    try:
        async with engine_harness(tmp_path, begins, SAYS, tool=bash, board=processes.jobs) as harness:
            conversation, leave = await watched(harness)
            await run_turn(conversation, "begin")
            (job,) = conversation.jobs.all()
            leave()
            assert is_open(harness, conversation)
            await until(lambda: conversation.jobs.output(job.id).head)
            await conversation.jobs.kill(job.id)
            harness.engine.resting.now()
            await until(lambda: not harness.engine.live())
            again = await harness.engine.open(conversation.id)
            assert [one.id for one in again.jobs.all()] == [job.id]
            assert again.jobs.output(job.id).head.startswith(b"begun")
    finally:
        await processes.close()


@pytest.mark.parametrize("waits", [False, True])
async def test_the_end_of_the_engine_waits_for_those_that_are_being_closed(tmp_path: Path, waits: bool) -> None:
    async with engine_harness(tmp_path, SAYS) as harness:
        conversation, leave = await watched(harness)
        leave()
        if waits:
            harness.engine.resting.now()
        await harness.engine.close()
        assert harness.engine.live() == ()
        assert len(harness.engine.resting) == 0
        assert conversation not in harness.engine.live()


async def test_conversations_go_soon_after_some_were_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shedding, "AFTERWARDS", 0.0)
    monkeypatch.setattr(shedding, "DUE_AT", 2 * KILOBYTES)
    async with engine_harness(tmp_path, Reply((Text("One."),)), Reply((Text("Two."),))) as harness:
        gone: list[weakref.ref[Conversation]] = []
        gc.disable()
        try:
            for _ in range(2):
                conversation = await harness.run("hello")
                await harness.engine.forget(conversation.id)
                gone.append(weakref.ref(conversation))
                del conversation
            await until(lambda: _are_gone(gone))
        finally:
            gc.enable()


def _are_gone(gone: list[weakref.ref[Conversation]]) -> bool:
    """A task of the last one may end after the first collection, so others end here, too."""
    shedding.garbage.note_end(2 * KILOBYTES)
    return not any(one() for one in gone)
