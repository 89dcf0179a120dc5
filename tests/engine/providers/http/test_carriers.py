"""Both transports to a service, with the same results and failures: in pieces, in one, in bursts and in trickles."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import ssl
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.machine.messages import Role, StopReason, TextBlock, ToolUseBlock, Usage, text_in
from engine.ports import ModelMessage, ModelReply, ModelRequest, Provider, ProviderError
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.direct_transport import DirectTransport, tls_context
from engine.providers.http import MERGE_SECONDS, STEADY_READS, ReadPace
from engine.providers.http_transport import (
    ConnectTimeout,
    HttpTransport,
    InvalidResponse,
    ReadTimeout,
    TransportError,
    Unsendable,
    is_straight,
)
from engine.providers.httpx_transport import HttpxTransport
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from tests.support.clocks import SteppedClock
from tests.support.loopback import CERTIFICATE, Answer, Loopback, Talk, serve
from tests.support.loopback_anthropic import Event, recording, start, stop, text

Maker = Callable[[str, float], HttpTransport]
PATIENCE = 20.0
both = pytest.mark.parametrize("maker", [DirectTransport, HttpxTransport])


@asynccontextmanager
async def asking(
    maker: Maker, *answers: Answer, patience: float = PATIENCE
) -> AsyncGenerator[tuple[Loopback, HttpTransport]]:
    """A server that gives `answers`, and a carrier to it."""
    async with serve(*answers) as loopback:
        carrier = maker(loopback.url, patience)
        try:
            yield loopback, carrier
        finally:
            await carrier.close()


async def asked(carrier: HttpTransport, loopback: Loopback, body: bytes = b"{}") -> tuple[int, bytes]:
    """Status and body of one answer."""
    async with carrier.ask("POST", f"{loopback.url}/v1/x?y=1", {"x-name": "grün"}, body) as answer:
        return answer.status, b"".join([piece async for piece in answer.pieces()])


async def chunked(talk: Talk) -> None:
    await talk.begin()
    await talk.send(b"one ", b"two")
    await talk.end()


async def until_the_end(talk: Talk) -> None:
    talk.keep = False
    talk.writer.write(b"HTTP/1.1 200 OK\r\n\r\nall there is")


@both
async def test_a_request_arrives_whole_and_its_answer_comes_back(maker: Maker) -> None:
    async with asking(maker, chunked, until_the_end) as (loopback, carrier):
        body = b"x" * 3_000_000
        assert await asked(carrier, loopback, body) == (200, b"one two")
        assert await asked(carrier, loopback) == (200, b"all there is")
        first = loopback.requests[0]
        assert (first.method, first.path, first.body) == ("POST", "/v1/x?y=1", body)
        assert first.headers["host"] == loopback.url.removeprefix("http://")
        assert first.headers["x-name"].encode("latin-1").decode() == "grün"


@both
async def test_a_connection_is_used_again_until_the_server_hangs_up(maker: Maker) -> None:
    async def last(talk: Talk) -> None:
        await chunked(talk)
        talk.keep = False

    async with asking(maker, chunked, last, chunked) as (loopback, carrier):
        for _ in range(2):
            await asked(carrier, loopback)
        await loopback.wait_closed()
        other = maker(loopback.url, PATIENCE)
        await asked(other, loopback)  # a round trip later, the end of the first connection has arrived, too
        await other.close()
        assert await asked(carrier, loopback) == (200, b"one two")
        assert [seen.connection for seen in loopback.requests] == [1, 1, 2, 3]


@both
async def test_leaving_an_answer_early_drops_the_connection(maker: Maker) -> None:
    async def endless(talk: Talk) -> None:
        await talk.begin()
        await talk.send(b"one ")
        await talk.stall()

    async with asking(maker, endless) as (loopback, carrier):
        async with carrier.ask("GET", loopback.url, {}) as answer:
            async for piece in answer.pieces():
                assert piece == b"one "
                break
        await loopback.wait_closed()


@both
async def test_a_body_is_unpacked_although_nobody_asked_for_it_packed(maker: Maker) -> None:
    async def packed(talk: Talk) -> None:
        await talk.plain(200, gzip.compress(b"plain words" * 900), "content-encoding: gzip\r\n")

    async def broken(talk: Talk) -> None:
        await talk.plain(200, b"no gzip", "content-encoding: gzip\r\n")

    async with asking(maker, packed, broken) as (loopback, carrier):
        assert await asked(carrier, loopback) == (200, b"plain words" * 900)
        with pytest.raises(InvalidResponse):
            await asked(carrier, loopback)


@both
async def test_an_answer_that_came_before_all_was_sent_is_read(maker: Maker) -> None:
    async def too_large(talk: Talk) -> None:
        await talk.plain(413, b"too large", "connection: close\r\n")
        talk.keep = False

    async with asking(maker, too_large) as (loopback, carrier):
        assert await asked(carrier, loopback, b"x" * 100_000) == (413, b"too large")


async def hangs_up(talk: Talk) -> None:
    talk.keep = False


async def cut(talk: Talk) -> None:
    await talk.begin()
    await talk.send(b"one ")
    talk.keep = False


async def other_words(talk: Talk) -> None:
    talk.writer.write(b"220 mail.invalid ESMTP\r\n\r\n")
    talk.keep = False


@both
@pytest.mark.parametrize("answer", [Talk.reset, hangs_up, cut, other_words])
async def test_an_answer_that_is_none_or_breaks_off_is_a_failure(maker: Maker, answer: Answer) -> None:
    async with asking(maker, answer) as (loopback, carrier):
        with pytest.raises(TransportError) as caught:
            await asked(carrier, loopback)
    assert type(caught.value) is TransportError


@both
async def test_a_server_that_says_nothing_is_silent(maker: Maker) -> None:
    async with asking(maker, Talk.stall, patience=0.05) as (loopback, carrier):
        with pytest.raises(ReadTimeout):
            await asked(carrier, loopback)


@both
async def test_nobody_there_is_a_failure(maker: Maker) -> None:
    async with serve(chunked) as loopback:
        gone = loopback.url
    carrier = maker(gone, PATIENCE)
    with pytest.raises(TransportError) as caught:
        async with carrier.ask("GET", gone, {}):
            pass
    await carrier.close()
    assert not isinstance(caught.value, (ConnectTimeout, ReadTimeout))


@both
@pytest.mark.parametrize("end", ["\nkey", "\r", "\0", "\x1b", "\udcff"])
async def test_a_key_that_no_header_can_hold_is_not_quoted(maker: Maker, end: str) -> None:
    async with asking(maker, chunked) as (loopback, carrier):
        with pytest.raises(Unsendable) as caught:
            async with carrier.ask("GET", loopback.url, {"x-api-key": f"planted{end}"}):
                pass
        assert "planted" not in f"{caught.value} {caught.value.__cause__}"
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


async def test_a_server_is_believed_by_its_certificate_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(chunked, secure=True) as loopback:
        carrier = DirectTransport(loopback.url, PATIENCE)
        with pytest.raises(TransportError, match=r"is not trusted.*SSL_CERT_FILE"):
            await asked(carrier, loopback)
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        tls_context.cache_clear()
        try:
            assert await asked(carrier, loopback) == (200, b"one two")
            assert await asked(carrier, loopback) == (200, b"one two")
        finally:
            await carrier.close()
            tls_context.cache_clear()
        assert [seen.connection for seen in loopback.requests] == [1, 1]
        assert tls_context().verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"])
async def test_bytes_that_drip_prolong_no_wait(begun: bytes) -> None:
    async def drips(talk: Talk) -> None:
        talk.writer.write(begun or b"HTTP/1.1 200 OK\r\n")

        def drip() -> None:
            if not talk.writer.is_closing():
                talk.writer.write(b"0" if begun else b"x-drip: 1\r\n")
                asyncio.get_running_loop().call_later(0.02, drip)

        drip()
        await talk.stall()

    async with asking(DirectTransport, drips, patience=0.3) as (loopback, carrier):
        with pytest.raises(ReadTimeout):
            await asked(carrier, loopback)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has its own proxies and certificates")
def test_what_stands_on_the_way_is_left_to_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    straight = ["https://api.anthropic.com", "http://box.lan:8080/v1", "http://[::1]:80", "http://localhost:11434/v1"]
    others = [
        "https://name:word@box.lan",
        "http://bücher.example",
        "ftp://x",
        "nonsense",
        "http://x:port",
        "http://a b",
    ]
    assert [is_straight(url) for url in straight] == [True] * 4
    assert [is_straight(url) for url in others] == [False] * 6
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert [is_straight(url) for url in straight] == [False, False, True, True]


@both
@pytest.mark.parametrize("ends", ["at once", "while the answer is read"])
async def test_a_server_that_closes_after_each_answer_costs_no_request(maker: Maker, ends: str) -> None:
    async def last(talk: Talk) -> None:
        talk.keep = False
        if ends == "at once":
            await chunked(talk)
        else:
            await talk.plain(200, b"one two")
        talk.writer.write_eof()

    async with asking(maker, last) as (loopback, carrier):
        for _ in range(20):
            assert await asked(carrier, loopback) == (200, b"one two")
        assert len(loopback.requests) == 20


async def test_a_connection_that_ended_as_it_rested_is_asked_again_once() -> None:
    async def closes(talk: Talk) -> None:
        talk.keep = False

    async with asking(DirectTransport, chunked, closes, chunked, closes, closes) as (loopback, carrier):
        assert await asked(carrier, loopback) == (200, b"one two")
        assert await asked(carrier, loopback) == (200, b"one two")  # the second connection
        with pytest.raises(TransportError, match="closed the connection without an answer"):
            await asked(carrier, loopback)
        assert [seen.connection for seen in loopback.requests] == [1, 1, 2, 2, 3]


HELLO = ModelRequest("m", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5-5",
    "content": [
        {"type": "text", "text": "Hello there"},
        {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
OPENAI = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Hello there",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5},
}


def provider(kind: str, loopback: Loopback) -> Provider:
    if kind == "openai":
        return OpenAiCompatibleProvider(OpenAiCompatibleSettings("gateway", f"{loopback.url}/v1", api_key="sk-test"))
    transport: Any = "sdk" if kind == "claude, sdk" else "http"
    return AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url, transport=transport))


async def ask(kind: str, answer: Answer) -> tuple[ModelReply, int]:
    """The reply, and how many requests it took."""
    async with serve(answer) as loopback:
        asked = provider(kind, loopback)
        try:
            items = [item async for item in asked.stream(HELLO)]
        finally:
            await asked.close()
        assert isinstance(items[-1], ModelReply)
        return items[-1], len(loopback.requests)


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
@pytest.mark.parametrize("named", ["application/json", "text/event-stream", "text/plain"])
@pytest.mark.parametrize("pieces", [1, 40])
async def test_a_reply_in_one_piece_is_read_as_one(kind: str, named: str, pieces: int) -> None:
    document = b"\n " + json.dumps(OPENAI if kind == "openai" else CLAUDE).encode()

    async def answer(talk: Talk) -> None:
        await talk.begin(named)
        size = len(document) // pieces + 1
        await talk.send(*(document[at : at + size] for at in range(0, len(document), size)))
        await talk.end()

    reply, requests = await ask(kind, answer)
    assert (text_in(reply.blocks), reply.stop, requests) == ("Hello there", StopReason.TOOL_USE, 1)
    [call] = [block for block in reply.blocks if isinstance(block, ToolUseBlock)]
    assert (call.name, json.loads(call.input_json)) == ("bash", {"command": "ls"})
    assert reply.usage == Usage(10, 5)


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
@pytest.mark.parametrize(
    "document",
    [
        {"error": {"message": "No such deployment: gpt-9", "code": 404}},
        {"error": "No such deployment: gpt-9"},
        {"message": "No such deployment: gpt-9"},
        {"detail": "No such deployment: gpt-9"},
        {"type": "error", "error": {"type": "not_found_error", "message": "No such deployment: gpt-9"}},
    ],
)
async def test_an_error_in_the_place_of_a_reply_is_told_in_its_own_words(kind: str, document: Any) -> None:
    async def answer(talk: Talk) -> None:
        await talk.plain(200, json.dumps(document).encode())

    with pytest.raises(ProviderError, match="No such deployment: gpt-9") as caught:
        await ask(kind, answer)
    assert not caught.value.retryable


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
@pytest.mark.parametrize("body", [b'{"type": "message", "content": [{"ty', b"{}}", b'{"a": \xff\xfe', b"[1, 2"])
async def test_a_damaged_body_counts_as_a_stream_that_was_cut(kind: str, body: bytes) -> None:
    async def answer(talk: Talk) -> None:
        await talk.plain(200, body)

    with pytest.raises(ProviderError, match="was lost in the middle of the reply") as caught:
        await ask(kind, answer)
    assert caught.value.retryable


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
async def test_a_web_page_in_the_place_of_a_reply_is_named(kind: str) -> None:
    async def answer(talk: Talk) -> None:
        await talk.begin("text/html; charset=utf-8")
        await talk.send(b"<!DOCTYPE html><title>Log in</title>")
        await talk.end()

    with pytest.raises(ProviderError, match="answered with a web page"):
        await ask(kind, answer)


@pytest.mark.parametrize("kind", ["claude", "claude, sdk"])
async def test_kinds_that_nobody_knows_yet_are_passed_by(kind: str) -> None:
    new: list[Event] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "hologram", "beam": [1, 2]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "hologram_delta", "beam": {"x": 1}}},
        {"type": "content_block_stop", "index": 0},
        {"type": "weather_report", "sky": "clear"},
    ]
    events = recording(start(), new, text(1, "Hello there"), stop())

    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*events)
        await talk.end()

    reply, requests = await ask(kind, answer)
    assert (text_in(reply.blocks), requests) == ("Hello there", 1)


SHORT_LINES = "a\n" * 40_000
CODE = "[{" * 30_000


def in_one_piece(kind: str, text: str, **more: object) -> Answer:
    """A server that answers with `text`."""
    said = (
        {**OPENAI, "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
        if kind == "openai"
        else {**CLAUDE, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    )

    async def answer(talk: Talk) -> None:
        await talk.plain(200, json.dumps({**said, **more}).encode())

    return answer


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
@pytest.mark.parametrize("text", [SHORT_LINES, CODE, '"\\' * 20_000], ids=["short lines", "code", "quotes"])
async def test_every_character_arrives_brackets_in_the_text_too(kind: str, text: str) -> None:
    reply, requests = await ask(kind, in_one_piece(kind, text))
    assert (text_in(reply.blocks).strip(), requests) == (text.strip(), 1)


@pytest.mark.parametrize("kind", ["claude", "openai"])
@pytest.mark.parametrize("extra", [[{}] * 60_000, ["["] * 200_000], ids=["objects", "texts"])
async def test_as_many_objects_or_texts_with_brackets_are_refused(kind: str, extra: object) -> None:
    with pytest.raises(ProviderError, match="larger than any reply"):
        await ask(kind, in_one_piece(kind, "Hello", extra=extra))


async def test_the_loop_goes_on_while_a_reply_of_many_lines_is_read() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with serve(in_one_piece("openai", SHORT_LINES)) as loopback, contextlib.AsyncExitStack() as stack:
        asked = provider("openai", loopback)
        stack.push_async_callback(asked.close)
        stream, pieces = asked.stream(HELLO), 0
        counting: asyncio.Task[None] | None = None
        async for _ in stream:
            counting = counting or asyncio.create_task(count())
            pieces += 1
        assert counting is not None
        counting.cancel()
    assert pieces > 50
    assert turns > 20


def read(pace: ReadPace, clock: SteppedClock, *, waited: float, worked: float = 0.0001) -> float | None:
    clock.seconds += waited
    pace.note_piece()
    clock.seconds += worked
    return pace.rest()


def test_a_burst_lets_the_loop_run_every_millisecond() -> None:
    clock = SteppedClock()
    pace = ReadPace(clock)
    rests = [read(pace, clock, waited=0.0, worked=0.0003) for _ in range(8)]
    assert rests == [None, None, None, 0.0, None, None, None, 0.0]


def test_a_short_answer_is_read_without_pauses() -> None:
    clock = SteppedClock()
    pace = ReadPace(clock)
    assert [read(pace, clock, waited=0.01) for _ in range(STEADY_READS)] == [None] * STEADY_READS


def test_tokens_that_trickle_in_are_merged_and_what_was_merged_is_read_at_once() -> None:
    clock = SteppedClock()
    pace = ReadPace(clock)
    for _ in range(STEADY_READS):
        read(pace, clock, waited=0.0125)
    assert read(pace, clock, waited=0.0125) == MERGE_SECONDS
    clock.seconds += MERGE_SECONDS
    pace.note_rest()
    assert [read(pace, clock, waited=0.0001) for _ in range(3)] == [None] * 3
    assert read(pace, clock, waited=0.0125) == MERGE_SECONDS
