"""A history that does not fit is repaired in the request and stays untouched in the store (SPEC UNI-15)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from engine.context.assemble import MISSING_RESULT
from engine.executor.engine_settings import EngineSettings
from engine.executor.model_call import rename_repeated_ids
from engine.machine.messages import (
    Block,
    ImageBlock,
    NewMessage,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    text_in,
)
from engine.machine.states import Idle
from engine.machine.texts import INTERRUPTED
from engine.ports import AppendMessage
from tests.support.engine import EngineHarness, engine_harness, run_turn
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tests.support.storage import move, new_id, query

Said: TypeAlias = tuple[Role, tuple[Block, ...]]
LOGGER = "engine.context.assemble"
HELLO = Reply((Text("Hello."),))


def u(*blocks: Block | str) -> Said:
    """A user message: `u("a")` is the U of the vectors."""
    return Role.USER, tuple(TextBlock(one) if isinstance(one, str) else one for one in blocks)


def a(*blocks: Block | str) -> Said:
    """A reply; `a(use("t1"))` is A[t1]."""
    return Role.ASSISTANT, tuple(TextBlock(one) if isinstance(one, str) else one for one in blocks)


def use(call: str) -> ToolUseBlock:
    return ToolUseBlock(call, "bash", '{"command":"ls"}')


def r(call: str) -> ToolResultBlock:
    return ToolResultBlock(call, (TextBlock(f"result of {call}"),))


def e(call: str) -> ToolResultBlock:
    return ToolResultBlock(call, (TextBlock(MISSING_RESULT),), is_error=True)


async def asked_after(harness: EngineHarness, history: Sequence[Said]) -> list[Said]:
    """Messages to the model when the user says `next` after this history, without that message's own notes."""
    conversation = await harness.conversation()
    for role, blocks in history:
        origin = Origin.HUMAN if role is Role.USER else Origin.LLM
        message = AppendMessage(NewMessage(new_id(), role, origin, blocks))
        await harness.store.commit(move(conversation.id, message))
    before = await harness.store.messages(conversation.id)
    await harness.engine.forget(conversation.id)
    again = await harness.engine.open(conversation.id)
    await run_turn(again, "next")
    after = await harness.store.messages(conversation.id)
    assert after[: len(before)] == before, "the store keeps what it has"
    numbers = [message.message_number for message in after]
    turns = [message.turn_number for message in after]
    for turn in set(turns):
        mine = [number for number, own in zip(numbers, turns, strict=True) if own == turn]
        assert mine == list(range(len(mine)))
    sent = [(message.role, message.blocks) for message in harness.provider.requests[-1].messages]
    return [(role, tuple(block for block in blocks if not _is_note(block))) for role, blocks in sent]


def _is_note(block: Block) -> bool:
    return isinstance(block, TextBlock) and block.text.startswith("<")


NEXT = u("next")
CLEAN: dict[str, tuple[list[Said], list[Said]]] = {
    "1 a clean exchange": ([u("q"), a("x")], [u("q"), a("x"), NEXT]),
    "2 a clean tool round": (
        [u("q"), a("x", use("t1")), u(r("t1")), a("y")],
        [u("q"), a("x", use("t1")), u(r("t1")), a("y"), NEXT],
    ),
    "3 a reply after a call without its result": (
        [u("q"), a(use("t1")), a("y")],
        [u("q"), a(use("t1")), u(e("t1")), a("y"), NEXT],
    ),
    "some results missing": (
        [u("q"), a(use("t1"), use("t2")), u(r("t2")), a("y")],
        [u("q"), a(use("t1"), use("t2")), u(e("t1"), r("t2")), a("y"), NEXT],
    ),
    "results missing from a message with words": (
        [u("q"), a(use("t1"), use("t2")), u("stop", r("t1")), a("y")],
        [u("q"), a(use("t1"), use("t2")), u(r("t1"), e("t2"), "stop"), a("y"), NEXT],
    ),
    "6 two replies in a row": ([u("q"), a("x"), a("y")], [u("q"), a("x", "y"), NEXT]),
    "7 two user messages in a row": ([u("q"), u("p"), a("x")], [u("q", "p"), a("x"), NEXT]),
    "8 a call at the end, stored as interrupted at the next start": (
        [u("q"), a("x", use("t1"))],
        [u("q"), a("x", use("t1")), u(ToolResultBlock("t1", (TextBlock(INTERRUPTED),), is_error=True), "next")],
    ),
}


@pytest.mark.parametrize(("history", "sent"), CLEAN.values(), ids=CLEAN)
async def test_the_vectors_of_the_specification(tmp_path: Path, history: list[Said], sent: list[Said]) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        assert await asked_after(harness, history) == sent


FOREIGN: dict[str, tuple[list[Said], list[Said]]] = {
    "a call that a user makes": (
        [u("q", use("t1")), a("x"), u(r("t1"))],
        [u("q", 'bash {"command":"ls"}'), a("x"), NEXT],
    ),
    "a result that a reply holds": (
        [u("q"), a("x", use("t1"), r("t1")), a("y")],
        [u("q"), a("x", use("t1"), "result of t1"), u(e("t1")), a("y"), NEXT],
    ),
    "thinking of a user": ([u(ThinkingBlock("hm", "sig"), "q"), a("x")], [u("hm", "q"), a("x"), NEXT]),
    "an image in a reply": ([u("q"), a("x", ImageBlock("i", 1, 1))], [u("q"), a("x", "(an image)"), NEXT]),
}


@pytest.mark.parametrize(("history", "sent"), FOREIGN.values(), ids=FOREIGN)
async def test_an_unknown_pattern_is_kept_as_text_and_the_log_is_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, history: list[Said], sent: list[Said]
) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        with caplog.at_level(logging.WARNING, LOGGER):
            assert await asked_after(harness, history) == sent
    assert any("holds blocks of another role: kept as text" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ('[{"type":"hologram","text":"a\\u001b[2J word"}]', "a\x1b[2J word"),
        ('[{"type":"hologram","x":[1,2]}]', '{"type":"hologram","x":[1,2]}'),
        ('[{"type":"text"}]', '{"type":"text"}'),
        ("[1]", "1"),
        ('{"type":"video","text":"alone"}', "alone"),
        ("not json at all", "not json at all"),
        ("", ""),
        ("[" * 100_000, "[" * 4_000),
    ],
)
async def test_a_message_that_cannot_be_read_costs_only_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stored: str, text: str
) -> None:
    async with engine_harness(tmp_path, HELLO, HELLO) as harness:
        conversation = await harness.run("first")
        await harness.engine.forget(conversation.id)
        sql = "UPDATE messages SET content_json = ?, usage_json = 'x', flags_json = '[]' WHERE seq = 2"
        query(harness.store.path, sql, stored)
        with caplog.at_level(logging.WARNING, "engine.store.messages"):
            again = await harness.engine.open(conversation.id)
            await run_turn(again, "next")
        messages = await harness.store.messages(conversation.id)
        assert messages[1].blocks == (TextBlock(f"(Phoenix cannot read this part) {text}"),)
        assert (messages[1].usage, messages[1].cut) == (None, "")
        assert query(harness.store.path, "SELECT content_json FROM messages WHERE seq = 2") == [(stored,)]
        assert len(harness.provider.requests) == 2
        assert any("cannot be read whole" in message for message in caplog.messages)


async def test_a_part_that_cannot_be_read_leaves_the_others_of_its_message(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.run("first")
        await harness.engine.forget(conversation.id)
        parts = '[{"type":"text","text":"before"},{"type":"video"},{"type":"text","text":"after"}]'
        query(harness.store.path, "UPDATE messages SET content_json = ? WHERE seq = 2", parts)
        [_, answer] = await harness.store.messages(conversation.id)
        assert [block.text for block in answer.blocks if isinstance(block, TextBlock)] == [
            "before",
            '(Phoenix cannot read this part) {"type":"video"}',
            "after",
        ]


def sent(harness: EngineHarness) -> list[str]:
    return [text_in(message.blocks) for message in harness.provider.requests[-1].messages]


async def test_only_the_newest_turns_are_sent_and_all_are_kept(tmp_path: Path) -> None:
    replies = [Reply((Text(f"answer {n}"),)) for n in range(4)]
    async with engine_harness(tmp_path, *replies, settings=EngineSettings(history_turns=2)) as harness:
        conversation = await harness.conversation()
        for n in range(4):
            await run_turn(conversation, f"ask {n}")
        assert sent(harness) == ["ask 2", "answer 2", "ask 3"]
        assert len(await harness.store.messages(conversation.id)) == 8
        report = await conversation.context.report()
        assert report.measured.messages == 4


async def test_an_id_of_a_call_that_is_no_longer_sent_is_not_used_again(tmp_path: Path) -> None:
    """A server that numbers the calls of each request would break the record of the earlier one."""
    call = Reply((ScriptedCall("bash", '{"command": "ls"}', "call_0"),))
    script = (call, Reply((Text("a"),)), call, Reply((Text("b"),)))
    async with engine_harness(tmp_path, *script, settings=EngineSettings(history_turns=1)) as harness:
        conversation = await harness.conversation()
        for text in ("first", "second"):
            await run_turn(conversation, text)
        rows = await harness.store.messages(conversation.id)
        calls = [block.id for row in rows for block in row.blocks if isinstance(block, ToolUseBlock)]
        assert calls == ["call_0", "call_0_dedup_1"]
        assert sent(harness)[0] == "second"


async def test_an_id_of_a_call_that_was_summarized_is_not_used_again(tmp_path: Path) -> None:
    call = Reply((ScriptedCall("bash", '{"command": "ls"}', "call_0"),))
    answers = [Reply((Text(f"answer {n}, in more words than its summary has"),)) for n in range(7)]
    script = (call, *answers, call, Reply((Text("b"),)), call)
    summary = Reply((Text("so far"),), when="Write the summary now.")
    async with engine_harness(tmp_path, summary, *script, Reply((Text("c"),))) as harness:
        conversation = await harness.conversation()
        for n in range(7):
            await conversation.say(str(n))
            await conversation.wait_idle()
        await conversation.context.compact()
        await conversation.wait_idle()
        assert conversation.record.context_start_seq > 4
        for text in ("again", "and again"):
            assert isinstance(await run_turn(conversation, text), Idle)
        rows = await harness.store.messages(conversation.id)
        calls = [block.id for row in rows for block in row.blocks if isinstance(block, ToolUseBlock)]
        assert calls == ["call_0", "call_0_dedup_1", "call_0_dedup_2"]


def test_a_call_without_an_id_gets_one_each_time() -> None:
    blocks = (ToolUseBlock("", "bash", "{}"), ToolUseBlock("", "bash", "{}"), ToolUseBlock("a\x00b", "bash", "{}"))
    ids = [block.id for block in rename_repeated_ids(blocks, {"call_dedup_1"}) if isinstance(block, ToolUseBlock)]
    assert ids == ["call_dedup_2", "call_dedup_3", "ab"]
