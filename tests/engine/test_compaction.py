"""A window that fills up: when older messages are summarized, what is sent afterwards, and what goes wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.requests import Accepted
from engine.machine.events import CompactAsked
from engine.machine.messages import Role, TextBlock, ToolUseBlock, Usage
from engine.machine.states import AwaitingLlm, Compacting, CompactingContext, Idle
from engine.ports import ModelMessage, ModelRequest
from engine.providers.scripted import WINDOW, Call, Fail, Hang, Reply, Text
from engine.records import ContextView
from engine.updates import ContextChanged, MessageSaved, Noticed
from tests.support.engine import Bench, engine_bench, until

FULL = Usage(input_tokens=WINDOW * 3 // 4, output_tokens=0)
"""Exactly the threshold of SPEC C12."""
NEARLY = Usage(input_tokens=WINDOW * 3 // 4 - 1, output_tokens=0)
SUMMARY = Reply((Text("the plan is kept"),), usage=Usage(500, 40), when="Write the summary now.", always=True)


def answer(text: str = "word " * 200, usage: Usage = Usage(100, 20)) -> Reply:
    return Reply((Text(text),), usage=usage, when="[go]")


def notices(bench: Bench) -> list[str]:
    return [
        block.text
        for update in bench.seen(MessageSaved)
        if update.message.role is Role.SYSTEM
        for block in update.message.blocks
        if isinstance(block, TextBlock)
    ]


async def talk(conversation: Conversation, *texts: str) -> None:
    for text in texts:
        assert isinstance(await conversation.say(f"[go] {text}"), Accepted)
        await conversation.wait_idle()


def is_summary(request: ModelRequest) -> bool:
    return "Write the summary now." in str(request.messages[-1].blocks)


async def test_a_message_into_a_full_window_is_answered_after_older_ones_were_summarized(tmp_path: Path) -> None:
    replies = [answer() for _ in range(3)] + [answer(usage=FULL), answer("after")]
    async with engine_bench(tmp_path, SUMMARY, *replies) as bench:
        conversation = await bench.conversation()
        await talk(conversation, "one", "two", "three", "four", "five")
        before = conversation.record.message_count
        summary, last = bench.provider.requests[-2:]
        assert is_summary(summary)
        assert summary.tools == ()
        assert "[go] one" in str(summary.messages)
        assert last.messages[0].blocks[0] == TextBlock(
            "[Summary of earlier conversation]\nthe plan is kept\n\nThe user's own words, newest first:\n- [go] two"
            "\n- [go] one"
        )
        assert last.messages[1].blocks == (TextBlock("I understand the context from our previous conversation."),)
        assert last.messages[-1] == ModelMessage(Role.USER, (TextBlock("[go] five"),))
        assert "Summarized" in notices(bench)[0]
        record = await bench.store.conversation(conversation.id)
        assert record is not None
        assert (record.summary, record.context_start_seq) == (conversation.record.summary, 5)
        assert record.message_count == before
        assert len(await bench.store.messages(conversation.id)) == before
