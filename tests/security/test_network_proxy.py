"""Attacks on the proxy of commands: what it is sent, what names lead to, and how much of it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import select
import socket
import threading
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tests.support.proxying import proxying, web_server
from tests.support.waiting import poll
from tools.process.host_proxy import unknown_hop
from tools.process.proxy import server as proxy_server
from tools.process.proxy.heads import BadHead, chunk_size, read_head
from tools.process.proxy.outbox import Outbox
from tools.process.proxy.server import Names
from tools.web.public_addresses import host_and_port, plain_host

GOOD = {"good.example": [["127.0.0.1"]]}


async def test_a_plain_request_reaches_the_allowed_host_with_its_own_name_and_no_proxy_headers() -> None:
    seen: list[bytes] = []
    async with web_server(seen) as port, proxying(GOOD, ["good.example"]) as proxy:
        head = f"GET http://Good.Example.:{port}/a?b#c HTTP/1.1\r\nHost: evil.example\r\nHost: two.example\r\n"
        head += "Proxy-Authorization: Basic x\r\nConnection: X-Own\r\nX-Own: 1\r\nX-Kept: 2\r\n\r\n"
        answer = await proxy.says(head.encode())
        assert answer.endswith(b"hello")
        assert await proxy.account() == {"good.example": (1, 0)}
    assert seen == [
        f"GET /a?b HTTP/1.1\r\nHost: good.example:{port}\r\nx-kept: 2\r\nConnection: close\r\n\r\n".encode()
    ]


async def test_nothing_behind_a_request_goes_to_its_host_or_to_another() -> None:
    seen: list[bytes] = []
    async with web_server(seen) as port, proxying(GOOD, ["good.example"]) as proxy:
        place = f"http://good.example:{port}/"
        smuggled = f"GET {place}b HTTP/1.1\r\nHost: evil.example\r\n\r\nGET http://evil.example/ HTTP/1.1\r\n\r\n"
        await proxy.says(f"POST {place} HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc{smuggled}".encode())
        await proxy.says(f"GET {place} HTTP/1.1\r\n\r\n{smuggled}".encode())
        chunks = "5;x=y\r\nfives\r\n0\r\nTrailer: x\r\n\r\n"
        await proxy.says(f"POST {place} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{smuggled}".encode())
        assert {host for host, _ in proxy.asked} == {"good.example"}
    sent = b"".join(seen)
    assert b"evil" not in sent
    assert b"GET /b" not in sent
    assert sent.endswith(b"5\r\nfives\r\n0\r\n\r\n")  # neither the extension nor the trailer


SMUGGLING = (
    b"Content-Length: 3\r\nContent-Length: 4\r\n",
    b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    b"Content-Length: +3\r\n",
    b"Content-Length: 0x3\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Content-Length : 3\r\n",
    b" folded: line\r\n",
    b"X: a\nHost: evil.example\r\n",
    b"X: a\rHost: evil.example\r\n",
    b"X: a\x00b\r\n",
    b"Connection: content-length\r\nContent-Length: 3\r\n",
    b"no colon\r\n",
    b"\xff\xfe: x\r\n",
    b"A: b\r\n" * 201,
)


@pytest.mark.parametrize("header", SMUGGLING)
def test_a_head_that_two_readers_understand_in_two_ways_is_refused(header: bytes) -> None:
    with pytest.raises(BadHead):
        read_head(b"POST http://good.example/ HTTP/1.1\r\n" + header + b"\r\n")


FIRST_LINES = (
    b"GET / HTTP/1.1",
    b"GET //evil.example/ HTTP/1.1",
    b"GET https://good.example/ HTTP/1.1",
    b"GET ftp://good.example/ HTTP/1.1",
    b"GET http://good.example/ HTTP/2",
    b"GET http://good.example/ HTTP/1.1 HTTP/1.1",
    b"GET  http://good.example/ HTTP/1.1",
    b"GET http://user:secret@good.example/ HTTP/1.1",
    b"GET http://evil.example@good.example/ HTTP/1.1",
    b"GET http://good.example:0/ HTTP/1.1",
    b"GET http://good.example:65536/ HTTP/1.1",
    b"GET http://good.example:8_0/ HTTP/1.1",
    b"GET http://good%2eexample/ HTTP/1.1",
    b"GET http://%67ood.example/ HTTP/1.1",
    b"GET http://good.example\\.evil.example/ HTTP/1.1",
    b"GET http://good.example\t/ HTTP/1.1",
    b"GET http:///path HTTP/1.1",
    b"GET http://2130706433/ HTTP/1.1",
    b"GET http://0x7f.1/ HTTP/1.1",
    b"GET http://127.1/ HTTP/1.1",
    b"GET http://0177.0.0.1/ HTTP/1.1",
    b"GET http://[fe80::1%25eth0]/ HTTP/1.1",
    b"GET http://::1/ HTTP/1.1",
    b"CONNECT good.example HTTP/1.1",
    b"CONNECT good.example:443:1 HTTP/1.1",
    b"CONNECT http://good.example:443 HTTP/1.1",
    b"CONNECT " + b"a" * 300 + b".example:443 HTTP/1.1",
    b"CONNECT " + b"a" * 64 + b".example:443 HTTP/1.1",
    b"CONNECT good..example:443 HTTP/1.1",
    b"CONNECT gr\xc3\xbcn.example:443 HTTP/1.1",
    b"G\x00T http://good.example/ HTTP/1.1",
    b"",
)


@pytest.mark.parametrize("line", FIRST_LINES)
def test_an_address_in_disguise_is_refused_before_anything_is_looked_up(line: bytes) -> None:
    with pytest.raises(BadHead):
        read_head(line + b"\r\n\r\n")


@pytest.mark.parametrize("line", [b"-1\r\n", b"\r\n", b"5\n", b"0x5\r\n", b"1" * 13 + b"\r\n", b"5 5\r\n", b"+5\r\n"])
def test_a_chunk_has_a_plain_size(line: bytes) -> None:
    with pytest.raises(BadHead):
        chunk_size(line)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Good.Example.", "good.example"), ("[::1]", "::1"), ("[::ffff:7f00:1]", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"), ("bücher.example", "xn--bcher-kva.example"), ("good.example..", ""),
        ("-good.example", ""), ("good.example\r\nX: y", ""), ("good.example\x00", ""), ("1.2.3.4.5", ""),
        ("example.0xff", ""), ("", ""), (".", ""),
    ],
)  # fmt: skip
def test_a_host_has_one_spelling(text: str, host: str) -> None:
    assert plain_host(text) == host


@pytest.mark.parametrize("text", ["[::1]x:80", "a:b:80", "[good.example]:80", "good.example:", "good.example:٣"])
def test_a_host_and_its_port_have_one_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        host_and_port(text, 80)


PRIVATE = (
    "10.0.0.1", "127.0.0.9", "169.254.169.254", "100.64.0.1", "::1", "::ffff:10.0.0.1", "fd00::1",
    "64:ff9b::a00:1",
)  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
async def test_an_allowed_name_that_leads_to_this_machine_or_its_network_is_refused(address: str) -> None:
    names = {"inner.example": [["127.0.0.1", address]]}
    async with proxying(names, ["inner.example"]) as proxy:
        answer = await proxy.says(b"CONNECT inner.example:443 HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 inner.example is an address of this machine or a private network")
        socks = b"\x05\x01\x00\x05\x01\x00\x03\x0dinner.example\x01\xbb"
        assert await proxy.says(socks) == b"\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"
        assert await proxy.account() == {"inner.example": (0, 2)}


async def test_a_name_that_changes_its_address_is_checked_at_each_connection_and_reached_where_it_was_checked() -> None:
    seen: list[bytes] = []
    names = {"rebind.example": [["127.0.0.1"], ["10.0.0.1"]]}
    async with web_server(seen) as port, proxying(names, ["rebind.example"]) as proxy:
        request = f"GET http://rebind.example:{port}/ HTTP/1.1\r\n\r\n".encode()
        assert (await proxy.says(request)).endswith(b"hello")
        assert (await proxy.says(request)).startswith(b"HTTP/1.1 403 ")
        assert proxy.names.looked_up == ["rebind.example"] * 2
    assert len(seen) == 1


async def test_a_host_that_is_not_allowed_is_never_looked_up() -> None:
    async with proxying({"evil.example": [["127.0.0.1"]]}) as proxy:
        answer = await proxy.says(b"CONNECT secret-data.evil.example:443 HTTP/1.1\r\n\r\n")
        assert answer.splitlines()[0] == b"HTTP/1.1 403 secret-data.evil.example is not allowed here"
        assert answer.endswith(b"Phoenix: secret-data.evil.example is not allowed here.\n")
        assert proxy.names.looked_up == []


SOCKS = (
    (b"\x05\x00", b"\x05\xff"),
    (b"\x05\x01\x02", b"\x05\xff"),
    (b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", b"\x05\x00\x05\x07"),
    (b"\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50", b"\x05\x00\x05\x07"),
    (b"\x05\x01\x00\x04\x01\x00\x01\x7f\x00\x00\x01\x00\x50", b"\x05\x00\x05\x07"),
    (b"\x05\x01\x00\x05\x01\x00\x02\x7f\x00\x00\x01\x00\x50", b"\x05\x00\x05\x08"),
    (b"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", b"\x05\x00\x05\x01"),
    (b"\x05\x01\x00\x05\x01\x00\x03\x05a\r\nb:\x00\x50", b"\x05\x00\x05\x01"),
    (b"\x05\x01\x00\x05\x01\x00\x03\x0a2130706433\x00\x50", b"\x05\x00\x05\x01"),
    (b"\x05\x01\x00\x05\x01\x00\x03\xff" + b"a" * 20, b"\x05\x00"),
    (b"\x05\xff\x00", b""),
)


@pytest.mark.parametrize(("sent", "answer"), SOCKS)
async def test_a_malformed_socks_request_ends_with_its_code(sent: bytes, answer: bytes) -> None:
    async with proxying(GOOD, ["good.example"]) as proxy:
        got = await proxy.says(sent, end=True)
        assert got[:4] == answer[:4]
        assert len(got) in {len(answer), 12}
        assert proxy.asked == []


async def test_socks_reaches_a_name_and_an_address_as_hosts_like_others() -> None:
    seen: list[bytes] = []
    async with web_server(seen) as port, proxying({**GOOD, "127.0.0.1": [["127.0.0.1"]]}, ["good.example"]) as proxy:
        place = port.to_bytes(2, "big")
        request = b"GET / HTTP/1.1\r\n\r\n"
        named = b"\x05\x01\x00\x05\x01\x00\x03\x0cGOOD.example" + place + request
        assert (await proxy.says(named)).endswith(b"hello")
        literal = b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01" + place + request
        assert (await proxy.says(literal))[:4] == b"\x05\x00\x05\x02"
        assert proxy.asked == [("good.example", port), ("127.0.0.1", port)]


async def test_a_slow_head_and_a_long_one_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_server, "HEAD_SECONDS", 0.2)
    async with proxying(GOOD, ["good.example"]) as proxy:
        assert await proxy.says(b"GET http://good.example/ HTTP/1.1\r\nA: b") == b""
        assert await proxy.says(b"\x05\x01") == b""
        assert await proxy.says(b"") == b""
        long = await proxy.says(b"GET http://good.example/ HTTP/1.1\r\nA: " + b"b" * 100_000)
        assert long == b"" or long.startswith(b"HTTP/1.1 431 ")
        assert proxy.proxy.connections == 0


async def test_thousands_of_connections_are_answered_and_hold_no_more_than_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxy_server, "HEAD_SECONDS", 300.0)  # a slow machine ends none of the idle ones
    async with proxying(GOOD, ["good.example"]) as proxy, contextlib.AsyncExitStack() as closing:
        for _ in range(proxy_server.MOST_OF_ONE):
            _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            closing.callback(writer.close)
            writer.write(b"G")
        most = 0
        for _ in range(20):
            answers = await asyncio.gather(
                *(proxy.says(b"CONNECT good.example:443 HTTP/1.1\r\n\r\n") for _ in range(100))
            )
            most = max(most, proxy.proxy.connections)
            assert all(one == b"" or one.startswith(b"HTTP/1.1 503 ") for one in answers)
        assert most == proxy_server.MOST_OF_ONE


TUNNEL = b"CONNECT %s:443 HTTP/1.1\r\n\r\n"


async def test_names_that_are_slow_to_look_up_hold_up_their_own_command_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """SECURITY U4."""
    held, begun = threading.Event(), list[str]()

    def look_up(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        begun.append(host)
        if host != "fast.example":
            held.wait(20)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    slow = [f"slow{number}.example" for number in range(proxy_server.MOST_OF_ONE)]
    try:
        async with proxying({}, [*slow, "fast.example"], real=Names()) as proxy:
            waiting = [asyncio.create_task(proxy.says(TUNNEL % host.encode())) for host in slow]
            assert await poll(lambda: len(begun) >= proxy_server.LOOKUPS_OF_ONE)
            answer = await proxy.says(TUNNEL % b"fast.example", port=proxy.listen(2))
            assert b"403 fast.example is an address of this machine" in answer
            assert len(begun) == proxy_server.LOOKUPS_OF_ONE + 1
            held.set()
            await asyncio.gather(*waiting)
    finally:
        held.set()


async def test_a_command_asks_phoenix_a_bounded_number_of_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """SECURITY U5."""
    monkeypatch.setattr(proxy_server, "QUESTIONS_AT_ONCE", 5)
    monkeypatch.setattr(proxy_server, "QUESTION_PAUSE", 60.0)
    async with proxying({}) as proxy:
        sent = {asyncio.create_task(proxy.says(TUNNEL % b"evil.example")) for _ in range(9)}
        while len(proxy.asked) < 5:
            await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
        other = await proxy.says(TUNNEL % b"other.example", port=proxy.listen(2))
        assert b"403 other.example" in other
        assert len(proxy.asked) == 6
        for task in sent:
            task.cancel()
        await asyncio.wait(sent)


async def test_a_command_that_ends_before_its_listener_is_served_leaves_none_open() -> None:
    """SECURITY U6."""
    async with proxying({}) as proxy:
        port = proxy.listen(2)
        proxy.control.send(b'{"close": 2}')
        assert await poll(lambda: len(proxy.accounts) == 1)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_packets_that_a_socket_cannot_take_yet_wait_in_order_and_with_their_descriptors() -> None:
    """SECURITY U3."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    theirs.setblocking(False)
    outbox, got, loop = Outbox(ours), list[bytes](), asyncio.get_running_loop()
    for number in range(1_000):
        outbox.send(b"%d" % number + b" " * 2_000, ours.fileno() if number == 999 else -1)
    assert not outbox.is_empty
    with theirs, ours:
        while len(got) < 1_000:
            packet, descriptors, _, _ = await loop.run_in_executor(None, take, theirs)
            got.append(packet.strip())
        assert got == [b"%d" % number for number in range(1_000)]
        assert len(descriptors) == 1
        os.close(descriptors[0])
        assert outbox.is_empty


def take(control: socket.socket) -> tuple[bytes, list[int], int, object]:
    select.select([control], [], [])
    return socket.recv_fds(control, 4_096, 1)


async def test_the_users_own_proxy_is_the_next_hop_and_gets_its_password_from_phoenix() -> None:
    seen: list[bytes] = []
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(web_server(seen, b"HTTP/1.1 200 OK\r\n\r\n"))
        proxy = await stack.enter_async_context(proxying({}, ["far.example"], f"http://me:p%40ss@127.0.0.1:{port}"))
        tunnel = await proxy.says(
            b"CONNECT far.example:443 HTTP/1.1\r\nProxy-Authorization: Basic own\r\n\r\n", end=True
        )
        assert tunnel.startswith(b"HTTP/1.1 200 ")
        await proxy.says(b"GET http://far.example/x HTTP/1.1\r\n\r\n")
    secret = base64.b64encode(b"me:p@ss")
    assert seen == [
        b"CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\nProxy-Authorization: Basic "
        + secret
        + b"\r\n\r\n",
        b"GET http://far.example/x HTTP/1.1\r\nHost: far.example\r\nProxy-Authorization: Basic "
        + secret
        + b"\r\nConnection: close\r\n\r\n",
    ]


async def test_behind_the_users_own_proxy_a_name_that_is_private_here_is_refused() -> None:
    seen: list[bytes] = []
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(web_server(seen))
        names = {"inner.example": [["10.0.0.1"]]}
        proxy = await stack.enter_async_context(proxying(names, ["inner.example"], f"http://127.0.0.1:{port}"))
        answer = await proxy.says(b"CONNECT inner.example:443 HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")
    assert seen == []


SOCKS_ANSWER = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
SIGNED_IN = b"\x05\x02\x01\x00"


@asynccontextmanager
async def socks_server(seen: list[bytes], *answers: bytes, then: bytes = b"") -> AsyncGenerator[int]:
    """Give an answer to each thing that comes, then `then` to what comes behind."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (*answers, then):
            seen.append(await reader.read(4_096))
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def test_a_socks_proxy_of_the_user_is_asked_for_the_name_and_gets_his_password() -> None:
    seen: list[bytes] = []
    async with (
        socks_server(seen, b"\x05\x02", b"\x01\x00", SOCKS_ANSWER, then=b"HTTP/1.1 200 OK\r\n\r\nhello") as port,
        proxying({}, ["far.example"], f"socks5://me:p%40ss@127.0.0.1:{port}") as proxy,
    ):
        answer = await proxy.says(b"GET http://far.example/x HTTP/1.1\r\n\r\n")
        assert answer.endswith(b"hello")
    assert seen == [
        b"\x05\x01\x02",
        b"\x01\x02me\x04p@ss",
        b"\x05\x01\x00\x03\x0bfar.example\x00\x50",
        b"GET /x HTTP/1.1\r\nHost: far.example\r\nConnection: close\r\n\r\n",
    ]


@pytest.mark.parametrize(
    ("user", "answers", "said"),
    [
        ("", [b"\x05\xff"], b"your proxy does not take its user name"),
        ("me:no@", [b"\x05\x02", b"\x01\x01"], b"your proxy does not take its user name"),
        ("", [b"\x05\x00", b"\x05\x05\x00\x01"], b"your proxy answers 5 for far.example"),
        ("", [b"\x05"], b"your proxy does not answer"),
        ("x" * 300 + "@", [b"\x05\x02"], b"your proxy does not take its user name"),
    ],
    ids=["no way in", "wrong password", "refused", "gone", "too long"],
)
async def test_a_socks_proxy_that_refuses_is_named_in_the_answer(user: str, answers: list[bytes], said: bytes) -> None:
    async with (
        socks_server([], *answers) as port,
        proxying({}, ["far.example"], f"socks5h://{user}127.0.0.1:{port}") as proxy,
    ):
        answer = await proxy.says(b"CONNECT far.example:443 HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert said in answer


def test_a_kind_of_proxy_that_is_not_gone_through_is_refused_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks4://127.0.0.1:9")
    assert unknown_hop("socks4", 443) == (
        "ALL_PROXY names a proxy that speaks socks4; commands go through http:// and socks5:// proxies"
    )
