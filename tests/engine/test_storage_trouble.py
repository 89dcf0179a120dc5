"""A store that fails in the middle of a run: nothing starts, nothing is lost, and it goes on without a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.executor.requests import Accepted, Refused
from engine.machine.messages import Role, TextBlock, ToolResultBlock
from engine.machine.states import Errored, Idle
from engine.ports import Committed, Move, StorageError
from engine.store import Store
from engine.updates import RunEnded
from tests.support.engine import EngineHarness, engine_harness
from tests.support.scripted_provider import Reply, ScriptedCall, Text

FULL = "The disk is full: free some space."
HELLO = Reply((Text("hello"),))


def break_after(
    harness: EngineHarness,
    monkeypatch: pytest.MonkeyPatch,
    commits: int,
    failures: int = 10**6,
    error: Exception = StorageError(FULL),  # noqa: B008 - raised, never changed
) -> None:
    """Let `commits` moves through, then fail `failures` of them."""
    real, count = Store.commit, 0

    async def commit(store: Store, move: Move) -> Committed:
        nonlocal count
        count += 1
        if commits < count <= commits + failures:
            raise error
        return await real(store, move)

    monkeypatch.setattr(Store, "commit", commit)


async def test_a_message_that_cannot_be_stored_is_refused_and_the_model_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        break_after(harness, monkeypatch, 0)
        assert await conversation.say("hi") == Refused(FULL)
        assert isinstance(conversation.state, Errored)
        assert harness.provider.requests == []
        assert await harness.store.messages(conversation.id) == []


async def test_once_the_store_works_again_the_same_message_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        break_after(harness, monkeypatch, 0, failures=2)
        assert isinstance(await conversation.say("hi"), Refused)
        assert isinstance(await conversation.say("hi"), Refused)
        assert isinstance(await conversation.say("hi"), Accepted)
        assert isinstance(await conversation.wait_idle(), Idle)


async def test_a_mistake_of_phoenix_itself_leaves_no_conversation_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        break_after(harness, monkeypatch, 1, failures=1, error=KeyError("no such column"))
        await conversation.say("hi")
        assert isinstance(await conversation.wait_idle(), Errored)
        assert "Internal error" in harness.seen(RunEnded)[-1].error
        assert isinstance(await conversation.retry(), Accepted)
        assert isinstance(await conversation.wait_idle(), Idle)


@pytest.mark.parametrize("stored", [1, 2, 3])
async def test_a_run_that_loses_its_store_ends_and_the_conversation_is_valid_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: int
) -> None:
    tools = Reply((ScriptedCall("bash", "{}", "t1"), ScriptedCall("bash", "{}", "t2")))
    async with engine_harness(tmp_path, tools, HELLO, HELLO) as harness:
        conversation = await harness.conversation()
        break_after(harness, monkeypatch, stored, failures=1)
        await conversation.say("go")
        state = await conversation.wait_idle()
        assert isinstance(state, Errored)
        assert (state.kind, state.message) == ("storage", FULL)
        assert harness.seen(RunEnded)[-1].error_code == "storage"
        await conversation.say("again")
        assert isinstance(await conversation.wait_idle(), Idle)
        rows = await harness.store.messages(conversation.id)
        assert rows[-1].blocks == (TextBlock("hello"),)
        answered = [b.tool_use_id for row in rows for b in row.blocks if isinstance(b, ToolResultBlock)]
        assert answered == ([] if stored == 1 else ["t1", "t2"])
        assert [row.role for row in rows if row.role is Role.USER]
