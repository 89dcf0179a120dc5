"""The reason of a pass that failed is still on the board after a restart, and goes with the next pass."""

from __future__ import annotations

from pathlib import Path

from engine.records.tracked_tasks import TrackingStatus
from tests.support.engine import engine_harness
from tests.support.storage import query
from tests.support.tracking import BY_HAND, FINISH, agent, append, insert, say

REFUSED = "Task 7 is out of range; the board has no tasks."


async def failed(home: Path) -> str:
    """A conversation whose only pass failed, in a process that has ended."""
    async with engine_harness(home, provider=agent([append(7, 1)]), settings=BY_HAND) as harness:
        conversation = await harness.conversation()
        await say(conversation, "first")
        status = await harness.engine.tasks.flush(conversation.id)
        assert status == TrackingStatus(failed=2, enabled=True, problem=REFUSED)
        return conversation.id


async def test_a_restart_shows_the_reason_before_and_after_the_conversation_is_opened(tmp_path: Path) -> None:
    conversation_id = await failed(tmp_path)
    async with engine_harness(tmp_path, provider=agent(), settings=BY_HAND) as harness:
        assert (await harness.engine.tasks.board(conversation_id)).status.problem == REFUSED
        await harness.engine.open(conversation_id)
        assert (await harness.engine.tasks.board(conversation_id)).status.problem == REFUSED


async def test_the_next_pass_that_succeeds_takes_the_reason_away_for_good(tmp_path: Path) -> None:
    conversation_id = await failed(tmp_path)
    provider = agent([insert(0, "A"), append(1, 1, 2), FINISH])
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        await harness.engine.open(conversation_id)
        assert await harness.engine.tasks.flush(conversation_id) == TrackingStatus(success=2, enabled=True)
        assert query(harness.store.path, "SELECT tracking_problem FROM conversations") == [("",)]


async def test_a_fork_of_failed_messages_has_their_reason(tmp_path: Path) -> None:
    conversation_id = await failed(tmp_path)
    async with engine_harness(tmp_path, provider=agent(), settings=BY_HAND) as harness:
        copy = (await harness.store.library.fork(conversation_id, "copy", 99.0)).id
        assert (await harness.engine.tasks.board(copy)).status.problem == REFUSED
