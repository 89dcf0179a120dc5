"""Proxies, certificates and other surroundings: a wrong variable is named, and never waited for."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.ports import ProviderError
from engine.providers.direct_transport import DirectTransport, tls_context
from engine.providers.failures import Service
from engine.providers.http import HttpService
from engine.providers.http_transport import HttpTransport, Misconfigured
from engine.providers.httpx_transport import HttpxTransport
from tests.engine.providers.http.test_carriers import PATIENCE, Maker, asked, both, chunked
from tests.support.loopback import CERTIFICATE, serve
from tools.web.surroundings import PROXIES, describe_untrusted_certificate, network_troubles

NAMES = tuple(spelled for name in (*PROXIES, "no_proxy") for spelled in (name, name.upper()))


@pytest.fixture(autouse=True)
def clean_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*NAMES, "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"):
        monkeypatch.delenv(name, raising=False)
    tls_context.cache_clear()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SSL_CERT_FILE", "/dev/null/x", "which cannot be read (Not a directory)"),
        ("SSL_CERT_FILE", "/", "which cannot be read (Is a directory)"),
        ("SSL_CERT_FILE", "/etc/passwd", "which holds no certificate"),
        ("SSL_CERT_DIR", "/etc/passwd", "which is no folder"),
        ("SSLKEYLOGFILE", "/dev/null/keys", "which is in no folder"),
        ("SSLKEYLOGFILE", "/", "which is a folder"),
        ("ALL_PROXY", "socks4://host:1", "speaks socks4, which Phoenix does not"),
        ("https_proxy", "ftp://host", "speaks ftp, which Phoenix does not"),
        ("HTTPS_PROXY", "://", "no address of a proxy"),
        ("HTTPS_PROXY", "http://", "no address of a proxy"),
        ("HTTPS_PROXY", "http://[::1", "no address of a proxy"),
        ("HTTPS_PROXY", "http://host:99999", "no address of a proxy"),
        ("HTTP_PROXY", "http://a b:1", "no address of a proxy"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, words: str) -> None:
    [sentence] = network_troubles({name: value})
    assert sentence.startswith(f"{name} ")
    assert words in sentence
    assert "unset it" in sentence


def test_passwords_of_proxies_are_not_shown() -> None:
    [sentence] = network_troubles({"HTTPS_PROXY": "gopher://name:secret-word@host:1"})
    assert "secret-word" not in sentence


@pytest.mark.parametrize("value", ["host:3128", "http://name:word@host:1", "socks5://127.0.0.1:1", "socks5h://[::1]:1"])
def test_usual_proxies_are_fine(value: str) -> None:
    assert network_troubles({"HTTPS_PROXY": value, "NO_PROXY": ",[,*,a b"}) == []


@pytest.mark.parametrize("why", [None, ssl.SSLCertVerificationError()])
def test_an_empty_reason_is_said_as_such(why: ssl.SSLCertVerificationError | None) -> None:
    error = why or ssl.SSLCertVerificationError(1, "x")
    error.verify_message, error.verify_code = "", 0
    assert "not trusted (no reason given)" in describe_untrusted_certificate("host", error, {})


@pytest.mark.parametrize(("maker", "name"), [(DirectTransport, "SSLKEYLOGFILE"), (HttpxTransport, "SSL_CERT_FILE")])
async def test_a_client_that_cannot_be_made_names_the_variable(
    maker: Maker, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(name, str(tmp_path / "none" / "file"))
    with pytest.raises(Misconfigured, match=f"{name} names {tmp_path}/none/file"):
        await asked_at(maker("https://127.0.0.1:9", PATIENCE), "https://127.0.0.1:9/x")


@both
async def test_an_untrusted_certificate_is_no_reason_to_wait(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(chunked, secure=True) as server:
        with pytest.raises(Misconfigured, match=r"certificate of 127\.0\.0\.1:\d+ is not trusted.*Set SSL_CERT_FILE"):
            await asked_at(maker(server.url, PATIENCE), f"{server.url}/x")
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        tls_context.cache_clear()
        transport = maker(server.url, PATIENCE)
        assert await asked(transport, server) == (200, b"one two")
        await transport.close()
    tls_context.cache_clear()


@both
async def test_a_server_without_tls_is_named(maker: Maker) -> None:
    async with proxy("400 Bad Request", until=b"\x16") as port:
        url = f"https://127.0.0.1:{port}"
        with pytest.raises(Misconfigured, match="speaks no TLS"):
            await asked_at(maker(url, PATIENCE), f"{url}/x")


@pytest.mark.parametrize(
    ("status", "sentence", "may_pass"),
    [
        ("407 Proxy Authentication Required", "The proxy in HTTPS_PROXY wants a user name and a password it", False),
        ("403 Forbidden", "The proxy in HTTPS_PROXY refuses the connection (403 Forbidden)", False),
        ("502 Bad Gateway", "The proxy in HTTPS_PROXY fails (502 Bad Gateway)", True),
    ],
)
async def test_a_proxy_that_lets_nothing_through_is_named(
    status: str, sentence: str, may_pass: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy(status) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        service = HttpService(Service("https://box.test", "KEY"), {}, PATIENCE)
        with pytest.raises(ProviderError, match="proxy") as caught:
            await service.get("/v1/models")
        await service.close()
    assert sentence in str(caught.value)
    assert caught.value.retryable is may_pass


async def test_a_proxy_of_plain_http_that_wants_a_password_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxy("407 Proxy Authentication Required") as port:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        service = HttpService(Service("http://box.test", "KEY"), {}, PATIENCE)
        with pytest.raises(ProviderError, match=r"http_proxy=http://USER:PASSWORD@127\.0\.0\.1") as caught:
            await service.get("/v1/models")
        await service.close()
    assert caught.value.retryable is False


async def test_a_socks_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(chunked) as server, socks(int(server.url.rpartition(":")[2])) as port:
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{port}")
        transport = HttpxTransport("http://box.test", PATIENCE)
        assert await asked_at(transport, "http://box.test/v1") == b"one two"
        await transport.close()


async def asked_at(transport: HttpTransport, url: str) -> bytes:
    async with transport.ask("GET", url, {}) as answer:
        return b"".join([piece async for piece in answer.pieces()])


@asynccontextmanager
async def proxy(status: str, until: bytes = b"\r\n\r\n") -> AsyncGenerator[int]:
    """A proxy, or a server, that answers everything with this status."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(until)
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def socks(port: int) -> AsyncGenerator[int]:
    """A SOCKS5 proxy without a password that leads every name to this port (RFC 1928)."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        await reader.readexactly(count)
        writer.write(b"\x05\x00")
        head = await reader.readexactly(5)
        await reader.readexactly(head[4] + 2)
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        ours, theirs = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, theirs), copy(ours, writer))

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
