"""Text of replies as it is stored, shown and sent again (SPEC CLAW-12, CLAW-13), also of a stream that breaks."""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import RunCaps
from engine.machine.messages import Block, Origin, Role, StopReason, TextBlock, ThinkingBlock, ToolUseBlock, text_in
from engine.machine.states import AwaitingLlm, Errored, Idle, RetryWait
from engine.ports import ModelMessage, Provider
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from engine.records import StoredMessage
from engine.updates import LiveTextDropped, MessageSaved, RunEnded, StateChanged, TextArrived
from tests.support.engine import EngineHarness, engine_harness, run_turn, until
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import recording, start, stop, text
from tests.support.scripted_provider import (
    Cut,
    Fail,
    Hang,
    Reply,
    Script,
    ScriptedCall,
    ScriptedProvider,
    Text,
    Thought,
)
from tests.support.storage import query

HALF = "The first half"
BROKE = Reply((Text(HALF, piece=5), Fail("The key was taken away.", "auth", retryable=False)))
REST = Reply((Text(" and the second."),))
CUT_OFF = "[Your reply broke off here: the call failed. Unless told otherwise, continue exactly where it ended.]"


def said(rows: list[StoredMessage]) -> list[tuple[str, str]]:
    """Role and text of each."""
    texts = ("".join(block.text for block in row.blocks if isinstance(block, TextBlock)) for row in rows)
    return [(row.role.value, text) for row, text in zip(rows, texts, strict=True)]


async def rows_of(harness: EngineHarness, conversation: Conversation) -> list[StoredMessage]:
    return await harness.store.messages(conversation.id)


async def test_the_text_is_stored_with_its_reason_and_a_retry_continues_it(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BROKE, REST) as harness:
        conversation = await harness.start("hi")
        assert isinstance(await conversation.wait_idle(), Errored)
        rows = await rows_of(harness, conversation)
        reason = "The answer broke off here and is kept: The key was taken away."
        assert said(rows) == [("user", "hi"), ("assistant", HALF), ("system", reason)]
        assert (rows[1].cut, rows[1].origin) == ("The key was taken away.", Origin.LLM)
        assert harness.seen(LiveTextDropped) == [], "it never leaves the screen"
        assert harness.seen(StateChanged)[-1].resumable
        await conversation.retry()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert said(await rows_of(harness, conversation))[3:] == [("assistant", "and the second.")]
        assert harness.provider.requests[-1].messages == (
            ModelMessage(Role.USER, (TextBlock("hi"),)),
            ModelMessage(Role.ASSISTANT, (TextBlock(HALF),)),
            ModelMessage(Role.USER, (TextBlock(CUT_OFF),)),
        )


async def test_a_message_after_it_goes_on_in_the_same_turn_over_a_valid_history(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BROKE, Reply((ScriptedCall("bash", "{}", "t1"),)), REST) as harness:
        conversation = await harness.run("hi")
        await run_turn(conversation, "shorter, please")
        rows = await rows_of(harness, conversation)
        assert {row.turn_number for row in rows} == {0}
        asked = harness.provider.requests[1].messages
        assert asked[1:] == (
            ModelMessage(Role.ASSISTANT, (TextBlock(HALF),)),
            ModelMessage(Role.USER, (TextBlock(CUT_OFF), TextBlock("shorter, please"))),
        )
        assert harness.provider.requests[2].messages[:3] == asked, "what is sent only grows"


async def test_after_a_restart_it_stands_there_and_can_be_resumed(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BROKE) as harness:
        first = await harness.run("hi")
    async with engine_harness(tmp_path, REST) as harness:
        conversation = await harness.engine.open(first.id)
        rows = await rows_of(harness, conversation)
        assert [(row.cut, row.role) for row in rows if row.cut] == [("The key was taken away.", Role.ASSISTANT)]
        assert str(rows).count("The answer broke off here") == 1
        assert len(rows) == 3, "why it broke is said once"
        await conversation.retry()
        await conversation.wait_idle()
        assert said(await rows_of(harness, conversation))[-1] == ("assistant", "and the second.")


async def test_retries_never_double_the_text_and_the_last_failure_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.machine.reply.LONGEST_WAIT", 0.0)
    attempts = (Reply((Text(HALF), Cut())), Reply((Cut(),)), Reply((Text("The f"), Cut())), Reply((Cut(),)))
    async with engine_harness(tmp_path, *attempts) as harness:
        conversation = await harness.start("hi")
        assert isinstance(await conversation.wait_idle(), Errored)
        assert [pair for pair in said(await rows_of(harness, conversation)) if pair[0] == "assistant"] == [
            ("assistant", HALF)
        ]
        shown = ""
        for update in harness.updates:
            match update:
                case TextArrived(piece):
                    shown += piece
                case LiveTextDropped():
                    shown = ""
                case _:
                    pass
            assert shown in {"", HALF, "The f"}
        calls = query(harness.store.path, "SELECT status, attempt, message_id IS NOT NULL FROM model_calls")
        assert calls == [("failed", 0, 0), ("failed", 1, 0), ("failed", 2, 0), ("failed", 3, 0)]


async def test_a_stop_between_two_attempts_keeps_what_had_broken(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text(HALF), Cut()))) as harness:
        conversation = await harness.start("hi")
        await until(lambda: isinstance(conversation.state, AwaitingLlm) and _waits(conversation.state))
        conversation.cancel()
        await conversation.wait_idle()
        assert said(await rows_of(harness, conversation)) == [
            ("user", "hi"),
            ("assistant", HALF),
            ("system", "The answer broke off here and is kept: The script cuts the connection here."),
            ("system", "Stopped by you after 0 s"),
        ]


def _waits(state: AwaitingLlm) -> bool:
    return isinstance(state.phase, RetryWait)


async def test_a_crash_while_a_retry_waits_keeps_what_had_broken(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    home.mkdir()
    async with engine_harness(home, Reply((Text(HALF), Cut()))) as harness:
        conversation = await harness.start("hi")
        await until(lambda: isinstance(conversation.state, AwaitingLlm) and _waits(conversation.state))
        shutil.copytree(home, copy)  # as after the death of a process: its lock is free there
    for _ in range(2):
        async with engine_harness(copy, REST) as harness:
            again = await harness.engine.open(conversation.id)
            assert said(await rows_of(harness, again)) == [
                ("user", "hi"),
                ("assistant", HALF),
                ("system", "The answer broke off here and is kept: The script cuts the connection here."),
            ]


async def test_the_time_limit_of_a_run_keeps_the_text_that_stood_there(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text(HALF), Hang()))) as harness:
        conversation = await harness.conversation()
        await conversation.say("hi", caps=RunCaps(timeout=0.5))
        await conversation.wait_idle()
        rows = await rows_of(harness, conversation)
        assert said(rows)[1] == ("assistant", HALF)
        assert rows[1].cut == "Stopped at the time limit"


async def test_a_copy_and_an_export_keep_that_it_broke_off(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BROKE) as harness:
        conversation = await harness.run("hi")
        fork = await harness.engine.fork(conversation.id)
        assert [row.cut for row in await rows_of(harness, fork) if row.cut] == ["The key was taken away."]


async def test_a_sub_agent_that_breaks_hands_its_text_to_its_parent(tmp_path: Path) -> None:
    spawn = Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "TASK 1"}]}', "s1"),))
    child = Reply((Text("It is in a.py"), Fail("Not allowed.", "auth", retryable=False)), when="TASK 1")
    async with engine_harness(tmp_path, spawn, child, REST) as harness:
        parent = await harness.run("look")
        result = next(row for row in await rows_of(harness, parent) if row.origin is Origin.TOOL)
        assert "failed: Not allowed." in str(result.blocks)
        assert "It is in a.py" in str(result.blocks)


# Both protocols over real connections.


def openai_chunk(piece: str) -> bytes:
    return b'data: {"id": "c1", "choices": [{"index": 0, "delta": {"content": "%b"}}]}\n\n' % piece.encode()


ERRORS = {
    "claude": b'event: error\ndata: {"type": "error", "error": {"type": "permission_error", "message": "gone"}}\n\n',
    "openai": b'data: {"error": {"type": "permission_error", "message": "gone"}}\n\n',
}
BEGINNINGS = {
    "claude": recording(start(), text(0, "The first ", "half")[:3]),
    "openai": [openai_chunk("The first "), openai_chunk("half")],
}
WHOLES = {
    "claude": recording(start(), text(0, "All of it"), stop()),
    "openai": [openai_chunk("All of it"), b"data: [DONE]\n\n"],
}


def breaking(protocol: str, way: str) -> Callable[[Talk], Awaitable[None]]:
    """An answer that begins well."""

    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*BEGINNINGS[protocol])
        match way:
            case "reset":
                await talk.reset()
            case "end":
                await talk.end()
            case "stall":
                await talk.stall()
            case _:
                await talk.send(ERRORS[protocol])
                await talk.end()

    return answer


def whole(protocol: str) -> Callable[[Talk], Awaitable[None]]:
    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*WHOLES[protocol])
        await talk.end()

    return answer


class One:
    """One provider under any name, without a price."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    def resolve(self, reference: str) -> tuple[Provider, str]:
        return self.provider, reference.partition("/")[2]

    def price(self, reference: str, usage: object) -> float | None:
        return None

    async def close(self) -> None:
        await self.provider.close()


Wire: TypeAlias = Literal["http", "sdk", "openai"]


def provider_of(wire: Wire, url: str) -> Provider:
    if wire == "openai":
        return OpenAiCompatibleProvider(OpenAiCompatibleSettings(base_url=url, api_key="k", idle_timeout=0.3))
    return AnthropicProvider(AnthropicSettings(api_key="k", base_url=url, transport=wire, idle_timeout=0.3))


@asynccontextmanager
async def speaking(home: Path, wire: Wire, *answers: Callable[[Talk], Awaitable[None]]) -> AsyncIterator[Any]:
    async with serve(*answers) as loopback:
        provider = provider_of(wire, loopback.url)
        try:
            async with engine_harness(home, providers=One(provider)) as harness:
                yield harness
        finally:
            await provider.close()


@pytest.mark.parametrize("way", ["reset", "end", "stall", "error event"])
@pytest.mark.parametrize("wire", ["http", "sdk", "openai"])
async def test_however_a_stream_breaks_its_text_is_kept_and_the_next_message_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Wire, way: str
) -> None:
    monkeypatch.setattr("engine.machine.reply.LONGEST_WAIT", 0.0)
    monkeypatch.setattr("engine.machine.reply.RETRIES", 0)
    protocol = "openai" if wire == "openai" else "claude"
    async with speaking(tmp_path, wire, breaking(protocol, way), whole(protocol)) as harness:
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "x/m"))
        seen: list[Any] = []
        await conversation.subscribe(seen.append)
        assert isinstance(await run_turn(conversation, "hi"), Errored)
        rows = await rows_of(harness, conversation)
        assert said(rows)[:2] == [("user", "hi"), ("assistant", HALF)]
        assert rows[1].cut.endswith((".", "gone")), "one sentence"
        assert isinstance(await run_turn(conversation, "go on"), Idle)
        assert said(await rows_of(harness, conversation))[-1] == ("assistant", "All of it")
        assert len([update for update in seen if isinstance(update, MessageSaved)]) == 5


GARBLED = Reply((Text("<think>plan</think>Answer\n\nAnswer"),))
EMPTY = Reply((Text('<tool_call>{"name": "bash"}</tool_call>'),))


async def talk(harness: EngineHarness, *said: str) -> list[StoredMessage]:
    conversation = await harness.conversation()
    for line in said:
        await run_turn(conversation, line)
    return await harness.store.messages(conversation.id)


def replies(rows: list[StoredMessage]) -> list[tuple[Block, ...]]:
    return [row.blocks for row in rows if row.role is Role.ASSISTANT]


def sent(harness: EngineHarness) -> list[tuple[str, str]]:
    return [(message.role.value, text_in(message.blocks, "|")) for message in harness.provider.requests[-1].messages]


async def test_remains_are_streamed_but_neither_stored_nor_sent_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_harness(tmp_path, GARBLED, Reply((Text("So"),))) as harness:
        with caplog.at_level(logging.INFO):
            rows = await talk(harness, "hi", "again")
        assert "".join(update.text for update in harness.seen(TextArrived)).startswith("<think>plan</think>")
        assert replies(rows) == [(TextBlock("Answer"),), (TextBlock("So"),)]
        assert sent(harness) == [("user", "hi"), ("assistant", "Answer"), ("user", "again")]
    assert f"reply {rows[1].id}: removed characters of {{'thoughts': 19, 'repeated blocks': 8}}" in caplog.text
    assert "plan" not in caplog.text


async def test_the_setting_keeps_replies_as_they_came(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, GARBLED, settings=EngineSettings(sanitize_replies=False)) as harness:
        assert replies(await talk(harness, "hi")) == [(TextBlock("<think>plan</think>Answer\n\nAnswer"),)]


async def test_thinking_and_calls_stay_and_an_empty_text_goes(tmp_path: Path) -> None:
    thought = "<think>\n\n\nplan</think>"
    call = Reply((Thought(thought), Text("<final></final>"), ScriptedCall("bash", '{"command": "<think>"}', "t1")))
    async with engine_harness(tmp_path, call, Reply((Text("done"),))) as harness:
        [first, last] = replies(await talk(harness, "hi"))
        assert first == (ThinkingBlock(thought, "scripted"), ToolUseBlock("t1", "bash", '{"command": "<think>"}'))
        assert last == (TextBlock("done"),)


async def test_a_fence_that_spans_two_parts_of_a_reply_protects_its_code(tmp_path: Path) -> None:
    parts = (
        Reply((Text("Look \n```\n<think>a"),), StopReason.MAX_TOKENS),
        Reply((Text("</think>\n\nsame\n\nsame\n``` \nso <final>x</final>"),)),
    )
    async with engine_harness(tmp_path, *parts) as harness:
        [reply] = replies(await talk(harness, "hi"))
        assert reply == (TextBlock("Look \n```\n<think>a</think>\n\nsame\n\nsame\n``` \nso x"),)


async def test_the_parts_of_a_reply_are_joined_as_they_were_written(tmp_path: Path) -> None:
    parts = (Reply((Text("one <think>a"),), StopReason.MAX_TOKENS), Reply((Text("b</think> two"),)))
    async with engine_harness(tmp_path, *parts) as harness:
        assert replies(await talk(harness, "hi")) == [(TextBlock("one  two"),)]
        assert sent(harness)[1] == ("assistant", "one <think>a")


async def test_a_reply_that_is_nothing_but_remains_is_asked_for_again_like_an_empty_one(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, EMPTY, Reply((Text("Here"),))) as harness:
        assert replies(await talk(harness, "hi")) == [(TextBlock("Here"),)]
        assert len(harness.provider.requests) == 2


async def test_nothing_but_remains_for_ever_ends_in_an_error(tmp_path: Path) -> None:
    provider = ScriptedProvider({"main": Script((EMPTY,) * 9)})
    async with engine_harness(tmp_path, provider=provider) as harness:
        conversation = await harness.start("hi")
        state = await conversation.wait_idle()
        assert isinstance(state, Errored)
        assert state.kind == "empty"
        assert len(provider.requests) == 4


async def test_after_a_tool_it_ends_the_run_well(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((ScriptedCall("bash", '{"command": "ls"}'),)), EMPTY) as harness:
        await talk(harness, "hi")
        assert [ended.status for ended in harness.seen(RunEnded)] == ["success"]


async def test_a_reply_of_a_megabyte_is_cleaned_too(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("<think>" + "x" * 1_000_000 + "</think>So"),))) as harness:
        assert replies(await talk(harness, "hi")) == [(TextBlock("So"),)]


async def test_no_reply_ends_the_run_well_and_is_kept_and_never_sent(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("NO_REPLY"),)), Reply((Text("So"),))) as harness:
        conversation = await harness.start("hi")
        assert isinstance(await conversation.wait_idle(), Idle)
        [_, row] = await harness.store.messages(conversation.id)
        assert (row.silent, row.blocks) == (True, (TextBlock("NO_REPLY"),))
        assert [ended.status for ended in harness.seen(RunEnded)] == ["success"]
        await run_turn(conversation, "again")
        assert sent(harness) == [("user", "hi|again")]
        rows = await harness.store.messages(conversation.id)
        assert [row.turn_number for row in rows] == [0, 0, 1, 1], "the silent reply ends its turn"


async def test_a_call_beside_the_token_is_made_and_shown(tmp_path: Path) -> None:
    script = (Reply((Text("NO_REPLY"), ScriptedCall("bash", '{"command": "ls"}'))), Reply((Text("done"),)))
    async with engine_harness(tmp_path, *script) as harness:
        rows = await talk(harness, "hi")
        assert [row.silent for row in rows] == [False] * 4
        assert len(harness.tool.calls) == 1
