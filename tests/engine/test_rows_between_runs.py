"""Rows of a request, kept between two runs: fewer reads, never other content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor import session_parts as sessions
from engine.machine.messages import TextBlock
from engine.ports import ModelMessage
from engine.records import StoredMessage
from tests.support.engine import EngineHarness, engine_harness, run_turn
from tests.support.scripted_provider import Reply, ScriptedCall, Text

ONE, TWO, THREE = (Reply((Text(text),)) for text in ("one", "two", "three"))
LOOK = Reply((Text("I look."), ScriptedCall("bash", '{"command": "ls"}', "t1")))


class Reads:
    """Counts the reads of whole conversations; a snapshot reads with a limit."""

    def __init__(self, harness: EngineHarness) -> None:
        self.count = 0
        self._read = harness.store.messages
        harness.store.messages = self.messages  # type: ignore[method-assign, assignment] # counted, then the real one

    async def messages(
        self, conversation_id: str, *, first_seq: int = 1, last_seq: int | None = None, limit: int | None = None
    ) -> Sequence[StoredMessage]:
        self.count += limit is None
        return await self._read(conversation_id, first_seq=first_seq, last_seq=last_seq, limit=limit)


def kept(conversation: Conversation) -> bool:
    return conversation._session.window.rows is not None


def texts(messages: Sequence[ModelMessage]) -> list[str]:
    return [block.text for message in messages for block in message.blocks if isinstance(block, TextBlock)]


async def test_the_second_message_reads_nothing_again_and_sends_everything(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ONE, LOOK, TWO, THREE) as harness:
        reads, conversation = Reads(harness), await harness.conversation()
        for text in ("a", "b", "c"):
            await run_turn(conversation, text)
        assert reads.count == 1
        assert texts(harness.provider.requests[-1].messages) == ["a", "one", "b", "I look.", "two", "c"]


async def test_nothing_is_kept_once_nobody_looks_on(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ONE, TWO, THREE) as harness:
        reads = Reads(harness)
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main"))
        leave, leave_too = [await conversation.subscribe(lambda _update: None) for _ in range(2)]
        await run_turn(conversation, "a")
        assert kept(conversation)
        leave()
        leave()
        assert kept(conversation), "another one still looks on"
        leave_too()
        assert not kept(conversation)
        await run_turn(conversation, "b")
        assert not kept(conversation)
        await run_turn(conversation, "c")
        assert reads.count == 3
        assert texts(harness.provider.requests[-1].messages) == ["a", "one", "b", "two", "c"]


async def test_a_long_conversation_is_not_kept(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ONE, TWO) as harness:
        conversation = await harness.run("a")
        rows = await conversation._session.rows()
        conversation._session.window.rest(is_watched=True)
        assert kept(conversation)
        long = TextBlock("x" * 4 * (sessions.KEPT_TOKENS + 1))
        rows.append(replace(rows[0], blocks=(long,)))
        conversation._session.window.rest(is_watched=True)
        assert not kept(conversation)


async def test_many_short_messages_are_kept(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ONE, TWO) as harness:
        reads, conversation = Reads(harness), await harness.conversation()
        await run_turn(conversation, "a")
        rows = await conversation._session.rows()
        rows[:0] = [rows[0]] * 5_000
        conversation._session.window.rest(is_watched=True)
        await run_turn(conversation, "b")
        assert reads.count == 1


async def test_a_message_that_was_read_already_is_not_counted_twice(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ONE, TWO) as harness:
        conversation = await harness.run("a")
        session = conversation._session
        session.window.forget()
        rows = tuple(await session.rows())
        session.remember(rows[-1:])
        assert tuple(await session.rows()) == rows
        await run_turn(conversation, "b")
        assert texts(harness.provider.requests[-1].messages) == ["a", "one", "b"]


async def test_a_closed_conversation_keeps_nothing(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ONE) as harness:
        conversation = await harness.run("a")
        await conversation.close()
        assert not kept(conversation)
        assert conversation._session.window._timer is None
