"""A read-only window follows the owner of its conversation, and has it once the owner lets go (SPEC BED-011)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine import following
from engine.conversation import Conversation
from engine.executor.requests import Accepted
from engine.machine.messages import TextBlock, ToolStatus
from engine.machine.states import AwaitingLlm, Idle, ToolExecuting, is_busy
from engine.ports import ConversationChanges
from engine.updates import ConversationChanged, MessageSaved, Snapshot, StateChanged, ToolEnded, Update
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text

HELLO = Reply((Text("Hello."),))
AGAIN = Reply((Text("Again."),))
BASH = Reply((ScriptedCall("bash", '{"command": "sleep"}', "b1"),))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(following, "AGAIN", 0.02)


@asynccontextmanager
async def watched(
    second: EngineHarness, conversation: Conversation
) -> AsyncIterator[tuple[Conversation, list[Update]]]:
    seen: list[Update] = []
    other = await second.engine.open(conversation.id)
    leave = await other.subscribe(seen.append)
    yield other, seen
    leave()


def words(seen: list[Update]) -> list[str]:
    found = [update.message for update in seen if isinstance(update, MessageSaved)]
    return [block.text for one in found for block in one.blocks if isinstance(block, TextBlock)]


async def test_what_the_owner_stores_is_told_in_order(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event())
    assert tool.release is not None
    async with engine_harness(tmp_path, HELLO, BASH, AGAIN, tool=tool) as owner, engine_harness(tmp_path) as second:
        conversation = await owner.conversation()
        await run_turn(conversation, "one")
        async with watched(second, conversation) as (other, seen):
            assert isinstance(seen[0], Snapshot)
            assert len(seen[0].messages) == 2
            await conversation.say("two")
            await tool.started.wait()
            await until(lambda: is_busy(other.state))
            tool.release.set()
            await conversation.wait_idle()
            await until(lambda: "Again." in words(seen) and isinstance(other.state, Idle))
            assert words(seen) == ["two", "Again."]
            (ended,) = [update.result for update in seen if isinstance(update, ToolEnded)]
            assert (ended.call_id, ended.text, ended.status) == ("b1", "ran sleep", ToolStatus.SUCCESS)
            moves = [type(update.state) for update in seen if isinstance(update, StateChanged)]
            assert moves[-1] is Idle
            assert set(moves) & {AwaitingLlm, ToolExecuting}
            assert other.record.message_count == conversation.record.message_count
            assert other.read_only.startswith(f"Open in another window (pid {os.getpid()})")


async def test_a_title_of_the_owner_is_told(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as owner, engine_harness(tmp_path) as second:
        conversation = await owner.conversation()
        async with watched(second, conversation) as (other, seen):
            await conversation.change(ConversationChanges(title="Another name"))
            await until(lambda: other.record.title == "Another name")
            assert any(isinstance(update, ConversationChanged) for update in seen)


async def test_a_window_has_the_conversation_once_its_owner_lets_go(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as owner, engine_harness(tmp_path, AGAIN) as second:
        conversation = await owner.conversation()
        await run_turn(conversation, "one")
        async with watched(second, conversation) as (other, seen):
            assert other.read_only
            await owner.engine.forget(conversation.id)
            await until(lambda: not other.read_only)
            assert isinstance(await other.say("two"), Accepted)
            await other.wait_idle()
            assert words(seen) == ["two", "Again."]
            last = await owner.engine.open(conversation.id)
            assert last.read_only.startswith("Open in another window"), "the other way round now"


async def test_of_two_windows_one_has_it_and_the_other_follows_that_one(tmp_path: Path) -> None:
    async with (
        engine_harness(tmp_path) as owner,
        engine_harness(tmp_path, HELLO) as second,
        engine_harness(tmp_path, AGAIN) as third,
    ):
        conversation = await owner.conversation()
        async with watched(second, conversation) as (one, _), watched(third, conversation) as (other, _):
            await owner.engine.forget(conversation.id)
            await until(lambda: not (one.read_only and other.read_only))
            writer, reader = (other, one) if one.read_only else (one, other)
            assert reader.read_only
            await run_turn(writer, "mine")
            await until(lambda: reader.record.message_count == 2)


async def test_nobody_who_looks_on_means_no_looks_and_no_taking(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as owner, engine_harness(tmp_path) as second:
        unwatched, conversation = await owner.conversation(), await owner.conversation()
        left = await second.engine.open(unwatched.id)
        await owner.engine.forget(unwatched.id)
        async with watched(second, conversation) as (other, _):
            await owner.engine.forget(conversation.id)
            await until(lambda: not other.read_only)
            assert left.read_only


async def test_a_deleted_conversation_is_not_taken(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as owner, engine_harness(tmp_path) as second:
        conversation = await owner.conversation()
        async with watched(second, conversation) as (other, _):
            await conversation.change(ConversationChanges(deleted=True))
            await owner.engine.forget(conversation.id)
            await until(lambda: other.record.deleted)
            assert other.read_only
