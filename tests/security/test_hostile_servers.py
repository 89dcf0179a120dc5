"""Weaknesses: a gzip body took 2.5 GB and an endless line 550 MB; every source of bytes from a server has a bound."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import cache

import pytest

from engine.ports import ProviderError
from engine.providers.events import EventParser, payloads_of
from engine.providers.failures import Service
from engine.providers.http import Head, HttpService
from engine.providers.http_transport import LONGEST_PINGS, MOST_EVENT, InvalidResponse, Unpacker, seconds, tokens
from engine.providers.openai_compatible.from_wire import _DECODER as CHUNKS
from engine.providers.wire import decode_event
from tests.support.loopback import Talk, serve
from tests.support.storage import ROOT

GROWTH = 64
"""MB that one answer may cost."""
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
BLOCK = 64 * 1024


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def for_ever(head: bytes, again: bytes) -> Iterator[bytes]:
    yield head
    piece = again * max(1, BLOCK // len(again))
    while True:
        yield piece


@cache
def packed_blanks() -> bytes:
    """A quarter of a gigabyte in 1 MB, four times what an answer may cost."""
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    blanks = b" " * 2**20
    return b"".join(packer.compress(blanks) for _ in range(256)) + packer.flush()


def bomb(head: bytes) -> Iterator[bytes]:
    yield head
    packed = packed_blanks()
    yield from (packed[start : start + BLOCK] for start in range(0, len(packed), BLOCK))


def text(kind: str, words: str) -> bytes:
    if kind == "openai":
        return event({"choices": [{"delta": {"content": words}}]})
    return event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}})


def call(kind: str, number: int, arguments: str) -> bytes:
    if kind == "openai":
        function = {"name": "x", "arguments": arguments}
        return event({
            "choices": [{"delta": {"tool_calls": [{"index": number, "id": f"c{number}", "function": function}]}}]
        })
    start = {"type": "tool_use", "id": f"c{number}", "name": "x", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": arguments}
    return event({"type": "content_block_start", "index": number, "content_block": start}) + event({
        "type": "content_block_delta",
        "index": number,
        "delta": delta,
    })


def begin(kind: str) -> bytes:
    if kind == "openai":
        return b""
    return event({"type": "message_start", "message": {"id": "m"}}) + event({
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    })


def whole(kind: str, tokens_: int) -> bytes:
    if kind == "openai":
        counted = {"prompt_tokens": tokens_, "completion_tokens": tokens_}
        return event({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": counted}) + b"data: [DONE]\n\n"
    usage = {"input_tokens": tokens_, "output_tokens": tokens_}
    return event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}) + event({
        "type": "message_stop"
    })


def once(*pieces: bytes) -> Iterator[bytes]:
    yield from pieces


ATTACKS: dict[str, Callable[[str], Iterator[bytes]]] = {
    "gzip-bomb": lambda _: bomb(STREAM + b"content-encoding: gzip\r\n\r\n"),
    "gzip-refusal": lambda _: bomb(b"HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\n\r\n"),
    "gzip-models": lambda _: bomb(JSON + b"content-encoding: gzip\r\n\r\n"),
    "gzip-twice": lambda _: once(
        STREAM + b"content-encoding: gzip, gzip\r\n\r\n", gzip.compress(gzip.compress(b" " * 10**6))
    ),
    "brotli": lambda _: for_ever(STREAM + b"content-encoding: br\r\n\r\n", b"\xff" * 64),
    "zstd": lambda _: for_ever(STREAM + b"content-encoding: zstd\r\n\r\n", b"\x28\xb5\x2f\xfd"),
    "endless-line": lambda _: for_ever(STREAM + b"\r\ndata: ", b"x" * 64),
    "endless-event": lambda _: for_ever(STREAM + b"\r\n", b"data: xxxxxxxxxxxxxxxx\n"),
    "endless-comments": lambda _: for_ever(STREAM + b"\r\n", b": ping\n\n"),
    "endless-text": lambda kind: for_ever(STREAM + b"\r\n" + begin(kind), text(kind, "word " * 20)),
    "endless-letters": lambda kind: for_ever(STREAM + b"\r\n" + begin(kind), text(kind, "ab")),
    "endless-arguments": lambda kind: for_ever(STREAM + b"\r\n" + begin(kind), call(kind, 1, "x" * 500)),
    "endless-calls": lambda kind: iter([
        STREAM + b"\r\n" + begin(kind),
        *(call(kind, number, "{}") for number in range(1, 20_000)),
    ]),
    "deep-event": lambda _: once(STREAM + b"\r\ndata: ", b'{"a":' * 300_000, b"1", b"}" * 300_000, b"\n\n"),
    "wide-event": lambda kind: once(
        STREAM + b"\r\n", b'data: {"type":"x","choices":[', b"{}," * 1_200_000, b"{}]}\n\n"
    ),
    "wide-broken-event": lambda _: once(STREAM + b'\r\ndata: {"a":"\xff","b":[', b"[]," * 1_200_000, b"0]}\n\n"),
    "huge-number": lambda kind: once(STREAM + b"\r\n", begin(kind), whole(kind, 10**60)),
    "endless-headers": lambda _: for_ever(b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n"),
    "endless-header": lambda _: for_ever(b"HTTP/1.1 200 OK\r\nx-a: ", b"x" * 64),
    "endless-status": lambda _: for_ever(b"HTTP/1.1 200 ", b"x" * 64),
    "endless-continue": lambda _: for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless-trailers": lambda _: for_ever(STREAM + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"x-a: b\r\n"),
    "endless-chunk-size": lambda _: for_ever(STREAM + b"transfer-encoding: chunked\r\n\r\n5;", b"x" * 64),
    "endless-refusal": lambda _: for_ever(b"HTTP/1.1 400 No\r\n\r\n", b"no " * 20),
    "huge-refusal": lambda _: once(
        STREAM + b"\r\n", b'data: {"type":"error","error":{"message":"', b"a " * 1_900_000, b'"}}\n\n'
    ),
    "redirect": lambda _: once(
        b"HTTP/1.1 302 Go\r\ncontent-length: 0\r\nlocation: http://", b"x" * 80_000, b"\r\n\r\n"
    ),
    "endless-models": lambda _: for_ever(JSON + b'\r\n{"data":[', b'{"id":"model"},'),
    "deep-models": lambda _: once(JSON + b"\r\n", b'{"a":' * 300_000),
}


@asynccontextmanager
async def hostile(kind: str) -> AsyncIterator[str]:
    """The address of a server whose path says how it attacks."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            head = await reader.readuntil(b"\r\n\r\n")
            name = head.split(b" ")[1].split(b"/")[1].decode()
            async with asyncio.timeout(60):
                for piece in ATTACKS[name](kind):
                    writer.write(piece)
                    await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()


LAST = ("endless-line", "endless-event", "deep-event", "endless-refusal", "endless-trailers", "redirect")
BY_CARRIER = ("gzip", "br", "zstd", "endless-h", "endless-con")
CARRIERS = [name for name in ATTACKS if name.startswith(BY_CARRIER) or name in LAST]
"""Attacks that a carrier must withstand by itself; all others are read by common code."""


def attacks_for(kind: str, carrier: str) -> list[str]:
    """All of them once, and what each other pair does by itself."""
    if carrier != "direct":
        return CARRIERS
    if kind == "openai":
        return list(ATTACKS)
    return [name for name in ATTACKS if name not in (*CARRIERS, "endless-comments")]


async def all_tried(kind: str, carrier: str) -> list[tuple[str, str, str, int]]:
    names = [f"{name}/models" if "models" in name else name for name in attacks_for(kind, carrier)]
    async with hostile("openai" if kind == "openai" else "anthropic") as base:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.hostile_client", kind, carrier, base, *names),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(240):
                out, _ = await child.communicate()
        finally:
            if child.returncode is None:
                child.kill()
    assert child.returncode == 0, out.decode()
    return [tuple(json.loads(line)) for line in out.splitlines()]


@pytest.mark.parametrize(
    ("kind", "carrier"), [("openai", "direct"), ("anthropic", "direct"), ("openai", "httpx"), ("sdk", "sdk")]
)
async def test_every_attack_ends_in_a_sentence_and_costs_little_memory(kind: str, carrier: str) -> None:
    tried = await all_tried(kind, carrier)
    assert len(tried) == len(attacks_for(kind, carrier))
    bad = [one for one in tried if one[3] > GROWTH or one[1] == "nothing" or not one[2] or len(one[2]) > 600]
    assert bad == []
    replies = {name for name, how, _, _ in tried if how == "reply"}
    assert replies <= {"huge-number", "endless-trailers", "huge-number/models"}


def test_a_body_is_unpacked_in_pieces_and_no_further_than_it_deserves() -> None:
    packed = gzip.compress(b"\0" * 50_000_000)
    unpacker, given = Unpacker("gzip"), 0
    with pytest.raises(InvalidResponse, match="unpacks"):
        for piece in unpacker.pieces(packed):
            assert len(piece) <= BLOCK
            given += len(piece)
    assert given < 16_000_000
    honest = json.dumps([{"id": f"model-{number}"} for number in range(20_000)]).encode()
    assert b"".join(Unpacker("gzip").pieces(gzip.compress(honest))) == honest


@pytest.mark.parametrize("size", [1, 7, 4096, BLOCK])
def test_a_line_and_an_event_are_bounded_at_every_split(size: int) -> None:
    """Small splits begin shortly before the bound: those before it would only cost time."""
    for again in (b"x" * 64, b"data: y\n", b"data: " + b"z" * 100 + b"\n"):
        piece = (again * (size // len(again) + 1))[:size]
        parser, fed = EventParser(), 0
        if size < len(again):
            fed = len(again) * (MOST_EVENT // len(again) - 200)
            parser.feed(again * (fed // len(again)))
        with pytest.raises(InvalidResponse):
            for _ in range((3 * MOST_EVENT - fed) // size + 2):
                parser.feed(piece if size > 1 else b"x")
                fed += size
        assert fed <= 3 * MOST_EVENT
    parser = EventParser()
    for _ in range(200):
        assert parser.feed(b"data: " + b"y" * 100_000 + b"\n\n") == [b"y" * 100_000]


@pytest.mark.parametrize("payload", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff"])
def test_json_of_any_depth_is_an_error_in_words(payload: bytes) -> None:
    with pytest.raises(ProviderError):
        decode_event(CHUNKS, payload, Service("http://x", ""))


@pytest.mark.parametrize("number", [b"9" * 400, b"9" * 5_000, b"-1e400", b"1e400"])
def test_a_number_of_any_size_is_passed_by_or_an_error_in_words(number: bytes) -> None:
    try:
        chunk = decode_event(
            CHUNKS, b'{"choices":%b,"usage":{"prompt_tokens":%b}}' % (number, number), Service("http://x", "")
        )
    except ProviderError as error:
        assert "invalid reply" in error.message
    else:
        assert chunk.choices is None


@pytest.mark.parametrize("given", ["nan", "inf", "-inf", "1e400", "-5", "9" * 10_000, "soon", ""])
def test_a_time_to_wait_is_a_time(given: str) -> None:
    assert 0 <= seconds(given) <= 86_400


def test_nothing_is_earned_with_negative_tokens() -> None:
    assert [tokens(one) for one in (-5, None, 7, 10**30)] == [0, 0, 7, 10**9]


async def test_signs_of_life_do_not_keep_a_stream_open_for_ever() -> None:
    async def pings(talk: Talk) -> None:
        await talk.begin()
        with suppress(ConnectionError):
            while True:
                await talk.send(b'data: {"type": "ping"}\n\n', b": processing\n\n")
                await asyncio.sleep(0)

    passed = iter(range(10**9))
    async with serve(pings) as loopback:
        http = HttpService(Service(loopback.url, ""), {}, 5.0)
        with pytest.raises(ProviderError, match="sent nothing"):
            chunks = http.post_stream("/", b"{}", Head())
            async for _ in payloads_of(http.service, chunks, lambda: next(passed) * LONGEST_PINGS / 50):
                pass
        await http.close()
