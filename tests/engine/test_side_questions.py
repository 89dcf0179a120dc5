"""A question beside a conversation is answered while it works, leaves nothing behind, and its cost is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.machine.messages import Role, TextBlock, text_in
from engine.machine.states import is_busy
from engine.ports import ProviderError
from engine.records import SideExchange
from tests.support.engine import engine_harness, run_turn, until
from tests.support.scripted_provider import Fail, Hang, Reply, Text

BESIDE = "The question beside the conversation"
ANSWER = Reply((Text("The second try reuses a closed socket."),))
ASIDE = Reply((Text("Because of the pool."),), when=BESIDE)


async def test_it_is_answered_from_what_was_said_and_stored_nowhere(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ANSWER, ASIDE, Reply((Hang(),))) as harness:
        conversation = await harness.run("why does the retry hang?")
        rows = conversation.record.message_count
        spent = conversation.record.totals
        assert await conversation.side.ask("why closed?") == "Because of the pool."
        asked = harness.provider.requests[1]
        (block,) = asked.messages[-1].blocks
        assert isinstance(block, TextBlock)
        assert "why does the retry hang?" in block.text
        assert "reuses a closed socket" in block.text
        assert block.text.endswith(f"{BESIDE}:\nwhy closed?")
        assert asked.tools == ()
        assert conversation.record.message_count == rows
        assert conversation.record.totals.input_tokens > spent.input_tokens


async def test_the_agent_works_on_meanwhile(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Hang(),)), ASIDE) as harness:
        conversation = await harness.start("work")
        await until(lambda: bool(harness.provider.requests))
        assert await conversation.side.ask("why?") == "Because of the pool."
        assert is_busy(conversation.state)


async def test_a_model_that_cannot_be_asked_says_why(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ANSWER, Reply((Fail("It is overloaded."),), when=BESIDE)) as harness:
        conversation = await harness.run("hello")
        with pytest.raises(ProviderError, match="overloaded"):
            await conversation.side.ask("why?")


PROPOSES = "most likely send next"


@pytest.mark.parametrize(
    ("said", "proposed"),
    [("“Run the\ntests again.”", "Run the tests again."), ("NONE.", ""), ("", ""), ("word " * 40, "")],
)
async def test_the_next_message_is_proposed_in_one_line_and_paid_for(tmp_path: Path, said: str, proposed: str) -> None:
    async with engine_harness(tmp_path, ANSWER, Reply((Text(said),), when="Assistant:")) as harness:
        conversation = await harness.run("why does the retry hang?")
        spent = conversation.record.totals
        assert await conversation.side.suggestion() == proposed
        asked = harness.provider.requests[1]
        assert PROPOSES in " ".join(asked.system)
        assert asked.messages[-1].blocks == (
            TextBlock("User: why does the retry hang?\n\nAssistant: The second try reuses a closed socket."),
        )
        assert conversation.record.totals.input_tokens > spent.input_tokens


async def test_before_anything_was_answered_nothing_is_proposed_and_nobody_asked(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as harness:
        conversation = await harness.conversation()
        assert await conversation.side.suggestion() == ""
        assert harness.provider.requests == []


EARLIER = SideExchange("why closed?", "Because of the pool.")


async def test_a_follow_up_is_asked_with_the_answers_before_it(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, ANSWER, ASIDE) as harness:
        conversation = await harness.run("hello")
        many = [SideExchange(f"question {number}", "x" * 20_000) for number in range(20)]
        await conversation.side.ask("since when?", [*many, EARLIER])
        (block,) = harness.provider.requests[1].messages[-1].blocks
        assert isinstance(block, TextBlock)
        assert block.text.endswith(
            "Earlier the user asked you beside it:\nwhy closed?\n\nYou answered:\nBecause of the pool."
            f"\n\n{BESIDE}:\nsince when?"
        )
        assert "question 11" not in block.text
        assert "question 19" in block.text
        assert len(block.text) < 100_000


@pytest.mark.parametrize("busy", [False, True])
async def test_a_copy_ends_with_the_side_question_and_can_go_on(tmp_path: Path, busy: bool) -> None:
    first = Reply((Text("half"), Hang())) if busy else ANSWER
    async with engine_harness(tmp_path, first, Reply((Text("Go on."),), when="and now?")) as harness:
        conversation = await harness.start("hello")
        if busy:
            await until(lambda: bool(harness.provider.requests))
        else:
            await conversation.wait_idle()
        before = conversation.record.message_count
        copy = await harness.engine.fork(conversation.id, None, [EARLIER, SideExchange("since when?", "Monday.")])
        rows = await harness.store.messages(copy.id)
        texts = [text_in(row.blocks) for row in rows[-4:]]
        assert texts == ["why closed?", "Because of the pool.", "since when?", "Monday."]
        assert [row.role for row in rows[-4:]] == [Role.USER, Role.ASSISTANT] * 2
        assert conversation.record.message_count == before, "the conversation itself is left alone"
        await run_turn(copy, "and now?")
        assert "Go on." in [text_in(row.blocks) for row in await harness.store.messages(copy.id)]
        assert [text_in(message.blocks) for message in harness.provider.requests[-1].messages][-2].endswith("Monday.")
