"""A model that repeats one call: it is warned, then its run ends with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.executor.loop_guard import LoopGuard
from engine.machine.messages import Origin, TextBlock, ToolCall, ToolResultBlock
from engine.machine.states import Idle
from engine.providers.scripted import Reply, ScriptedCall, Text
from engine.updates import MessageSaved, RunEnded
from tests.support.engine import Bench, engine_bench


def asks(arguments: str = '{"command": "ls"}', times: int = 1) -> tuple[Reply, ...]:
    return tuple(Reply((ScriptedCall("bash", arguments),)) for _ in range(times))


def results(bench: Bench) -> list[str]:
    blocks = [block for update in bench.seen(MessageSaved) for block in update.message.blocks]
    parts = [part for block in blocks if isinstance(block, ToolResultBlock) for part in block.content]
    return [part.text for part in parts if isinstance(part, TextBlock)]


async def test_the_third_time_is_said_and_the_fifth_ends_the_run(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, *asks(times=140)) as bench:
        conversation = await bench.conversation()
        await conversation.say("go")
        assert isinstance(await conversation.wait_idle(), Idle)
        assert len(bench.tool.calls) == 5
        assert ["3 times in a row" in text for text in results(bench)] == [False, False, True, False, False]
        assert "4 times in a row" in results(bench)[3]
        (ended,) = bench.seen(RunEnded)
        assert (ended.status, ended.error_code) == ("failure", "loop")
        assert ended.error == "Stopped: repeated tool calls without progress"
        notices = [update.message for update in bench.seen(MessageSaved) if update.message.origin is Origin.NOTICE]
        assert [notice.blocks for notice in notices] == [(TextBlock(ended.error),)]


async def test_the_next_message_begins_to_count_anew(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, *asks(times=9), Reply((Text("done"),))) as bench:
        conversation = await bench.conversation()
        await conversation.say("go")
        await conversation.wait_idle()
        await conversation.say("again")
        await conversation.wait_idle()
        assert [ended.error_code for ended in bench.seen(RunEnded)] == ["loop", ""]


@pytest.mark.parametrize(
    ("name", "arguments", "results", "counts"),
    [
        ("bash", ["{}"] * 3, ["a", "a", "a"], [1, 2, 3]),
        ("bash", ["{}"] * 3, ["a", "b", "b"], [1, 1, 2]),
        ("bash", ['{"a": 1, "b": 2}', '{"b":2,"a":1}', '{"a": 1}'], ["x"] * 3, [1, 2, 1]),
        ("bash", ["not json", "not json", "{"], ["x"] * 3, [1, 2, 1]),
        ("job_output", ['{"job": "job-1"}'] * 3, ["(still running)"] * 3, [1, 1, 1]),
    ],
)
def test_only_the_same_call_with_the_same_result_counts(
    name: str, arguments: list[str], results: list[str], counts: list[int]
) -> None:
    guard = LoopGuard()
    pairs = zip(arguments, results, strict=True)
    assert [guard.count(ToolCall("t", name, each), result) for each, result in pairs] == counts


def test_another_call_in_between_is_progress() -> None:
    guard = LoopGuard()
    assert guard.count(ToolCall("t", "bash", "{}"), "a") == 1
    assert guard.count(ToolCall("t", "read_file", "{}"), "a") == 1
    assert guard.count(ToolCall("t", "bash", "{}"), "a") == 1
