"""Steering: a queued message reaches the running turn behind its next tool results, once, whatever happens."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.message_queue import CHIP, TOLD
from engine.executor.requests import Accepted, Refused
from engine.machine.messages import Origin, TextBlock, ToolResultBlock
from engine.machine.states import Idle
from engine.ports import ModelRequest
from engine.records import Delivery
from engine.updates import MessageSaved, QueueChanged
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.scripted_provider import Hang, Reply, ScriptedCall, Text
from tests.support.storage import ROOT, query

QUIET = EngineSettings(auto_title=False, turn_summaries=False)
DONE = Reply((Text("Done."),))
RUNS = Reply((ScriptedCall("bash", '{"command": "one"}', "t1"),))
RUNS_AGAIN = Reply((ScriptedCall("bash", '{"command": "two"}', "t2"),))


@asynccontextmanager
async def at_work(home: Path, *replies: Reply) -> AsyncIterator[tuple[EngineHarness, Conversation, StubTool]]:
    """A conversation whose first tool call runs until `tool.release` is set."""
    tool = StubTool(release=asyncio.Event())
    async with engine_harness(home, *replies, tool=tool, settings=QUIET) as harness:
        conversation = await harness.conversation()
        await conversation.say("go")
        await tool.started.wait()
        yield harness, conversation, tool


async def steer(conversation: Conversation, text: str = "use tabs") -> object:
    return await conversation.queue.add(text, delivery=Delivery.TOOL)


def let_go(tool: StubTool) -> None:
    assert tool.release is not None
    tool.release.set()


async def said(harness: EngineHarness, conversation: Conversation) -> list[str]:
    """The user's own messages as stored, in order."""
    rows = await harness.store.messages(conversation.id)
    return [
        block.text
        for row in rows
        if row.origin is Origin.HUMAN
        for block in row.blocks
        if isinstance(block, TextBlock) and not block.attached
    ]


def end_of(request: ModelRequest) -> list[str]:
    """Kinds and texts at the end of a request, from the last tool results on."""
    blocks = [block for message in request.messages for block in message.blocks]
    first = max(place for place, block in enumerate(blocks) if isinstance(block, ToolResultBlock))
    return [block.text if isinstance(block, TextBlock) else "result" for block in blocks[first:]]


async def test_a_steered_message_follows_the_tool_results_in_the_same_turn(tmp_path: Path) -> None:
    async with at_work(tmp_path, RUNS, DONE) as (harness, conversation, tool):
        assert isinstance(await steer(conversation), Accepted)
        assert [one.delivery for one in conversation.queue.waiting] == [Delivery.TOOL]
        let_go(tool)
        await conversation.wait_idle()
        assert len(harness.provider.requests) == 2
        assert end_of(harness.provider.requests[1])[:3] == ["result", "use tabs", TOLD]
        assert conversation.queue.waiting == ()
        assert await harness.store.queue.read_queue(conversation.id) == ()
        assert await said(harness, conversation) == ["go", "use tabs"]
        [stored] = [one.message for one in harness.seen(MessageSaved) if one.message.origin is Origin.HUMAN][1:]
        assert stored.blocks == (TextBlock("use tabs"), TextBlock(TOLD, CHIP))
        assert query(harness.store.path, "SELECT COUNT(DISTINCT turn_id) FROM messages") == [(1,)]


async def test_without_a_further_tool_call_it_becomes_the_next_turn(tmp_path: Path) -> None:
    async with at_work(tmp_path, RUNS, Reply((Text("thinking"), Hang())), DONE) as (harness, conversation, tool):
        let_go(tool)
        await until(lambda: len(harness.provider.requests) == 2)
        await steer(conversation)
        conversation.cancel()
        await conversation.wait_idle()
        assert conversation.queue.held
        assert [one.delivery for one in conversation.queue.waiting] == [Delivery.IDLE]
        await conversation.queue.go_on()
        await until(lambda: len(harness.provider.requests) == 3 and isinstance(conversation.state, Idle))
        assert await said(harness, conversation) == ["go", "use tabs"]


async def test_the_end_of_the_run_sends_it_as_a_message(tmp_path: Path) -> None:
    async with at_work(tmp_path, RUNS, DONE, DONE) as (harness, conversation, tool):
        await conversation.queue.add("later")
        let_go(tool)
        await until(lambda: len(harness.provider.requests) == 3)
        await conversation.wait_idle()
        assert await said(harness, conversation) == ["go", "later"]
        assert TOLD not in end_of(harness.provider.requests[2])


async def test_each_message_goes_its_own_way_and_may_change_it(tmp_path: Path) -> None:
    async with at_work(tmp_path, RUNS, RUNS_AGAIN, DONE, DONE) as (harness, conversation, tool):
        await conversation.queue.add("when idle")
        await steer(conversation, "first now")
        await steer(conversation, "not now")
        _, now, later = conversation.queue.waiting
        assert isinstance(await conversation.queue.deliver(later.id, Delivery.IDLE), Accepted)
        assert isinstance(await conversation.queue.edit(now.id, "now, changed"), Accepted)
        let_go(tool)
        await until(lambda: len(harness.provider.requests) == 5)
        await conversation.wait_idle()
        assert end_of(harness.provider.requests[1])[:3] == ["result", "now, changed", TOLD]
        assert await said(harness, conversation) == ["go", "now, changed", "when idle", "not now"]


async def test_a_shell_line_is_not_steered(tmp_path: Path) -> None:
    async with at_work(tmp_path, RUNS) as (_, conversation, _tool):
        await conversation.queue.add("!ls", is_shell=True, delivery=Delivery.TOOL)
        [line] = conversation.queue.waiting
        assert line.delivery is Delivery.IDLE
        refused = await conversation.queue.deliver(line.id, Delivery.TOOL)
        assert refused == Refused("A shell command waits until the agent is done.")
        assert await conversation.queue.deliver("gone", Delivery.TOOL) == Refused(
            "This message is no longer in the queue."
        )


async def test_an_idle_conversation_is_sent_the_message_at_once(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, DONE, settings=QUIET) as harness:
        conversation = await harness.conversation()
        await steer(conversation)
        await until(lambda: len(harness.provider.requests) == 1)
        await conversation.wait_idle()
        assert await said(harness, conversation) == ["use tabs"]


async def test_a_stop_before_the_delivery_leaves_it_in_the_queue_held(tmp_path: Path) -> None:
    async with at_work(tmp_path, RUNS, RUNS_AGAIN, DONE) as (harness, conversation, _):
        await steer(conversation)
        conversation.cancel()
        await conversation.wait_idle()
        assert [(one.text, one.delivery) for one in conversation.queue.waiting] == [("use tabs", Delivery.IDLE)]
        assert harness.seen(QueueChanged)[-1].held
        assert await said(harness, conversation) == ["go"]


async def test_what_changes_the_queue_as_the_message_is_delivered_does_not_bring_it_back(tmp_path: Path) -> None:
    async with at_work(tmp_path, RUNS, DONE, DONE) as (harness, conversation, tool):
        await steer(conversation)
        await conversation.queue.add("other")
        keep, delivered = harness.store.queue.keep_queue, asyncio.Event()

        async def slow(*args: object) -> None:
            let_go(tool)
            await until(lambda: len(harness.provider.requests) >= 2)
            await keep(*args)  # type: ignore[arg-type] # as they came
            delivered.set()

        harness.store.queue.keep_queue = slow  # type: ignore[method-assign, assignment] # the queue calls it by name
        await conversation.queue.move(conversation.queue.waiting[1].id, 0)
        await delivered.wait()
        await until(lambda: len(harness.provider.requests) == 3)
        await conversation.wait_idle()
        assert await said(harness, conversation) == ["go", "use tabs", "other"]
        assert await harness.store.queue.read_queue(conversation.id) == ()


@pytest.mark.parametrize("pieces", range(1, 4))
async def test_several_are_delivered_in_their_order(tmp_path: Path, pieces: int) -> None:
    texts = [f"note {number}" for number in range(pieces)]
    async with at_work(tmp_path, RUNS, DONE) as (harness, conversation, tool):
        for text in texts:
            await steer(conversation, text)
        let_go(tool)
        await conversation.wait_idle()
        assert await said(harness, conversation) == ["go", *texts]
        assert len(harness.provider.requests) == 2


# A kill at each transaction from the gesture to the end of the run: 1 keeps the queue, 2 has results and delivery.


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_kill_at_any_transaction_leaves_the_message_queued_or_sent_but_never_both(
    tmp_path: Path, number: int, moment: str
) -> None:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.steering_child", str(tmp_path), str(number), moment),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await child.communicate()
    assert (child.returncode, out) == (-signal.SIGKILL, b"")
    async with engine_harness(tmp_path, DONE, DONE, settings=QUIET) as harness:
        [summary] = await harness.engine.list()
        conversation = await harness.engine.open(summary.id)
        queued = [one.text for one in conversation.queue.waiting]
        sent = [text for text in await said(harness, conversation) if text == "use tabs"]
        accepted = (number, moment) != (1, "before")
        delivered = number > 2 or (number, moment) == (2, "after")
        assert (queued, sent) == (["use tabs"] * (accepted and not delivered), ["use tabs"] * delivered)
        assert harness.provider.requests == [], "nothing is sent at boot"
        assert conversation.queue.held == bool(queued)
        assert all(one.delivery is Delivery.IDLE for one in conversation.queue.waiting)
