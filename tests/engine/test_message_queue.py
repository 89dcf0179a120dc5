"""The queue: sent one by one when the conversation rests, held by a stop, an error or a restart, never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.conversation import Conversation
from engine.executor.message_queue import MOST_WAITING
from engine.executor.requests import Accepted, Refused, RunCaps
from engine.machine.messages import Origin, Role, TextBlock
from engine.machine.states import Errored, Idle, is_busy
from engine.records import QueuedMessage
from engine.updates import MessageSaved, QueueChanged
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.scripted_provider import Fail, Hang, Reply, ScriptedCall, Text

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
        conversation = await harness.conversation()
        await conversation.say("first")
        assert isinstance(await conversation.queue.add("second"), Accepted)
        assert isinstance(await conversation.queue.add("third", caps=RunCaps(max_turns=3)), Accepted)
        await rested(conversation, lambda: len(harness.provider.requests) == 3)
        assert await said(harness, conversation) == ["first", "second", "third"]
        assert [len(request.messages) for request in harness.provider.requests] == [1, 3, 5]
        assert await harness.store.queue.read_queue(conversation.id) == ()
        assert texts(conversation) == []


async def test_the_message_leaves_the_queue_in_the_very_transaction_that_stores_it(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, HANGS) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
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
        conversation = await harness.conversation()
        await conversation.say("first")
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
        conversation = await harness.conversation()
        await conversation.say("first")
        await until(lambda: len(harness.provider.requests) == 1)
        await conversation.queue.add("second")
        conversation.cancel()
        await conversation.wait_idle()
        await conversation.queue.remove(conversation.queue.waiting[0].id)
        assert harness.seen(QueueChanged)[-1].waiting == ()


async def test_a_message_queued_in_the_moment_of_a_stop_is_held_too(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
        await until(lambda: len(harness.provider.requests) == 1)
        adding = asyncio.create_task(conversation.queue.add("second"))
        await asyncio.sleep(0)
        conversation.cancel()
        await adding
        await conversation.wait_idle()
        assert (texts(conversation), conversation.queue.held) == (["second"], True)


async def test_an_error_holds_the_queue_and_a_good_retry_lets_it_go_on(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Fail("no key", "auth", retryable=False),)), HELLO, HELLO) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
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
        conversation = await harness.conversation()
        await conversation.say("first")
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
        conversation = await harness.conversation()
        await conversation.say("first")
        await until(lambda: len(harness.provider.requests) == 1)
        await conversation.queue.add("later")
        await conversation.interrupt_and_say("now")
        await rested(conversation, lambda: len(harness.provider.requests) == 3)
        assert await said(harness, conversation) == ["first", "now", "later"]


async def test_one_of_the_queue_is_sent_now_and_the_others_follow(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS, HELLO, HELLO) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
        await until(lambda: len(harness.provider.requests) == 1)
        await conversation.queue.add("one")
        await conversation.queue.add("two")
        assert isinstance(await conversation.queue.send_now(conversation.queue.waiting[1].id), Accepted)
        await rested(conversation, lambda: len(harness.provider.requests) == 3)
        assert await said(harness, conversation) == ["first", "two", "one"]


async def test_a_queued_message_is_edited_removed_and_gone_ones_are_refused(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
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
        conversation = await harness.conversation()
        await conversation.say("first")
        await conversation.queue.add("look", ["no-such-image"])
        await until(lambda: conversation.queue.held)
        assert texts(conversation) == ["look"]
        assert await said(harness, conversation) == ["first"]


async def test_the_queue_is_told_after_the_message_is_in_the_transcript(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, HELLO) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
        await conversation.queue.add("second")
        await rested(conversation, lambda: len(harness.provider.requests) == 2)
        kinds = [type(update).__name__ for update in harness.updates if isinstance(update, MessageSaved | QueueChanged)]
        assert kinds == [*["MessageSaved"] * 1, "QueueChanged", *["MessageSaved"] * 2, "QueueChanged", "MessageSaved"]


async def test_the_queue_has_an_end(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
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
            conversation = await harness.conversation()
            await conversation.say("first")
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
        conversation = await harness.conversation()
        await conversation.say("first")
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
        conversation = await harness.conversation()
        await conversation.say("first")
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
