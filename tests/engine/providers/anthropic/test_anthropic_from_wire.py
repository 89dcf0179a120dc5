"""Odd streams of the Messages API, as values (FAULTS 39, 41, 45)."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from engine.machine.messages import StopReason, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from engine.ports import ModelReply, ProviderError, StreamItem, TextDelta
from engine.providers.anthropic.from_wire import AnthropicReplyBuilder
from engine.providers.failures import Service
from tests.support.loopback_anthropic import Event, start, stop, text, thinking, tool

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
