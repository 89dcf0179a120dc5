"""Both transports to a service, direct and over httpx2, with the same results and failures."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from engine.providers.direct_transport import DirectTransport, tls_context
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
from tests.support.loopback import CERTIFICATE, Answer, Loopback, Talk, serve

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
