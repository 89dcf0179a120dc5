"""Passes of the task agent over stored messages: the board, the status of each message, and the cost."""

from __future__ import annotations

from pathlib import Path

from engine.records.model_calls import CallPurpose
from engine.records.tracked_tasks import TrackingStatus
from tests.support.engine import engine_harness
from tests.support.tracking import BY_HAND, FINISH, TRACKING, agent, append, board, insert, say, settled


async def test_messages_become_tasks_with_their_links(tmp_path: Path) -> None:
    provider = agent([insert(0, "write the parser")], [append(1, 1, 2, progress="The parser is written"), FINISH])
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        conversation = await harness.conversation()
        await say(conversation, "write the parser")
        assert await harness.engine.tasks.flush(conversation.id) == TrackingStatus(success=2, enabled=True)
        assert await board(harness, conversation) == [(1, "write the parser", "running", (1, 2))]
        (calls,) = [
            one for one in await harness.store.library.calls(conversation.id) if one.purpose is CallPurpose.TRACKING
        ]
        assert (calls.calls, calls.totals.cost_usd) == (2, 0.02)


async def test_a_pass_begins_by_itself_after_silence(tmp_path: Path) -> None:
    provider = agent([insert(0, "write the parser"), FINISH])
    async with engine_harness(tmp_path, provider=provider, settings=TRACKING) as harness:
        conversation = await harness.conversation()
        await say(conversation, "write the parser")
        assert await settled(harness, conversation) == TrackingStatus(success=2, enabled=True)
        assert await board(harness, conversation) == [(1, "write the parser", "pending", ())]
