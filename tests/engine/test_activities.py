"""Activity of every conversation for a list, with one update about an arriving answer."""

from __future__ import annotations

from pathlib import Path

from engine.activities import ActivityReporter
from engine.executor.requests import Activity
from engine.machine.states import AwaitingLlm, Idle, Requesting, Run
from engine.updates import LiveTextDropped, Noticed, StateChanged, TextArrived, ToolDrafted
from tests.support.engine import engine_harness, until
from tests.support.scripted_provider import Hang, Reply, Text

WAITS = AwaitingLlm(1, Run("run", 5), Requesting())


async def test_an_answer_that_arrives_is_told_once_and_its_end_too(tmp_path: Path) -> None:
    pieces = tuple(Text(f"piece {number} ") for number in range(50))
    async with engine_harness(tmp_path, Reply((*pieces, Hang()))) as harness:
        conversation = await harness.conversation()
        seen: list[Activity] = []
        harness.engine.watch(seen.append)
        await conversation.say("go")
        await until(lambda: any(one.writing for one in seen))
        await until(lambda: len(harness.seen(TextArrived)) == 50)
        assert [isinstance(one.state, AwaitingLlm) for one in seen if one.writing] == [True]
        conversation.cancel()
        await conversation.wait_idle()
        assert (seen[-1].writing, isinstance(seen[-1].state, Idle)) == (False, True)


async def test_a_new_request_waits_again_until_its_own_answer_arrives(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as harness:
        conversation = await harness.conversation()
        seen: list[Activity] = []
        teller = ActivityReporter(conversation, [seen.append])
        asked = StateChanged(WAITS, 0.0)
        for update in (asked, TextArrived("a"), TextArrived("b"), asked, ToolDrafted("patch", 9), Noticed("no news")):
            teller.follow(update)
        teller.follow(LiveTextDropped(cancelled=False))
        teller.follow(TextArrived("again"))
        assert [one.writing for one in seen] == [False, True, False, True, True]
