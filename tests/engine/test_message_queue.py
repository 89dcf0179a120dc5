"""Messages that wait for their turn, and messages that steer a run."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.message_queue import CHIP, MOST_WAITING, TOLD
from engine.executor.requests import Accepted, Refused, RunCaps
from engine.machine.messages import Origin, Role, TextBlock, ToolResultBlock
from engine.machine.states import Errored, Idle, is_busy
from engine.ports import ModelRequest
from engine.records import Delivery, QueuedMessage
from engine.updates import MessageSaved, QueueChanged
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.scripted_provider import Fail, Hang, Reply, ScriptedCall, Text
from tests.support.storage import ROOT, query

HELLO = Reply((Text("hello there", 3),))
HANGS = Reply((Text("thinking"), Hang()))


async def said(harness: EngineHarness, conversation: Conversation) -> list[str]:
    """The user's own messages, in order."""
    rows = await harness.store.messages(conversation.id)
    return [
        block.text for row in rows if row.origin is Origin.HUMAN for block in row.blocks if isinstance(block, TextBlock)
    ]


def texts(conversation: Conversation) -> list[str]:
    return [one.text for one in conversation.queue.waiting]


async def rested(conversation: Conversation, condition: Callable[[], object]) -> None:
    await until(lambda: condition() and not is_busy(conversation.state))


async def test_what_was_queued_while_the_agent_worked_is_sent_one_by_one_in_order(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, HELLO, HELLO) as harness:
        conversation = await harness.start("first")
        assert isinstance(await conversation.queue.add("second"), Accepted)
        assert isinstance(await conversation.queue.add("third", caps=RunCaps(max_turns=3)), Accepted)
        await rested(conversation, lambda: len(harness.provider.requests) == 3)
        assert await said(harness, conversation) == ["first", "second", "third"]
        assert [len(request.messages) for request in harness.provider.requests] == [1, 3, 5]
        assert await harness.store.queue.read_queue(conversation.id) == ()
        assert texts(conversation) == []


async def test_the_message_leaves_the_queue_in_the_very_transaction_that_stores_it(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, HANGS) as harness:
        conversation = await harness.start("first")
        await conversation.queue.add("second")
        states: list[tuple[list[str], int]] = []
        stored = harness.store.commit

        async def watched(move: object) -> object:
            before = len(await said(harness, conversation)), len(await harness.store.queue.read_queue(conversation.id))
            committed = await stored(move)  # type: ignore[arg-type] # as it came
            after = len(await said(harness, conversation)), len(await harness.store.queue.read_queue(conversation.id))
            if before != after:
                states.append(([str(before), str(after)], 0))
            return committed

        harness.store.commit = watched  # type: ignore[method-assign, assignment] # the engine calls it by name
        await until(lambda: len(harness.provider.requests) == 2)
        assert [pair for pair, _ in states] == [["(1, 1)", "(2, 0)"]]


async def test_a_stop_holds_the_queue_until_the_user_goes_on(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS, HELLO) as harness:
        conversation = await harness.start("first")
        await until(lambda: len(harness.provider.requests) == 1)
        await conversation.queue.add("second")
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert (texts(conversation), conversation.queue.held) == (["second"], True)
        assert harness.seen(QueueChanged)[-1] == QueueChanged(conversation.queue.waiting, True)
        await conversation.queue.go_on()
        await rested(conversation, lambda: len(harness.provider.requests) == 2)
        assert await said(harness, conversation) == ["first", "second"]
        assert conversation.queue.held is False


async def test_a_held_queue_that_is_emptied_is_told_as_empty(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.start("first")
        await until(lambda: len(harness.provider.requests) == 1)
        await conversation.queue.add("second")
        conversation.cancel()
        await conversation.wait_idle()
        await conversation.queue.remove(conversation.queue.waiting[0].id)
        assert harness.seen(QueueChanged)[-1].waiting == ()


async def test_a_message_queued_in_the_moment_of_a_stop_is_held_too(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.start("first")
        await until(lambda: len(harness.provider.requests) == 1)
        adding = asyncio.create_task(conversation.queue.add("second"))
        await asyncio.sleep(0)
        conversation.cancel()
        await adding
        await conversation.wait_idle()
        assert (texts(conversation), conversation.queue.held) == (["second"], True)


async def test_an_error_holds_the_queue_and_a_good_retry_lets_it_go_on(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Fail("no key", "auth", retryable=False),)), HELLO, HELLO) as harness:
        conversation = await harness.start("first")
        await conversation.queue.add("second")
        assert isinstance(await conversation.wait_idle(), Errored)
        assert (texts(conversation), conversation.queue.held) == (["second"], True)
        await conversation.queue.go_on()
        assert texts(conversation) == ["second"]
        await conversation.retry()
        await rested(conversation, lambda: len(harness.provider.requests) == 3)
        assert await said(harness, conversation) == ["first", "second"]


async def test_a_restart_sends_nothing_and_keeps_what_waits_in_order(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.start("first")
        await until(lambda: len(harness.provider.requests) == 1)
        for text in ("one", "two", "three"):
            await conversation.queue.add(text)
        [_, _, last] = conversation.queue.waiting
        await conversation.queue.move(last.id, 0)
        conversation_id = conversation.id
    async with engine_harness(tmp_path, HELLO, HELLO, HELLO) as harness:
        conversation = await harness.engine.open(conversation_id)
        assert (texts(conversation), conversation.queue.held) == (["three", "one", "two"], True)
        assert harness.provider.requests == []
        await conversation.queue.go_on()
        await rested(conversation, lambda: len(harness.provider.requests) == 3)
        assert await said(harness, conversation) == ["first", "three", "one", "two"]


async def test_interrupt_and_send_goes_ahead_of_the_queue_and_does_not_hold_it(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS, HELLO, HELLO) as harness:
        conversation = await harness.start("first")
        await until(lambda: len(harness.provider.requests) == 1)
        await conversation.queue.add("later")
        await conversation.interrupt_and_say("now")
        await rested(conversation, lambda: len(harness.provider.requests) == 3)
        assert await said(harness, conversation) == ["first", "now", "later"]


async def test_one_of_the_queue_is_sent_now_and_the_others_follow(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS, HELLO, HELLO) as harness:
        conversation = await harness.start("first")
        await until(lambda: len(harness.provider.requests) == 1)
        await conversation.queue.add("one")
        await conversation.queue.add("two")
        assert isinstance(await conversation.queue.send_now(conversation.queue.waiting[1].id), Accepted)
        await rested(conversation, lambda: len(harness.provider.requests) == 3)
        assert await said(harness, conversation) == ["first", "two", "one"]


async def test_a_queued_message_is_edited_removed_and_gone_ones_are_refused(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.start("first")
        await until(lambda: len(harness.provider.requests) == 1)
        queue = conversation.queue
        await queue.add("one")
        await queue.add("two")
        one, two = queue.waiting
        await queue.edit(one.id, "1")
        await queue.remove(two.id)
        assert await harness.store.queue.read_queue(conversation.id) == (QueuedMessage(one.id, "1"),)
        await queue.edit(one.id, "  ")
        assert queue.waiting == ()
        for refused in (await queue.edit(one.id, "x"), await queue.move(one.id, 0), await queue.remove(one.id)):
            assert refused == Refused("This message is no longer in the queue.")
        assert isinstance(await queue.add(" \n"), Refused)


async def test_what_cannot_be_sent_stays_in_the_queue_with_the_reason(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, HELLO) as harness:
        conversation = await harness.start("first")
        await conversation.queue.add("look", ["no-such-image"])
        await until(lambda: conversation.queue.held)
        assert texts(conversation) == ["look"]
        assert await said(harness, conversation) == ["first"]


async def test_the_queue_is_told_after_the_message_is_in_the_transcript(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, HELLO) as harness:
        conversation = await harness.start("first")
        await conversation.queue.add("second")
        await rested(conversation, lambda: len(harness.provider.requests) == 2)
        kinds = [type(update).__name__ for update in harness.updates if isinstance(update, MessageSaved | QueueChanged)]
        assert kinds == [*["MessageSaved"] * 1, "QueueChanged", *["MessageSaved"] * 2, "QueueChanged", "MessageSaved"]


async def test_the_queue_has_an_end(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.start("first")
        await until(lambda: len(harness.provider.requests) == 1)
        conversation.queue.waiting = tuple(QueuedMessage(str(number), "x") for number in range(MOST_WAITING))
        assert isinstance(await conversation.queue.add("one more"), Refused)


Changes = st.lists(
    st.tuples(st.sampled_from(["add", "move", "remove", "edit"]), st.integers(0, 5), st.integers(0, 5)), max_size=12
)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@settings(max_examples=15, deadline=None)
@given(changes=Changes)
def test_any_changes_leave_the_same_order_in_memory_and_on_disk(
    changes: list[tuple[str, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def run() -> None:
        async with engine_harness(tmp_path_factory.mktemp("queue"), HANGS) as harness:
            conversation = await harness.start("first")
            queue, expected = conversation.queue, list[str]()
            for number, (what, at, to) in enumerate(changes):
                if what == "add" or not expected:
                    await queue.add(f"m{number}")
                    expected.append(f"m{number}")
                    continue
                at %= len(expected)
                chosen = queue.waiting[at]
                match what:
                    case "move":
                        await queue.move(chosen.id, to)
                        expected.insert(to, expected.pop(at))
                    case "remove":
                        await queue.remove(chosen.id)
                        del expected[at]
                    case _:
                        await queue.edit(chosen.id, f"e{number}")
                        expected[at] = f"e{number}"
                assert [one.text for one in queue.waiting] == expected
            stored = await harness.store.queue.read_queue(conversation.id)
            assert [one.text for one in stored] == expected

    asyncio.run(run())


async def test_a_shell_line_waits_like_a_message_and_runs_in_its_turn(tmp_path: Path) -> None:
    gate = asyncio.Event()
    first = Reply((Text("hello"), ScriptedCall("bash", '{"command": "wait"}', "t1")))
    async with engine_harness(tmp_path, first, HELLO, HELLO, tool=StubTool(release=gate)) as harness:
        conversation = await harness.start("first")
        await harness.tool.started.wait()
        await conversation.queue.add("!make test", is_shell=True)
        await conversation.queue.add("second")
        await conversation.queue.add("!! ls", is_shell=True)
        assert [one.is_shell for one in await harness.store.queue.read_queue(conversation.id)] == [True, False, True]
        gate.set()
        await rested(conversation, lambda: len(harness.tool.calls) == 3 and not conversation.queue.waiting)
        assert [call["command"] for call in harness.tool.calls] == ["wait", "make test", "ls"]
        assert await harness.store.queue.read_queue(conversation.id) == ()
        told = [row.origin for row in await harness.store.messages(conversation.id) if row.role is Role.USER]
        assert told.count(Origin.HUMAN) == 2
        assert told.count(Origin.NOTICE) == 1, "the line with one ! is said to the model, the other is not"


async def test_a_shell_line_that_lost_its_sign_is_a_message(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS, HELLO) as harness:
        conversation = await harness.start("first")
        await until(lambda: is_busy(conversation.state))
        await conversation.queue.add("!ls", is_shell=True)
        [line] = conversation.queue.waiting
        await conversation.queue.edit(line.id, "!ls -la")
        [command] = conversation.queue.waiting
        assert command.is_shell
        await conversation.queue.edit(line.id, "list it")
        [prompt] = conversation.queue.waiting
        assert not prompt.is_shell
        conversation.cancel()
        await conversation.wait_idle()


QUIET = EngineSettings(auto_title=False, turn_summaries=False)
DONE = Reply((Text("Done."),))
RUNS = Reply((ScriptedCall("bash", '{"command": "one"}', "t1"),))
RUNS_AGAIN = Reply((ScriptedCall("bash", '{"command": "two"}', "t2"),))


@asynccontextmanager
async def at_work(home: Path, *replies: Reply) -> AsyncIterator[tuple[EngineHarness, Conversation, StubTool]]:
    """A conversation whose first tool call runs until `tool.release` is set."""
    tool = StubTool(release=asyncio.Event())
    async with engine_harness(home, *replies, tool=tool, settings=QUIET) as harness:
        conversation = await harness.start("go")
        await tool.started.wait()
        yield harness, conversation, tool


async def steer(conversation: Conversation, text: str = "use tabs") -> object:
    return await conversation.queue.add(text, delivery=Delivery.TOOL)


def let_go(tool: StubTool) -> None:
    assert tool.release is not None
    tool.release.set()


async def said_to_model(harness: EngineHarness, conversation: Conversation) -> list[str]:
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
        assert await said_to_model(harness, conversation) == ["go", "use tabs"]
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
        assert await said_to_model(harness, conversation) == ["go", "use tabs"]


async def test_the_end_of_the_run_sends_it_as_a_message(tmp_path: Path) -> None:
    async with at_work(tmp_path, RUNS, DONE, DONE) as (harness, conversation, tool):
        await conversation.queue.add("later")
        let_go(tool)
        await until(lambda: len(harness.provider.requests) == 3)
        await conversation.wait_idle()
        assert await said_to_model(harness, conversation) == ["go", "later"]
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
        assert await said_to_model(harness, conversation) == ["go", "now, changed", "when idle", "not now"]


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
        assert await said_to_model(harness, conversation) == ["use tabs"]


async def test_a_stop_before_the_delivery_leaves_it_in_the_queue_held(tmp_path: Path) -> None:
    async with at_work(tmp_path, RUNS, RUNS_AGAIN, DONE) as (harness, conversation, _):
        await steer(conversation)
        conversation.cancel()
        await conversation.wait_idle()
        assert [(one.text, one.delivery) for one in conversation.queue.waiting] == [("use tabs", Delivery.IDLE)]
        assert harness.seen(QueueChanged)[-1].held
        assert await said_to_model(harness, conversation) == ["go"]


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
        assert await said_to_model(harness, conversation) == ["go", "use tabs", "other"]
        assert await harness.store.queue.read_queue(conversation.id) == ()


@pytest.mark.parametrize("pieces", range(1, 4))
async def test_several_are_delivered_in_their_order(tmp_path: Path, pieces: int) -> None:
    texts = [f"note {number}" for number in range(pieces)]
    async with at_work(tmp_path, RUNS, DONE) as (harness, conversation, tool):
        for text in texts:
            await steer(conversation, text)
        let_go(tool)
        await conversation.wait_idle()
        assert await said_to_model(harness, conversation) == ["go", *texts]
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
        sent = [text for text in await said_to_model(harness, conversation) if text == "use tabs"]
        accepted = (number, moment) != (1, "before")
        delivered = number > 2 or (number, moment) == (2, "after")
        assert (queued, sent) == (["use tabs"] * (accepted and not delivered), ["use tabs"] * delivered)
        assert harness.provider.requests == [], "nothing is sent at boot"
        assert conversation.queue.held == bool(queued)
        assert all(one.delivery is Delivery.IDLE for one in conversation.queue.waiting)
