"""`kill -9` at every stage, then a restart: idle, valid, nothing twice, nothing sent at boot (SPEC c10, T-SM 9)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.machine.messages import Role, TextBlock, ToolResultBlock
from engine.machine.states import Idle
from engine.providers.scripted import Reply, Text
from tests.support.crash_child import STAGES
from tests.support.engine import Bench, engine_bench

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


async def reopened(bench: Bench) -> Conversation:
    [summary] = await bench.engine.list()
    return await bench.engine.open(summary.id)


@pytest.mark.parametrize("stage", STAGES)
async def test_a_killed_conversation_is_idle_and_valid_after_a_restart(tmp_path: Path, stage: str) -> None:
    await killed_at(tmp_path, stage)
    async with engine_bench(tmp_path, ANSWER) as bench:
        conversation = await reopened(bench)
        assert isinstance(conversation.state, Idle)
        assert bench.provider.requests == [], "nothing is sent to a model at boot"
        assert bench.tool.calls == [], "no command runs twice"
        rows = await bench.store.messages(conversation.id)
        results = [b for row in rows for b in row.blocks if isinstance(b, ToolResultBlock)]
        assert [(b.tool_use_id, _said(b), b.is_error) for b in results] == RESULTS[stage]
        assert [row.role for row in rows if row.role is not Role.SYSTEM] == [Role.USER, Role.ASSISTANT, Role.USER][
            : 3 if results else 1
        ]


@pytest.mark.parametrize("stage", ["streaming", "second tool"])
async def test_an_interrupted_turn_is_resumed_on_request(tmp_path: Path, stage: str) -> None:
    await killed_at(tmp_path, stage)
    async with engine_bench(tmp_path, ANSWER) as bench:
        conversation = await reopened(bench)
        await conversation.retry()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert (await bench.store.messages(conversation.id))[-1].blocks == (TextBlock("done"),)


async def test_a_second_boot_changes_nothing(tmp_path: Path) -> None:
    await killed_at(tmp_path, "second tool")
    async with engine_bench(tmp_path) as bench:
        first = await bench.store.messages((await reopened(bench)).id)
    async with engine_bench(tmp_path) as bench:
        assert not any(recovery.changed for recovery in await bench.engine.start())
        assert await bench.store.messages((await reopened(bench)).id) == first


def _said(block: ToolResultBlock) -> str:
    return "".join(part.text for part in block.content if isinstance(part, TextBlock))
