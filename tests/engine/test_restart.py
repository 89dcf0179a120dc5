"""`kill -9` at every stage, then a restart: idle, valid, nothing twice, nothing sent at boot (SPEC STM-10, T-SM 9)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.executor.requests import Refused
from engine.machine.messages import Block, Role, TextBlock, ToolResultBlock, ToolStatus
from engine.machine.states import Idle
from engine.updates import RunEnded, Snapshot, Update
from tests.support.crash_child import STAGES, TWO_CALLS, SecondWaits, reach
from tests.support.engine import EngineHarness, StubTool, engine_harness
from tests.support.event_lines import rows_of
from tests.support.scripted_provider import Hang, Reply, Text

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
        conversation = await harness.conversation()
        await conversation.say("hi")
        await conversation.wait_idle()
        await conversation.shell("ls", send_to_model=True)
        await conversation.wait_idle()
        if not boots:
            assert not await _is_resumable(conversation)
            return
    async with engine_harness(tmp_path, ANSWER) as harness:
        conversation = await reopened(harness)
        assert not await _is_resumable(conversation)
        assert await conversation.retry() == Refused("Nothing to retry")
        await conversation.say("and?")
        await conversation.wait_idle()
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
        conversation = await harness.conversation()
        await conversation.say("hi")
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
