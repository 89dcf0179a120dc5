"""Dialects of servers: whole streams as they vary them, reasons of ends, and broken bytes."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.machine.messages import StopReason, TextBlock, ToolUseBlock, text_in
from engine.ports import ImageBytes, ModelReply, ProviderError, TextDelta
from engine.providers.anthropic import from_wire as claude
from engine.providers.events import payloads_of
from engine.providers.failures import Service
from engine.providers.openai_compatible import from_wire as openai
from engine.providers.wire import encode_json, media_type, parse_object, readable_json, tool_input, unique_tool_id
from tests.support.loopback_anthropic import TINY_PNG, start, stop, text, thinking, tool
from tests.support.loopback_openai import call
from tests.support.waiting import PATIENCE

SERVICE = Service("https://gateway.example", "KEY")
ODD: tuple[Any, ...] = (None, 7, 7.5, "7", "odd", True, [], {}, [None], {"text": "x"}, "")
CLAUDE: list[dict[str, Any]] = [
    start({"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0}),
    *thinking(0, "Hm.", signature="sig"),
    *text(1, "Hello ", "there"),
    *tool(2, "bash", '{"command": "ls"}'),
    *stop("tool_use", 5),
]
OPENAI: list[dict[str, Any]] = [
    {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [_choice]}
    for _choice in (
        {"index": 0, "delta": {"role": "assistant", "content": "", "reasoning_content": "Hm."}, "finish_reason": None},
        {"index": 0, "delta": {"content": "Hello ", "tool_calls": None}, "finish_reason": None},
        {"index": 0, "delta": {"content": "there", "refusal": None}, "finish_reason": None, "logprobs": None},
        {
            "index": 0,
            "delta": {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "t1",
                        "type": "function",
                        "function": {"name": "bash", "arguments": '{"command": "ls"}'},
                    }
                ]
            },
        },
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    )
] + [
    {
        "id": "c1",
        "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}},
    }
]
CONTENT = {"content", "text", "delta", "content_block", "choices", "type", "index", "tool_calls", "function", "error"}
"""Fields that are the answer, or without which its place is unknown."""


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every field of an event, at any depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from places(each, (*path, key))


def changed(event: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The event with another value at one place."""
    result = copy.deepcopy(event)
    inner: Any = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return result


def reply_of(protocol: str, events: list[dict[str, Any]]) -> ModelReply:
    """Reply read from these events."""
    if protocol == "claude":
        of_claude = claude.AnthropicReplyBuilder(SERVICE, "m", set())
        for event in events:
            of_claude.feed(json.dumps(event).encode())
        return of_claude.reply()
    of_openai = openai.OpenAiReplyBuilder(SERVICE, "m", set(), 100)
    for event in events:
        list(of_openai.feed(json.dumps(event).encode()))
    return of_openai.reply()


VARIANTS = [
    (protocol, number, path)
    for protocol, events in (("claude", CLAUDE), ("openai", OPENAI))
    for number, event in enumerate(events)
    for path in places(event)
]


def test_there_are_enough_of_them() -> None:
    assert len(VARIANTS) * len(ODD) > 1_000


@pytest.mark.parametrize("protocol", ["claude", "openai"])
def test_the_unchanged_answer_is_whole(protocol: str) -> None:
    reply = reply_of(protocol, CLAUDE if protocol == "claude" else OPENAI)
    assert text_in(reply.blocks) == "Hello there"
    assert [block.name for block in reply.blocks if isinstance(block, ToolUseBlock)] == ["bash"]


@pytest.mark.parametrize("protocol", ["claude", "openai"])
def test_a_field_of_another_type_costs_no_answer(protocol: str) -> None:
    events = CLAUDE if protocol == "claude" else OPENAI
    lost: list[str] = []
    for _, number, path in (each for each in VARIANTS if each[0] == protocol):
        for value in ODD:
            variant = [*events[:number], changed(events[number], path, value), *events[number + 1 :]]
            try:
                reply = reply_of(protocol, variant)
            except ProviderError as error:
                said = error.message
                if not CONTENT & set(map(str, path)) or "Wire" in said or "Expected" in said:
                    lost.append(f"{path} = {value!r}: {said}")
                continue
            if not CONTENT & set(map(str, path)) and text_in(reply.blocks) != "Hello there":
                lost.append(f"{path} = {value!r}: {reply.blocks}")
            assert all(isinstance(each.text, str) for each in reply.blocks if isinstance(each, TextBlock))
    assert lost == []


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(CONTENT)), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(VARIANTS), anything, st.booleans())
def test_whatever_stands_anywhere_is_an_answer_or_a_sentence(variant: Any, value: Any, doubled: bool) -> None:
    protocol, number, path = variant
    events = CLAUDE if protocol == "claude" else OPENAI
    odd = changed(events[number], path, value)
    try:
        reply_of(protocol, [*events[:number], odd, *([odd] if doubled else []), *events[number + 1 :]])
    except ProviderError as error:
        assert "Wire" not in error.message
        assert "Traceback" not in error.message


Event = dict[str, Any]


def lines(end: str, before: str = "", space: str = " ") -> Callable[[Event], str]:
    return lambda event: f"{before}data:{space}{json.dumps(event)}{end}{end}"


FRAMINGS: dict[str, Callable[[Event], str]] = {
    "plain": lines("\n"),
    "no space": lines("\n", space=""),
    "CRLF": lines("\r\n"),
    "CR": lines("\r"),
    "comments": lines("\n", ": OPENROUTER PROCESSING\n\n"),
    "named": lambda event: f"event: {event.get('type', 'message')}\nid: 7\nretry: 3000\ndata: {json.dumps(event)}\n\n",
    "spread": lambda event: "".join(f"data: {line}\n" for line in json.dumps(event, indent=1).split("\n")) + "\n",
    "one a line": lambda event: f"{json.dumps(event)}\n",
}


def delta(change: Event, finish: str | None = None, **more: Any) -> Event:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": change, "finish_reason": finish}], **more}


def calling(function: Event, **more: Any) -> Event:
    return delta({"tool_calls": [{"function": function, **more}]})


USAGE = {"prompt_tokens": 10, "completion_tokens": 5}
ARGUMENTS = '{"command": "ls"}'
TEXTS: dict[str, list[Event]] = {
    "text": [delta({"role": "assistant", "content": ""}), delta({"content": "Hello "}), delta({"content": "there"})],
    "null first": [delta({"role": "assistant", "content": None}), delta({"content": "Hello there"})],
    "parts": [delta({"content": [{"type": "text", "text": "Hello "}, {"type": "text", "text": "there"}]})],
    "reasoned": [delta({"reasoning_content": "Hm."}), delta({"content": "Hello there", "reasoning_content": None})],
    "tagged": [delta({"content": "<think>H"}), delta({"content": "m.</thi"}), delta({"content": "nk>Hello there"})],
    "as a message": [{"choices": [{"message": {"role": "assistant", "content": "Hello there"}}]}],
}
CALLS: dict[str, list[Event]] = {
    "pieces": [
        calling({"name": "bash", "arguments": ""}, index=0, id="t1"),
        calling({"arguments": ARGUMENTS[:5]}, index=0),
        calling({"arguments": ARGUMENTS[5:]}, index=0),
    ],
    "name again": [
        calling({"name": "bash", "arguments": ARGUMENTS[:5]}, index=0, id="t1"),
        calling({"name": "bash", "arguments": ARGUMENTS[5:]}, index=0, id="t1"),
    ],
    "whole": [calling({"name": "bash", "arguments": ARGUMENTS}, id="t1", type="function")],
    "object": [calling({"name": "bash", "arguments": {"command": "ls"}}, index=0, id=None)],
    "name alone": [
        calling({"name": "bash"}, index=0, id="t1"),
        calling({"name": None, "arguments": ARGUMENTS}, index="0"),
    ],
}
ENDINGS: dict[str, list[Event | str]] = {
    "usage behind": [delta({}, "tool_calls"), {"choices": [], "usage": USAGE}, "[DONE]"],
    "usage with it": [delta({}, "tool_calls", usage=USAGE), "[DONE]"],
    "no mark": [delta({}, "stop", usage=USAGE)],
    "capitals": [delta({}, "TOOL_CALLS", usage=USAGE), "[DONE]"],
    "old name": [delta({}, "function_call", usage=USAGE), {"choices": None}, "[DONE]"],
}


def openai_stream(framing: str, named: Iterable[str]) -> bytes:
    words, calls, ending = named
    write, body = FRAMINGS[framing], ""
    for event in [*TEXTS[words], *CALLS[calls], *ENDINGS[ending]]:
        done = "[DONE]\n" if framing == "one a line" else "data: [DONE]\n\n"
        body += done if isinstance(event, str) else write(event)
    return body.encode()


def ending(change: Event, **counts: int | None) -> Event:
    return {"type": "message_delta", "delta": change, "usage": {"output_tokens": 5, **counts}}


PING: Event = {"type": "ping"}
CLAUDE_BODIES: dict[str, list[Event]] = {
    "text and call": [*text(0, "Hello ", "there"), *tool(1, "bash", ARGUMENTS[:5], ARGUMENTS[5:])],
    "thought": [*thinking(0, "Hm.", signature="s"), *text(1, "Hello there"), *tool(2, "bash", ARGUMENTS)],
    "text at the start": [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hello there"}},
        {"type": "content_block_stop", "index": 0},
        *tool(1, "bash", ARGUMENTS),
    ],
    "input at the start": [
        *text(0, "Hello there"),
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "bash", "input": {"command": "ls"}},
        },
        {"type": "content_block_stop", "index": 1},
    ],
    "pings and news": [
        {"type": "ping"},
        {"type": "news", "x": [1]},
        *text(0, "Hello there"),
        {"type": "ping"},
        *tool(1, "bash", ARGUMENTS),
    ],
}
CLAUDE_ENDS: dict[str, list[Event]] = {
    "usual": stop("tool_use"),
    "all counts last": [ending({"stop_reason": "tool_use"}, input_tokens=10), {"type": "message_stop"}],
    "no reason": [ending({}), {"type": "message_stop"}],
    "null fields": [
        ending({"stop_reason": "tool_use", "stop_sequence": None}, input_tokens=None),
        {"type": "message_stop", "usage": None},
    ],
}


def claude_stream(framing: str, named: Iterable[str]) -> bytes:
    body, ending = named
    write = FRAMINGS[framing]
    return "".join(map(write, [start(), *CLAUDE_BODIES[body], *CLAUDE_ENDS[ending]])).encode()


OPENAI_VARIANTS = list(itertools.product(FRAMINGS, itertools.product(TEXTS, CALLS, ENDINGS)))
CLAUDE_VARIANTS = list(itertools.product(FRAMINGS, itertools.product(CLAUDE_BODIES, CLAUDE_ENDS)))


async def read(protocol: str, body: bytes, size: int) -> ModelReply | None:
    """The reply that a body comes to, read in pieces of `size` bytes; None where it does not end."""

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), size):
            yield body[at : at + size]

    if protocol == "claude":
        builder = claude.AnthropicReplyBuilder(SERVICE, "m", set())
        async for batch in payloads_of(SERVICE, chunks()):
            for payload in batch:
                builder.feed(payload)
        return builder.reply() if builder.done else None
    other = openai.OpenAiReplyBuilder(SERVICE, "m", set(), 100)
    async for batch in payloads_of(SERVICE, chunks()):
        for payload in batch:
            list(other.feed(payload))
    return other.reply() if other.finished else None


def meaning(reply: ModelReply | None) -> Any:
    """Part of a reply that must be equal in every dialect."""
    if reply is None:
        return None
    calls = [(block.name, json.loads(block.input_json)) for block in reply.blocks if isinstance(block, ToolUseBlock)]
    return text_in(reply.blocks), calls, reply.stop, reply.usage.input_tokens, reply.usage.output_tokens


WHOLE = ("Hello there", [("bash", {"command": "ls"})], StopReason.TOOL_USE, 10, 5)


def test_the_suite_has_more_than_200_dialects() -> None:
    assert (len(OPENAI_VARIANTS), len(CLAUDE_VARIANTS)) == (1_200, 160)


@pytest.mark.parametrize("protocol", ["claude", "openai"])
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("size", [11, 100_000])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "BOM"])
async def test_every_dialect_comes_to_the_same_reply(protocol: str, framing: str, size: int, mark: bytes) -> None:
    stream = claude_stream if protocol == "claude" else openai_stream
    variants = CLAUDE_VARIANTS if protocol == "claude" else OPENAI_VARIANTS
    wrong: dict[str, Any] = {}
    for kind, named in variants:
        if kind != framing:
            continue
        try:
            told = meaning(await read(protocol, mark + stream(kind, named), size))
        except ProviderError as error:
            told = error.message
        if told != WHOLE:
            wrong[f"{kind} {named}"] = told
    assert wrong == {}


ALL = [("openai", *one) for one in OPENAI_VARIANTS] + [("claude", *one) for one in CLAUDE_VARIANTS]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["drop", "double", "flip", "insert", "cut"]), st.integers(0, 5_000), st.binary(max_size=4)
    ),
    min_size=1,
    max_size=4,
)


def harmed(body: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    """The body with some of its bytes changed."""
    for way, place, extra in changes:
        at = place % (len(body) + 1)
        piece = body[at : at + 9]
        match way:
            case "drop":
                body = body[:at] + body[at + len(piece) :]
            case "double":
                body = body[:at] + piece + body[at:]
            case "flip":
                body = body[:at] + bytes(byte ^ 0x20 for byte in piece) + body[at + len(piece) :]
            case "insert":
                body = body[:at] + extra + body[at:]
            case _:
                body = body[:at]
    return body


@given(st.sampled_from(ALL), CHANGES, st.integers(1, 64))
def test_harmed_bytes_are_a_reply_an_end_or_a_sentence(variant: Any, changes: Any, size: int) -> None:
    protocol, framing, named = variant
    stream = claude_stream if protocol == "claude" else openai_stream

    async def heard() -> None:
        async with asyncio.timeout(PATIENCE):
            await read(protocol, harmed(stream(framing, named), changes), size)

    try:
        asyncio.run(heard())
    except ProviderError as error:
        assert error.message.endswith((".", "…")) or ":" in error.message
        assert not any(word in error.message for word in ("Wire", "Traceback", "Error(", "object at 0x", "msgspec"))


def openai_reply(*choices: dict[str, Any]) -> tuple[ModelReply, str]:
    """Reply read from these choices, and the text shown meanwhile."""
    builder, shown = openai.OpenAiReplyBuilder(SERVICE, "m", set(), 100), ""
    for choice in choices:
        for item in builder.feed(json.dumps({"id": "c", "choices": [choice]}).encode()):
            shown += item.text if isinstance(item, TextDelta) else ""
    return builder.reply(), shown


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("stop", StopReason.END_TURN),
        ("STOP", StopReason.END_TURN),
        ("eos", StopReason.END_TURN),
        ("length", StopReason.MAX_TOKENS),
        ("MAX_TOKENS", StopReason.MAX_TOKENS),
        ("content_filter", StopReason.CONTENT_FILTER),
        ("SAFETY", StopReason.CONTENT_FILTER),
        ("RECITATION", StopReason.CONTENT_FILTER),
        ("PROHIBITED_CONTENT", StopReason.CONTENT_FILTER),
        ("sensitive", StopReason.CONTENT_FILTER),
        ("refusal", StopReason.REFUSAL),
    ],
)
def test_a_finish_reason_is_what_it_says_and_keeps_the_text(reason: str, stop_reason: StopReason) -> None:
    reply, shown = openai_reply({"delta": {"content": "Half of"}}, {"delta": {}, "finish_reason": reason})
    assert (reply.stop, text_in(reply.blocks), shown) == (stop_reason, "Half of", "Half of")


@pytest.mark.parametrize("reason", ["error", "ERROR", "network_error", "insufficient_system_resource", "abort"])
def test_a_reply_that_ends_with_an_error_is_a_failure_of_the_server_to_try_again(reason: str) -> None:
    with pytest.raises(ProviderError) as caught:
        openai_reply({"delta": {"content": "Half"}, "finish_reason": reason})
    assert (caught.value.kind, caught.value.retryable) == ("server", True)
    assert caught.value.message == (f"gateway.example failed with an error: the reply ended with `{reason.lower()}`")


def test_the_error_inside_a_choice_is_told_in_its_own_words() -> None:
    odd = {"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "Upstream is gone"}}
    with pytest.raises(ProviderError, match="Upstream is gone"):
        openai_reply({"delta": {"content": "Half"}}, odd)


@pytest.mark.parametrize("field", ["delta", "message"])
def test_words_that_decline_are_text_and_a_refusal_whatever_the_finish_reason(field: str) -> None:
    pieces = ({field: {"content": None, "refusal": "I can"}}, {field: {"refusal": "not."}, "finish_reason": "stop"})
    reply, shown = openai_reply(*pieces)
    assert (reply.stop, text_in(reply.blocks), shown) == (StopReason.REFUSAL, "I cannot.", "I cannot.")
    reply, _ = openai_reply({field: {"content": "Well. ", "refusal": "No."}, "finish_reason": "stop"})
    assert (reply.stop, text_in(reply.blocks)) == (StopReason.REFUSAL, "Well. No.")


@pytest.mark.parametrize("ending", [{"finish_reason": "content_filter"}, {"delta": {"refusal": "No."}}])
def test_what_was_declined_runs_no_call(ending: dict[str, Any]) -> None:
    reply, _ = openai_reply({"delta": call(0, "bash", "{}", "t1")}, {"delta": {}, **ending})
    assert not any(isinstance(block, ToolUseBlock) for block in reply.blocks)


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_refusal_is_none(empty: str | None) -> None:
    reply, _ = openai_reply({"delta": {"content": "Hi", "refusal": empty}, "finish_reason": "stop"})
    assert reply.stop is StopReason.END_TURN


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("refusal", StopReason.REFUSAL),
        ("content_filter", StopReason.CONTENT_FILTER),
        ("guardrail_intervened", StopReason.CONTENT_FILTER),
        ("length", StopReason.MAX_TOKENS),
        ("something new", StopReason.END_TURN),
    ],
)
def test_the_other_protocol_tells_them_apart_too(reason: str, stop_reason: StopReason) -> None:
    builder = claude.AnthropicReplyBuilder(SERVICE, "m", set())
    for event in [start(), *text(0, "Half"), *stop(reason)]:
        builder.feed(json.dumps(event).encode())
    assert (builder.reply().stop, text_in(builder.reply().blocks)) == (stop_reason, "Half")


def test_a_call_before_a_refusal_stays_a_matter_of_the_machine() -> None:
    builder = claude.AnthropicReplyBuilder(SERVICE, "m", set())
    for event in [start(), *tool(0, "bash", "{}"), *stop("refusal")]:
        builder.feed(json.dumps(event).encode())
    assert builder.reply().stop is StopReason.REFUSAL


def test_lone_surrogates_and_nul_leave_as_valid_json() -> None:
    encoded = encode_json({"a": ["x\ud800y", {"\udc00": "\x00"}], "n": 1, "b": None})
    assert json.loads(encoded) == {"a": ["x?y", {"?": "\x00"}], "n": 1, "b": None}


@pytest.mark.parametrize(
    "text",
    ['{"a": "trunc', "[1]", "7", "", '{"a": NaN}', '{"a": "\\ud800"}', '{"a":' * 100_000 + "1" + "}" * 100_000],
    ids=["truncated", "list", "number", "empty", "NaN", "surrogate", "deep"],
)
def test_text_that_is_no_object_is_none(text: str) -> None:
    assert parse_object(text) is None


def test_duplicate_keys_and_megabytes_are_an_object() -> None:
    assert parse_object('{"a": 1, "a": 2}') == {"a": 2}
    assert parse_object('{"a": "' + "x" * 5_000_000 + '"}') == {"a": "x" * 5_000_000}


def test_a_broken_input_is_quoted_back_to_the_model() -> None:
    assert tool_input(ToolUseBlock("a", "bash", '{"command": "l')) == {"invalid_json": '{"command": "l'}
    assert tool_input(ToolUseBlock("a", "bash", '{"command": "ls"}')) == {"command": "ls"}


def test_an_event_with_a_lone_surrogate_or_broken_utf8_is_still_read() -> None:
    assert json.loads(readable_json(b'{"text":"a\\ud800b"}')) == {"text": "a?b"}
    assert json.loads(readable_json(b'{"text":"a\xffb"}')) == {"text": "a\ufffdb"}
    with pytest.raises(ValueError, match="Expecting"):
        readable_json(b'{"text": tr')


def test_ids_are_unique_and_in_every_providers_alphabet() -> None:
    used = {"call_0"}
    ids = [unique_tool_id(given, used, "spare") for given in ("call_0", "call_0", "", "", "functions.bash:0", "x" * 99)]
    assert ids == ["call_0_2", "call_0_3", "spare", "spare_2", "functions_bash_0", "x" * 64]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (TINY_PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"????", "image/bmp"),
    ],
)
def test_the_media_type_fits_the_bytes(data: bytes, kind: str) -> None:
    assert media_type(ImageBytes("image/bmp", data)) == kind
