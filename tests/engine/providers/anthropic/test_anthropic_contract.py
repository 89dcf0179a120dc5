"""Contract of both Anthropic transports; streams cut at every byte (FAULTS 36, 37, 40); calls left in text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.machine.messages import Role, StopReason, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from engine.ports import (
    ModelMessage,
    ModelReply,
    ModelRequest,
    ProviderError,
    StreamItem,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageTold,
)
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.anthropic.from_wire import AnthropicReplyBuilder
from engine.providers.events import EventParser
from engine.providers.failures import Service
from tests.support.loopback import Answer, Loopback, Talk, serve
from tests.support.loopback_anthropic import plays, recording, redacted, refuses, start, stop, text, thinking, tool
from tests.support.waiting import PATIENCE
from tools.contract import ToolClass, ToolSpec

KEY = "sk-ant-PLANTED-0123456789"
HELLO = ModelRequest("claude-sonnet-5-5", ("Be brief.",), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
TOOL_STREAM = recording(
    start({"input_tokens": 7, "output_tokens": 1, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 2}),
    {"type": "ping"},
    thinking(0, "Let me ", "see ✓", signature="sig=="),
    redacted(1, "opaque"),
    text(2, "On it", ": Ω"),
    tool(3, "bash", '{"comm', 'and": "ls"}', tool_id="toolu_a"),
    {"type": "shiny_new_event", "payload": {"x": 1}},
    stop("tool_use", 42),
)
TOOL_REPLY = ModelReply(
    blocks=(
        ThinkingBlock("Let me see ✓", "sig=="),
        ThinkingBlock("", "opaque", redacted=True),
        TextBlock("On it: Ω"),
        ToolUseBlock("toolu_a", "bash", '{"command": "ls"}'),
    ),
    stop=StopReason.TOOL_USE,
    usage=Usage(7, 42, 3, 2),
    model="claude-sonnet-5-5",
)


@pytest.fixture(params=["http", "sdk"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def provider(loopback: Loopback, transport: str, idle_timeout: float = 10.0) -> AnthropicProvider:
    assert transport in {"http", "sdk"}
    return AnthropicProvider(
        AnthropicSettings(
            api_key=KEY,
            base_url=loopback.url,
            transport="sdk" if transport == "sdk" else "http",
            idle_timeout=idle_timeout,
        )
    )


async def collect(stream: AsyncIterator[StreamItem]) -> list[StreamItem]:
    return [item async for item in stream]


async def failure(answer: Answer, transport: str, idle_timeout: float = 10.0) -> tuple[ProviderError, list[StreamItem]]:
    items: list[StreamItem] = []
    async with serve(answer) as loopback:
        asked = provider(loopback, transport, idle_timeout)
        with pytest.raises(ProviderError) as caught:
            async for item in asked.stream(HELLO):
                items.append(item)
        await asked.close()
    return caught.value, items


async def test_a_stream_becomes_pieces_and_then_one_whole_reply(transport: str) -> None:
    async with serve(plays(TOOL_STREAM)) as loopback:
        asked = provider(loopback, transport)
        items = await collect(asked.stream(HELLO))
        await asked.close()
    assert [item for item in items if not isinstance(item, UsageTold)] == [
        ThinkingDelta("Let me "),
        ThinkingDelta("see ✓"),
        TextDelta("On it"),
        TextDelta(": Ω"),
        ToolCallDelta("bash", ""),
        ToolCallDelta("", '{"comm'),
        ToolCallDelta("", 'and": "ls"}'),
        TOOL_REPLY,
    ]


async def test_the_key_travels_in_the_header_and_the_connection_is_kept(transport: str) -> None:
    async with serve(plays(TOOL_STREAM)) as loopback:
        asked = provider(loopback, transport)
        for _ in range(3):
            await collect(asked.stream(HELLO))
        await asked.close()
        headers = loopback.requests[0].headers
        assert KEY in headers.get("x-api-key", "") + headers.get("authorization", "")
        assert [seen.connection for seen in loopback.requests] == [1, 1, 1]
        await loopback.wait_closed()


async def test_closing_the_stream_drops_the_connection_at_once(transport: str) -> None:
    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*TOOL_STREAM[:4])
        await talk.stall()

    async with serve(answer) as loopback:
        asked = provider(loopback, transport)
        stream = asked.stream(HELLO)
        assert isinstance(await anext(stream), UsageTold)
        assert await anext(stream) == ThinkingDelta("Let me ")
        await stream.aclose()
        await loopback.wait_closed()
        await asked.close()


async def test_cancelling_while_nothing_comes_drops_the_connection(transport: str) -> None:
    async with serve(Talk.stall) as loopback:
        asked = provider(loopback, transport)
        task = asyncio.create_task(collect(asked.stream(HELLO)))
        await loopback.wait_asked()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await loopback.wait_closed()
        await asked.close()


async def test_a_server_that_only_says_it_is_overloaded_is_not_quoted(transport: str) -> None:
    error, _ = await failure(refuses(529, "overloaded_error", "Overloaded"), transport)
    assert error.message.endswith(" is overloaded.")


@pytest.mark.parametrize(
    ("status", "error_type", "kind", "retryable", "said"),
    [
        (401, "authentication_error", "auth", False, "API key rejected: set ANTHROPIC_API_KEY"),
        (403, "permission_error", "auth", False, "does not allow this"),
        (404, "not_found_error", "invalid_request", False, "does not know this model"),
        (413, "request_too_large", "invalid_request", False, "too long"),
        (429, "rate_limit_error", "rate_limit", True, "Rate limited by 127.0.0.1"),
        (503, "api_error", "server", True, "failed with an error 503"),
        (529, "overloaded_error", "overloaded", True, "is overloaded"),
    ],
)
async def test_a_refusal_before_the_stream_is_sorted_and_said_in_words(
    transport: str, status: int, error_type: str, kind: str, retryable: bool, said: str
) -> None:
    error, items = await failure(refuses(status, error_type, f"no, {KEY}", "retry-after: 7\r\n"), transport)
    assert (error.kind, error.retryable, error.retry_after) == (kind, retryable, 7.0)
    assert said in error.message
    assert items == []
    assert KEY not in error.message + repr(error)


async def test_a_prompt_that_is_too_long_is_an_overflow(transport: str) -> None:
    answer = refuses(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
    error, _ = await failure(answer, transport)
    assert (error.kind, error.retryable, error.context_overflow) == ("invalid_request", False, True)


async def test_a_refused_image_has_its_own_kind(transport: str) -> None:
    error, _ = await failure(refuses(400, "invalid_request_error", "messages.0: Could not process image"), transport)
    assert error.kind == "refused_image"


@pytest.mark.parametrize(
    ("error_type", "kind"),
    [("overloaded_error", "overloaded"), ("rate_limit_error", "rate_limit"), ("api_error", "server")],
)
async def test_an_error_in_the_middle_of_the_stream_is_sorted_too(transport: str, error_type: str, kind: str) -> None:
    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(
            *TOOL_STREAM[:5],
            b'event: error\ndata: {"type":"error","error":{"type":"%b","message":"busy"}}\n\n' % error_type.encode(),
        )
        await talk.end()

    error, items = await failure(answer, transport)
    assert (error.kind, error.retryable) == (kind, True)
    assert items[1:] == [ThinkingDelta("Let me "), ThinkingDelta("see ✓")]


async def test_a_stream_that_ends_without_its_last_event_is_a_network_error(transport: str) -> None:
    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*TOOL_STREAM[:-1])
        await talk.end()

    error, items = await failure(answer, transport)
    assert (error.kind, error.retryable) == ("network", True)
    assert not any(isinstance(item, ModelReply) for item in items)


async def test_a_reset_connection_is_a_network_error(transport: str) -> None:
    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*TOOL_STREAM[:-3])
        await talk.reset()

    error, _ = await failure(answer, transport)
    assert (error.kind, error.retryable) == ("network", True)
    assert "was lost" in error.message


async def test_a_stalled_stream_ends_at_the_idle_limit(transport: str) -> None:
    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*TOOL_STREAM[:4])
        await talk.stall()

    error, _ = await failure(answer, transport, idle_timeout=0.2)
    assert (error.kind, error.retryable) == ("network", True)
    assert "sent nothing for 0.2 s" in error.message


async def test_nobody_listening_is_said_with_the_host(transport: str) -> None:
    async with serve(Talk.reset) as loopback:
        pass
    asked = provider(loopback, transport)
    with pytest.raises(ProviderError, match=r"Could not reach 127\.0\.0\.1:\d+") as caught:
        await collect(asked.stream(HELLO))
    assert (caught.value.kind, caught.value.retryable) == ("network", True)
    assert "Errno" not in caught.value.message
    await asked.close()


async def test_a_redirect_is_not_followed_so_the_key_stays_home(transport: str) -> None:
    async with serve(plays(TOOL_STREAM)) as thief:

        async def answer(talk: Talk) -> None:
            await talk.plain(307, b"", f"location: {thief.url}/v1/messages\r\n")

        error, _ = await failure(answer, transport)
        assert error.message.startswith("127.0.0.1:")
        assert f"redirects to {thief.url}" in error.message
        assert error.retryable is False
        assert thief.requests == []


async def test_thinking_that_another_model_signed_is_left_out_when_refused(transport: str) -> None:
    request = ModelRequest(
        "claude-sonnet-5-5",
        (),
        (
            ModelMessage(Role.USER, (TextBlock("Hi"),)),
            ModelMessage(Role.ASSISTANT, (ThinkingBlock("hm", "foreign"), TextBlock("Hello"))),
            ModelMessage(Role.USER, (TextBlock("Go on"),)),
        ),
    )
    answers = (
        refuses(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        plays(TOOL_STREAM),
    )
    async with serve(*answers) as loopback:
        asked = provider(loopback, transport)
        items = await collect(asked.stream(request))
        own = ModelMessage(Role.ASSISTANT, (ThinkingBlock("ha", "own"), TextBlock("Yes")))
        longer = replace(request, messages=(*request.messages, own, request.messages[-1]))
        await collect(asked.stream(longer))
        await asked.close()
        bodies = [seen.body.decode() for seen in loopback.requests]
    assert items[-1] == TOOL_REPLY
    assert ['"foreign"' in body for body in bodies] == [True, False, False]
    assert '"own"' in bodies[2]


async def test_refused_thinking_is_remembered_by_later_processes(tmp_path: Path) -> None:
    request = ModelRequest(
        "claude-sonnet-5-5",
        (),
        (
            ModelMessage(Role.USER, (TextBlock("Hi"),)),
            ModelMessage(Role.ASSISTANT, (ThinkingBlock("hm", "foreign" * 400), TextBlock("Hello"))),
            ModelMessage(Role.USER, (TextBlock("Go on"),)),
        ),
    )
    refusal = refuses(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block")
    kept = tmp_path / "state" / "refused-thinking"
    async with serve(refusal, plays(TOOL_STREAM)) as loopback:
        for _ in range(3):
            asked = AnthropicProvider(AnthropicSettings(base_url=loopback.url, api_key="k" * 20, refused_thinking=kept))
            assert (await collect(asked.stream(request)))[-1] == TOOL_REPLY
            await asked.close()
        bodies = [seen.body.decode() for seen in loopback.requests]
    assert ["foreign" in body for body in bodies] == [True, False, False, False]
    assert (kept.stat().st_mode & 0o777, len(kept.read_text("ascii"))) == (0o600, 17)


async def test_every_request_passes_the_strict_server_also_with_an_odd_history(transport: str) -> None:
    request = ModelRequest(
        "claude-haiku-4-5",
        ("static", "", "changes"),
        (
            ModelMessage(Role.USER, (TextBlock("  "),)),
            ModelMessage(Role.ASSISTANT, (ThinkingBlock("unsigned", ""), TextBlock(""))),
        ),
    )
    async with serve(plays(TOOL_STREAM)) as loopback:
        asked = provider(loopback, transport)
        items = await collect(asked.stream(request))
        await asked.close()
    assert items[-1] == TOOL_REPLY


async def test_the_models_of_the_server_are_described_by_the_catalogue(transport: str) -> None:
    async def answer(talk: Talk) -> None:
        await talk.plain(
            200,
            b'{"data":[{"id":"claude-sonnet-5-5","type":"model","display_name":"x","created_at":"2026-01-01T00:00:00Z"}],'
            b'"has_more":false,"first_id":null,"last_id":null}',
        )

    async with serve(answer) as loopback:
        asked = provider(loopback, transport)
        models = await asked.models()
        await asked.close()
    assert [(model.reference, model.context_window, model.max_output) for model in models] == [
        ("anthropic/claude-sonnet-5-5", 1_000_000, 128_000)
    ]


async def test_the_window_that_a_gateway_names_is_that_of_its_model(transport: str) -> None:
    async def answer(talk: Talk) -> None:
        listed = {"id": "team-default", "type": "model", "display_name": "x", "created_at": "2026-01-01T00:00:00Z"}
        body = {"data": [listed | {"max_input_tokens": 64_000}], "has_more": False, "first_id": None, "last_id": None}
        await talk.plain(200, json.dumps(body).encode())

    async with serve(answer) as loopback:
        asked = provider(loopback, transport)
        models = await asked.models()
        info = asked.describe("team-default")
        await asked.close()
    assert models == [info]
    assert (info.context_window, info.note) == (64_000, "")


async def test_warming_up_towards_loopback_asks_nothing(transport: str) -> None:
    async with serve(Talk.reset) as loopback:
        asked = provider(loopback, transport)
        await asked.warm()
        await asked.close()
        assert loopback.requests == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (AnthropicSettings(backend="bedrock"), "No AWS region"),
        (AnthropicSettings(backend="vertex"), "No region was given"),
        (AnthropicSettings(profile="nobody"), "profile 'nobody'"),
    ],
)
async def test_what_a_cloud_backend_misses_is_said_in_the_sdks_words(
    settings: AnthropicSettings, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "CLOUD_ML_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = AnthropicProvider(settings)
    await asked.warm()
    with pytest.raises(ProviderError, match=said) as caught:
        await collect(asked.stream(HELLO))
    assert (caught.value.kind, caught.value.retryable) == ("auth", False)
    await asked.close()


@pytest.mark.skipif(find_spec("google") is not None, reason="Vertex has what it needs here")
async def test_a_package_that_a_cloud_backend_misses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_ML_REGION", "here")
    monkeypatch.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "project")
    asked = AnthropicProvider(AnthropicSettings(backend="vertex"))
    with pytest.raises(ProviderError, match=r"cannot be used: .*google-auth") as caught:
        await collect(asked.stream(HELLO))
    assert caught.value.kind == "auth"
    await asked.close()


async def test_another_server_with_this_api_has_its_own_name_and_may_need_no_key() -> None:
    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*TOOL_STREAM)
        await talk.end()

    async with serve(answer) as loopback:
        asked = AnthropicProvider(AnthropicSettings(name="mine", key_variable="", base_url=loopback.url))
        assert (await collect(asked.stream(HELLO)))[-1] == TOOL_REPLY
        await asked.close()
        assert "x-api-key" not in loopback.requests[0].headers
    assert asked.describe("m").reference == "mine/m"


REQUEST = ModelRequest("claude-sonnet-5-5", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
SERVICE = Service("http://x", "X")
RECORDED = b"".join(
    recording(start(), text(0, "Ω ok"), tool(1, "bash", '{"command"', ': "rm -r x"}'), stop("tool_use"))
)
BLOCKS = (TextBlock("Ω ok"), ToolUseBlock("toolu_1", "bash", '{"command": "rm -r x"}'))
WHOLE = len(RECORDED) - len(b"\n\n")
"""Offset from which the last event is complete, even if its blank line is not."""


async def outcome(provider: AnthropicProvider) -> str:
    """`reply` for a whole one, else the kind of the error; a tool call that is not whole fails the test."""
    items: list[StreamItem] = []
    try:
        async with asyncio.timeout(PATIENCE):
            async for item in provider.stream(REQUEST):
                items.append(item)
    except ProviderError as error:
        assert error.retryable
        assert not any(isinstance(item, ModelReply) for item in items)
        return error.kind
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    assert (reply.blocks, reply.stop) == (BLOCKS, StopReason.TOOL_USE)
    return "reply"


def test_every_split_of_the_bytes_gives_the_same_reply() -> None:
    replies: set[ModelReply] = set()
    for at in range(len(RECORDED)):
        parser, builder = EventParser(), AnthropicReplyBuilder(SERVICE, "m", set())
        for payload in [*parser.feed(RECORDED[:at]), *parser.feed(RECORDED[at:])]:
            builder.feed(payload)
        assert builder.done
        replies.add(builder.reply())
    assert [reply.blocks for reply in replies] == [BLOCKS]


@pytest.mark.parametrize(
    ("ending", "transport", "stride"),
    [("end", "http", 1), ("reset", "http", 7), ("end", "sdk", 97), ("reset", "sdk", 97)],
)
async def test_a_stream_cut_at_any_byte_is_a_network_error_or_a_whole_reply(
    ending: str, transport: str, stride: int
) -> None:
    offsets = [*range(0, WHOLE, stride), *range(WHOLE, len(RECORDED) + 1)]
    left = iter(offsets)

    async def answer(talk: Talk) -> None:
        await talk.begin()
        if piece := RECORDED[: next(left)]:
            await talk.send(piece)
        await (talk.end() if ending == "end" else hang_up(talk))

    async with serve(answer) as loopback:
        provider = AnthropicProvider(
            AnthropicSettings(api_key="k", base_url=loopback.url, transport="sdk" if transport == "sdk" else "http")
        )
        outcomes = [await outcome(provider) for _ in offsets]
        await provider.close()
    # Without the last blank line, or with the connection gone, a whole reply may or may not count as such.
    sure = [kind for offset, kind in zip(offsets, outcomes, strict=True) if offset < WHOLE]
    assert set(sure) == {"network"}
    assert set(outcomes[len(sure) :]) <= {"reply", "network"}
    assert outcomes[-1] == "reply"


async def hang_up(talk: Talk) -> None:
    """Close without the end of the chunked body, after what was sent has left."""
    talk.keep = False
    talk.writer.write_eof()


async def test_a_stall_at_sampled_bytes_ends_at_the_idle_limit() -> None:
    offsets = range(0, WHOLE, 97)
    left = iter(offsets)

    async def answer(talk: Talk) -> None:
        await talk.begin()
        if piece := RECORDED[: next(left)]:
            await talk.send(piece)
        await talk.stall()

    async with serve(answer) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="k", base_url=loopback.url, idle_timeout=0.05))
        assert {await outcome(provider) for _ in offsets} == {"network"}
        await provider.close()
        await loopback.wait_closed()


BASH = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {}}}, ToolClass.RUN)
LS = '{"name": "bash", "arguments": {"command": "ls"}}'


def says(*words: str) -> Answer:
    return plays(recording(start(), text(0, *words), stop()))


async def replies(*answers: Answer, tools: tuple[ToolSpec, ...] = (BASH,), model: str = "qwen") -> list[ModelReply]:
    """Reply read from each answer."""
    request = ModelRequest(model, (), (ModelMessage(Role.USER, (TextBlock("Go"),)),), tools)
    async with serve(*answers) as loopback:
        asked = AnthropicProvider(AnthropicSettings(api_key="k", base_url=loopback.url))
        try:
            found = [[item async for item in asked.stream(request)][-1] for _ in answers]
        finally:
            await asked.close()
    return [each for each in found if isinstance(each, ModelReply)]


@pytest.mark.parametrize("written", [LS, f"{{{LS}}}", f"<tools>\n{LS}\n</tools>", f"```json\n{LS}\n```"])
async def test_a_call_in_the_text_is_a_call(written: str) -> None:
    (reply,) = await replies(says("I look.\n", written[:9], written[9:]))
    assert reply.blocks[0] == TextBlock("I look.")
    assert isinstance(reply.blocks[1], ToolUseBlock)
    assert (reply.blocks[1].name, reply.blocks[1].input_json) == ("bash", '{"command":"ls"}')
    assert reply.stop is StopReason.TOOL_USE


async def test_reasoning_in_tags_is_reasoning() -> None:
    (reply,) = await replies(says("<think>I look.</think>", "Calm."))
    assert (reply.blocks, reply.stop) == ((ThinkingBlock("I look.", ""), TextBlock("Calm.")), StopReason.END_TURN)


@pytest.mark.parametrize(
    "words", ["Hello.", f"Write {LS} so.", '{"name": "hammer", "arguments": {}}', f"{LS}\nis one."]
)
async def test_everything_else_stays_text(words: str) -> None:
    (reply,) = await replies(says(words))
    assert (reply.blocks, reply.stop) == ((TextBlock(words),), StopReason.END_TURN)


async def test_without_tools_and_from_a_server_that_reads_calls_itself_it_is_text() -> None:
    (reply,) = await replies(says(LS), tools=())
    assert reply.blocks == (TextBlock(LS),)
    calls = plays(recording(start(), tool(0, "bash", '{"command": "ls"}'), stop("tool_use")))
    _, reply = await replies(calls, says(LS))
    assert reply.blocks == (TextBlock(LS),)


@pytest.mark.parametrize("model", ["claude-opus-4-8", "bedrock/anthropic.claude-sonnet-4-5", "gpt-5", "openai/o3"])
async def test_a_model_that_makes_its_calls_itself_may_quote_one(model: str) -> None:
    (reply,) = await replies(says(LS), model=model)
    assert reply.blocks == (TextBlock(LS),)


async def test_the_loop_goes_on_while_a_long_text_is_looked_through() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    before = turns
    (reply,) = await replies(says("a\n" * 120_000 + LS))
    counting.cancel()
    assert isinstance(reply.blocks[-1], ToolUseBlock)
    assert turns - before > 100  # some 30 where the loop reads it itself
