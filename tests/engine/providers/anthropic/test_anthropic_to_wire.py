"""Requests to the Messages API, their effort and their count; odd streams of it as values (FAULTS 39, 41, 45)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.machine.messages import (
    ImageBlock,
    Role,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from engine.ports import (
    ImageBytes,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ProviderError,
    ProviderNotice,
    StreamItem,
    TextDelta,
)
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.anthropic.from_wire import AnthropicReplyBuilder
from engine.providers.anthropic.to_wire import encode_request, request_body
from engine.providers.failures import Service
from engine.run_options import Effort
from tests.support.loopback import Loopback, Talk, serve
from tests.support.loopback_anthropic import (
    TINY_PNG,
    Event,
    plays,
    recording,
    refuses,
    start,
    stop,
    text,
    thinking,
    tool,
    violations,
)
from tools.contract import ToolClass, ToolSpec

HEADERS = {"anthropic-version": "x", "x-api-key": "x"}
TOOL = ToolSpec("bash", "Run.", {"type": "object"}, ToolClass.RUN)
CACHED = {"type": "ephemeral"}
PICTURE = ImageBlock("img1", 1, 1)
ROUND = (
    ModelMessage(Role.USER, (TextBlock("Look"), PICTURE)),
    ModelMessage(
        Role.ASSISTANT,
        (
            ThinkingBlock("hm", "sig"),
            ThinkingBlock("", "opaque", redacted=True),
            TextBlock("  "),
            ToolUseBlock("a", "bash", '{"command": "ls"}'),
            ToolUseBlock("b", "read_image", "{broken"),
        ),
    ),
    ModelMessage(
        Role.USER,
        (
            TextBlock("and then?"),
            ToolResultBlock("a", (TextBlock(""),), is_error=True),
            ToolResultBlock("b", (TextBlock("a picture"), ImageBlock("img2", 1, 1))),
        ),
    ),
)


def request(**more: Any) -> ModelRequest:
    fields: dict[str, Any] = {
        "model": "claude-sonnet-5-5",
        "system": ("static", "moving"),
        "messages": ROUND,
        "tools": (TOOL, TOOL),
        "images": {"img1": ImageBytes("image/jpeg", TINY_PNG), "img2": ImageBytes("image/png", TINY_PNG)},
    }
    return ModelRequest(**{**fields, **more})


def written(asked: ModelRequest, budget: int = 0, **more: Any) -> Any:
    body = json.loads(encode_request(asked, budget, **more))
    assert violations(body, HEADERS) == []
    return body


def test_images_stand_before_text_and_results_before_both() -> None:
    messages = written(request())["messages"]
    assert [block["type"] for block in messages[0]["content"]] == ["image", "text"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "tool_result", "text", "text"]
    assert [part["type"] for part in messages[2]["content"][1]["content"]] == ["image", "text"]
    assert messages[0]["content"][0]["source"]["media_type"] == "image/png"


def test_thinking_is_replayed_unchanged_and_blank_text_left_out() -> None:
    assert written(request())["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "b", "name": "read_image", "input": {"invalid_json": "{broken"}},
    ]


def test_an_empty_error_result_says_that_there_is_no_output() -> None:
    assert written(request())["messages"][2]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [{"type": "text", "text": "(no output)"}],
        "is_error": True,
    }


def test_four_cache_markers_stand_on_static_prompt_tools_and_the_last_two_user_messages() -> None:
    body = written(request())
    assert [block.get("cache_control") for block in body["system"]] == [CACHED]
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, CACHED]
    assert body["messages"][0]["content"][-1]["cache_control"] == CACHED
    assert body["messages"][2]["content"][-2]["cache_control"] == CACHED
    assert json.dumps(body).count("cache_control") == 4


def test_what_changes_between_calls_is_behind_the_last_marker_and_in_no_later_request() -> None:
    asked, changed = written(request()), written(request(system=("static", "Permission mode: auto.")))
    assert changed["messages"][-1]["content"].pop() == {"type": "text", "text": "Permission mode: auto."}
    assert "cache_control" not in asked["messages"][-1]["content"].pop()
    assert asked == changed
    later = request(messages=(*ROUND, ModelMessage(Role.ASSISTANT, (TextBlock("ok"),)), ROUND[0]))
    kept = written(later)["messages"][len(ROUND) - 1]["content"]
    assert kept == asked["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("model", "asked", "limit"),
    [
        ("claude-sonnet-5-5", None, 128_000),
        ("claude-sonnet-4-5", None, 64_000),
        ("somebody-else", None, 8_192),
        ("claude-sonnet-5-5", 300, 300),
    ],
)
def test_the_output_limit_is_the_models_unless_asked_otherwise(model: str, asked: int | None, limit: int) -> None:
    assert written(request(model=model, max_tokens=asked))["max_tokens"] == limit


@pytest.mark.parametrize(
    ("model", "budget", "max_tokens", "thinking"),
    [
        ("claude-sonnet-5-5", 0, None, {"type": "adaptive", "display": "summarized"}),
        ("claude-haiku-5-5", 0, None, None),
        ("claude-haiku-5-5", 4_000, None, {"type": "adaptive", "display": "summarized"}),
        ("claude-sonnet-4-5", 0, None, None),
        ("claude-sonnet-4-5", 4_000, None, {"type": "enabled", "budget_tokens": 4_000}),
        ("claude-sonnet-4-5", 4_000, 2_000, {"type": "enabled", "budget_tokens": 1_999}),
        ("claude-sonnet-4-5", 4_000, 500, None),
        ("somebody-else", 4_000, None, None),
    ],
)
def test_thinking_is_asked_for_in_the_way_of_the_model(
    model: str, budget: int, max_tokens: int | None, thinking: object
) -> None:
    assert written(request(model=model, max_tokens=max_tokens), budget).get("thinking") == thinking


def test_a_request_never_ends_with_the_assistant_nor_holds_an_empty_message() -> None:
    messages = written(request(messages=(ROUND[0], ModelMessage(Role.ASSISTANT, (ThinkingBlock("x", ""),)))))[
        "messages"
    ]
    assert messages[1]["content"] == [{"type": "text", "text": "(no text)"}]
    assert messages[2]["content"][0]["text"] == "Continue."


def test_the_oldest_images_make_room_in_a_request_that_is_too_large() -> None:
    big = ImageBytes("image/png", TINY_PNG + bytes(60_000))
    asked = request(images={"img1": big, "img2": big})
    body = written(asked, limit=100_000)
    assert [block["text"] for block in body["messages"][0]["content"]] == ["Look", "[image omitted]"]
    assert body["messages"][2]["content"][1]["content"][0]["type"] == "image"
    none_left = written(asked, limit=50_000)
    assert "base64" not in json.dumps(none_left)


def test_an_image_that_is_gone_is_said_to_be_omitted() -> None:
    body = written(request(images={}))
    assert "base64" not in json.dumps(body)


def test_odd_characters_leave_as_valid_utf8() -> None:
    body = written(request(messages=(ModelMessage(Role.USER, (TextBlock("a\ud800\x00b"),)),)))
    assert body["messages"][0]["content"][0]["text"] == "a?\x00b"


def test_a_request_without_tools_and_system_names_neither() -> None:
    body = request_body(request(system=(), tools=()))
    assert "tools" not in body
    assert "system" not in body


HELLO = ModelRequest("claude-opus-5", ("Be brief.",), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
ANSWER = plays(recording(start(), text(0, "Hello"), stop()))
ALL = ("off", "low", "medium", "high", "max")


def fields(model: str, effort: str, *, budget: int = 0, max_tokens: int | None = None) -> dict[str, Any]:
    """The fields that the effort adds to a request with the default of a provider that sets no budget."""
    bare = request_body(replace(HELLO, model=model, max_tokens=max_tokens))
    body = request_body(replace(HELLO, model=model, max_tokens=max_tokens, effort=Effort(effort)), budget)
    common = {name: value for name, value in bare.items() if name not in {"thinking", "output_config"}}
    assert {name: value for name, value in body.items() if name in common} == common
    return {name: value for name, value in body.items() if name not in common}


def graded(effort: str) -> dict[str, Any]:
    return {"thinking": ADAPTIVE, "output_config": {"effort": effort}}


def budget(tokens: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("claude-opus-5", "default", {"thinking": ADAPTIVE}),
        ("claude-opus-5", "off", {"thinking": {"type": "disabled"}}),
        ("claude-opus-5", "low", graded("low")),
        ("claude-opus-5", "medium", graded("medium")),
        ("claude-opus-5", "high", graded("high")),
        ("claude-opus-5", "max", graded("max")),
        ("claude-sonnet-5-5", "default", {"thinking": ADAPTIVE}),
        ("claude-sonnet-5-5", "off", graded("low")),
        ("claude-mythos-5", "off", graded("low")),
        ("claude-opus-4-8", "off", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-5-5", "default", {}),
        ("claude-haiku-5-5", "off", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-5-5", "high", graded("high")),
        ("claude-sonnet-4-6", "max", graded("max")),
        ("claude-sonnet-4-5", "default", {}),
        ("claude-sonnet-4-5", "off", {}),
        ("claude-sonnet-4-5", "low", budget(2_048)),
        ("claude-haiku-4-5", "medium", budget(8_192)),
        ("claude-opus-4-1", "high", budget(16_384)),
        ("claude-opus-4-1", "max", budget(24_000)),
        ("claude-sonnet-4-5", "max", budget(32_768)),
        ("claude-3-5-haiku", "max", {}),
        ("somebody-else", "max", {}),
    ],
)
def test_each_generation_is_sent_its_own_fields_and_none_without_reasoning(
    model: str, effort: str, sent: dict[str, Any]
) -> None:
    from anthropic.types import OutputConfigParam, ThinkingConfigParam  # noqa: PLC0415 - a second for each worker
    from pydantic import TypeAdapter  # noqa: PLC0415 - as above

    assert fields(model, effort) == sent
    if "thinking" in sent:
        TypeAdapter[Any](ThinkingConfigParam).validate_python(sent["thinking"], strict=True)
    if "output_config" in sent:
        TypeAdapter[Any](OutputConfigParam).validate_python(sent["output_config"], strict=True)


def test_a_budget_leaves_a_quarter_of_a_small_output_limit_and_a_tiny_one_has_none() -> None:
    assert fields("claude-sonnet-4-5", "max", max_tokens=4_000) == budget(3_000)
    assert fields("claude-sonnet-4-5", "max", max_tokens=1_024) == {}


def test_a_budget_of_the_settings_counts_for_the_default_effort_alone() -> None:
    assert fields("claude-sonnet-4-5", "default", budget=4_000) == budget(4_000)
    assert fields("claude-sonnet-4-5", "off", budget=4_000) == {}
    assert fields("claude-haiku-5-5", "default", budget=4_000) == {"thinking": ADAPTIVE}
    assert fields("claude-haiku-5-5", "low", budget=4_000) == graded("low")


@pytest.mark.parametrize(
    ("model", "levels"),
    [("claude-opus-5", ALL), ("claude-sonnet-5-5", ALL[1:]), ("claude-sonnet-4-5", ALL), ("claude-3-5-haiku", ())],
)
def test_a_model_is_described_with_its_levels(model: str, levels: tuple[str, ...]) -> None:
    assert AnthropicProvider(AnthropicSettings()).describe(model).efforts == tuple(map(Effort, levels))


def provider(loopback: Loopback) -> AnthropicProvider:
    return AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))


async def answered(asked: AnthropicProvider, request: ModelRequest) -> list[StreamItem]:
    return [item async for item in asked.stream(request)]


async def test_a_refused_effort_is_said_once_and_never_sent_again() -> None:
    refusal = refuses(400, "invalid_request_error", "output_config.effort: 'max' is not supported on this model")
    request = replace(HELLO, effort=Effort.MAX)
    async with serve(refusal, ANSWER, ANSWER, ANSWER) as loopback:
        asked = provider(loopback)
        first, second = [await answered(asked, request) for _ in range(2)]
        await answered(asked, replace(request, effort=Effort.HIGH))
        described = asked.describe("claude-opus-5").efforts
        await asked.close()
        configs = [seen.json.get("output_config") for seen in loopback.requests]
    notices = [item.text for item in (*first, *second) if isinstance(item, ProviderNotice)]
    assert notices == ["claude-opus-5 does not accept effort max; asked without it. /effort shows what it accepts."]
    assert configs == [{"effort": "max"}, None, None, {"effort": "high"}]
    assert Effort.MAX not in described


async def test_a_refusal_of_something_else_stays_a_refusal() -> None:
    refusal = refuses(400, "invalid_request_error", "messages: at least one message is required")
    async with serve(refusal) as loopback:
        asked = provider(loopback)
        with pytest.raises(ProviderError, match="at least one message"):
            await answered(asked, replace(HELLO, effort=Effort.MAX))
        await asked.close()
        assert len(loopback.requests) == 1


async def test_a_refusal_about_thinking_without_an_effort_ends_the_call() -> None:
    refusal = refuses(400, "invalid_request_error", "thinking: Expected `thinking` block, but found `tool_use`")
    async with serve(refusal) as loopback:
        asked = provider(loopback)
        with pytest.raises(ProviderError, match="found"):
            await answered(asked, HELLO)
        await asked.close()
        assert len(loopback.requests) == 1


SERVICE = Service("https://api.example", "ANTHROPIC_API_KEY")


def build(*parts: Any, used: frozenset[str] = frozenset()) -> tuple[AnthropicReplyBuilder, list[StreamItem]]:
    builder = AnthropicReplyBuilder(SERVICE, "asked-model", set(used))
    items: list[StreamItem] = []
    for part in parts:
        events = cast("list[Event | bytes]", part if isinstance(part, list) else [part])
        for event in events:
            item = builder.feed(event if isinstance(event, bytes) else json.dumps(event).encode())
            if item is not None:
                items.append(item)
    return builder, items


def reply(*parts: Any, used: frozenset[str] = frozenset()) -> ModelReply:
    builder, _ = build(*parts, used=used)
    assert builder.done
    return builder.reply()


@pytest.mark.parametrize("pieces", [(), ('{"command": "rm',), ('{"command": "rm"',)])
def test_a_call_that_the_output_limit_cut_is_dropped_and_said(pieces: tuple[str, ...]) -> None:
    got = reply(start(), text(0, "So"), tool(1, "bash", *pieces), stop("max_tokens"))
    assert (got.blocks, got.stop, got.truncated_call) == ((TextBlock("So"),), StopReason.MAX_TOKENS, True)


def test_calls_before_the_cut_one_stay() -> None:
    got = reply(start(), tool(0, "bash", "{}", tool_id="a"), tool(1, "bash", "{", tool_id="b"), stop("max_tokens"))
    assert (got.blocks, got.truncated_call) == ((ToolUseBlock("a", "bash", "{}"),), True)


@pytest.mark.parametrize(
    "written",
    ['{"a": tru', '["list"]', '{"a": NaN}', '{"a": "\\ud800"}', '{"a":' * 10_000 + "1" + "}" * 10_000],
    ids=["broken", "list", "NaN", "surrogate", "deep"],
)
def test_arguments_that_make_no_sense_stay_as_the_model_wrote_them(written: str) -> None:
    got = reply(start(), tool(0, "bash", written), stop("tool_use"))
    assert got.blocks == (ToolUseBlock("toolu_1", "bash", written),)


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert reply(start(), tool(0, "now"), stop("tool_use")).blocks == (ToolUseBlock("toolu_1", "now", "{}"),)


def test_arguments_that_stand_whole_at_the_start_are_taken() -> None:
    events = tool(0, "bash")
    events[0]["content_block"]["input"] = {"command": "ls"}
    assert reply(start(), events, stop("tool_use")).blocks == (ToolUseBlock("toolu_1", "bash", '{"command": "ls"}'),)


def test_200_calls_with_empty_and_double_ids_all_get_their_own() -> None:
    calls = [tool(number, "bash", "{}", tool_id="" if number % 2 else "same") for number in range(200)]
    got = reply(start(), *calls, stop("tool_use"), used=frozenset({"same"}))
    ids = [block.id for block in got.blocks if isinstance(block, ToolUseBlock)]
    assert len(ids) == len(set(ids)) == 200
    assert "same" not in ids
    assert "" not in ids


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", StopReason.END_TURN),
        ("stop_sequence", StopReason.STOP_SEQUENCE),
        ("refusal", StopReason.REFUSAL),
        ("max_tokens", StopReason.MAX_TOKENS),
        ("model_context_window_exceeded", StopReason.MAX_TOKENS),
        ("pause_turn", StopReason.PAUSE_TURN),
        ("something_new", StopReason.END_TURN),
    ],
)
def test_every_stop_reason_is_understood(reason: str, expected: StopReason) -> None:
    assert reply(start(), text(0, "x"), stop(reason)).stop is expected


def test_a_call_makes_the_stop_a_tool_use_whatever_the_server_says() -> None:
    assert reply(start(), tool(0, "bash", "{}"), stop("end_turn")).stop is StopReason.TOOL_USE


def test_later_counts_replace_earlier_ones_and_nulls_do_not() -> None:
    end = stop()
    end[0]["usage"] = {"input_tokens": None, "output_tokens": 9, "cache_read_input_tokens": 4}
    got = reply(start({"input_tokens": 5, "output_tokens": 1, "cache_creation_input_tokens": None}), end)
    assert (got.usage, got.usage_estimated) == (Usage(5, 9, 0, 4), False)


def test_missing_usage_is_said() -> None:
    begin = start()
    del begin["message"]["usage"]
    assert reply(begin, stop()).usage_estimated


def test_blocks_that_grow_in_turns_are_kept_apart() -> None:
    a, b = text(0, "a1", "a2"), thinking(1, "b1", "b2", signature="s")
    mixed = [a[0], b[0], a[1], b[1], a[2], b[2], b[3], a[3], b[4]]
    assert reply(start(), mixed, stop()).blocks == (TextBlock("a1a2"), ThinkingBlock("b1b2", "s"))


def test_unknown_events_blocks_and_fields_are_ignored() -> None:
    odd: list[Event] = [
        {"type": "brand_new", "index": 0},
        {"type": "content_block_start", "index": 5, "content_block": {"type": "hologram", "depth": 3}},
        {"type": "content_block_delta", "index": 5, "delta": {"type": "hologram_delta", "data": {}}},
        {"type": "content_block_stop", "index": 77},
    ]
    assert reply(start(), odd, text(0, "x"), stop()).blocks == (TextBlock("x"),)


def test_a_lone_surrogate_in_the_stream_does_not_end_it() -> None:
    delta = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d"}}'
    _, items = build(start(), text(0, "x")[0], delta)
    assert items[1:] == [TextDelta("a?")]


@pytest.mark.parametrize("payload", [b"not json", b"[1]"], ids=["text", "list"])
def test_what_is_no_event_is_a_protocol_error(payload: bytes) -> None:
    with pytest.raises(ProviderError, match=r"api\.example sent an invalid reply") as caught:
        build(start(), payload)
    assert (caught.value.kind, caught.value.retryable) == ("protocol", True)


def test_a_piece_of_a_block_that_never_began_is_a_protocol_error() -> None:
    with pytest.raises(ProviderError, match="block 3"):
        build(start(), text(3, "x")[1])


def test_an_error_of_llama_cpp_inside_a_stream_is_read() -> None:
    with pytest.raises(ProviderError) as caught:
        build(start(), {"error": {"code": 400, "message": "too big", "type": "exceed_context_size_error"}})
    assert caught.value.context_overflow


ASKED = ModelRequest("claude-opus-5", ("Be brief.",), (ModelMessage(Role.USER, (TextBlock("Hi"),)),), (TOOL,))


def answers(body: bytes) -> Callable[[Talk], Awaitable[None]]:
    async def answer(talk: Talk) -> None:
        await talk.plain(200, body)

    return answer


async def counted(answer: Callable[[Talk], Awaitable[None]]) -> int | None:
    async with serve(answer) as loopback:
        asked = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        tokens = await asked.count_tokens(ASKED)
        await asked.close()
    return tokens


async def test_the_request_is_the_one_that_would_be_answered() -> None:
    async with serve(answers(b'{"input_tokens": 1234}')) as loopback:
        asked = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        assert await asked.count_tokens(replace(ASKED, effort=Effort.HIGH)) == 1_234
        await asked.close()
        (seen,) = loopback.requests
    assert (seen.method, seen.path, seen.headers["x-api-key"]) == ("POST", "/v1/messages/count_tokens", "sk-test")
    assert seen.json == {
        "model": "claude-opus-5",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": CACHED}]}],
        "system": [{"type": "text", "text": "Be brief.", "cache_control": CACHED}],
        "tools": [{"name": "bash", "description": "Run.", "input_schema": {"type": "object"}, "cache_control": CACHED}],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
    }


async def test_nothing_is_sent_without_a_key() -> None:
    async with serve() as loopback:
        asked = AnthropicProvider(AnthropicSettings(base_url=loopback.url))
        assert await asked.count_tokens(ASKED) is None
        await asked.close()
        assert loopback.requests == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"input_tokens": null}',
        b'{"input_tokens": "12"}',
        b'{"input_tokens": -5}',
        b'{"input_tokens": 1e300}',
        b'{"input_tokens": 99999999999999999999}',
        b'{"input_tokens": 5',
        b"\xff\xfe",
        b'{"a":' * 100_000,
    ],
)
async def test_an_odd_answer_is_no_count(body: bytes) -> None:
    assert await counted(answers(body)) is None


@pytest.mark.parametrize(("status", "kind"), [(404, "not_found_error"), (429, "rate_limit_error"), (500, "api_error")])
async def test_a_server_that_refuses_or_lacks_it_is_no_failure(status: int, kind: str) -> None:
    assert await counted(refuses(status, kind, "no")) is None
