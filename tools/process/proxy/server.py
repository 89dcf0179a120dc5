"""The proxy's own process: it serves listeners of namespaces, asks Phoenix about each host, and keeps account."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import resource
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote, urlsplit

from tools.process.proxy import heads
from tools.process.proxy.heads import BadHead, ProxyRequest, read_head
from tools.process.proxy.outbox import Outbox
from tools.process.proxy.relay import Peer, relay
from tools.web.public_addresses import is_outside

CONTROL = 0
"""Descriptor of the socket to Phoenix: packets of JSON, a listener's with its descriptor."""
PACKET = 128 * 1024
HEAD_LIMIT = 16 * 1024
HEAD_SECONDS = 10.0
LOOKUP_SECONDS = 10.0
CONNECT_SECONDS = 15.0
ASK_SECONDS = 90.0
"""Seconds for Phoenix's answer, which may be a person's."""
MOST_OF_ONE = 64
MOST_OF_ALL = 256
"""Connections of one command, and of all, at a time."""
LOOKUPS_OF_ONE = 4
LOOKUPS_OF_ALL = 64
"""Names that are looked up for one command, and for all, at a time; a lookup may last half a minute."""
QUESTIONS_AT_ONCE = 100
QUESTION_PAUSE = 0.02
"""Questions of a command that Phoenix is asked at once, and the seconds until each further one: one costs a millisecond
of the thread that reads keys.
"""
MOST_HOSTS = 50
"""Hosts of a command that the account names; further ones are summed up."""
REPORT_EVERY = 0.5
MEMORY = 512 << 20
"""Bytes that can be written; addresses alone, which each thread reserves by the hundred million, cost nothing."""
STACK = 1 << 20
"""Bytes of the stack of a thread that looks up a name."""
DESCRIPTORS = 2 * MOST_OF_ALL + 128
OTHERS = "other hosts"
NOT_PUBLIC = "{host} is an address of this machine or a private network, which the proxy never reaches"
UNKNOWN = "the name of {host} cannot be looked up"
UNREACHABLE = "{host} does not answer"
NOT_SIGNED_IN = "your proxy does not take its user name and password"
SOCKS_PORT = 1080
SOCKS_PASSWORD = 2
"""The way to sign in with a user name and a password (RFC 1929)."""
MOST_SOCKS = 255
"""Bytes of a user name, or a password."""
TOO_MANY = "too many connections at a time"


class RequestRefused(Exception):
    """A host is not reached; `status` is the answer in HTTP, `socks` that in SOCKS."""

    def __init__(self, sentence: str, status: int = 403, socks: int = 2) -> None:
        super().__init__(sentence)
        self.status = status
        self.socks = socks


class Names:
    """Looks up hosts, and knows which addresses may be reached."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOKUPS_OF_ALL)

    async def resolve(self, host: str, port: int) -> list[str]:
        """Addresses of a host; raises OSError without any."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _look_up, host, port)

    def admits(self, address: str) -> bool:
        """True for a public address outside of this machine and its networks."""
        return is_outside(address)


class HostAccount:
    """Requests to one host and their bytes, and the last reason why it was refused."""

    __slots__ = ("received", "refused", "requests", "sent", "why")

    def __init__(self) -> None:
        self.requests = self.received = self.sent = self.refused = 0
        self.why = ""


class Listener:
    """One command's listening socket, with its connections and its account."""

    def __init__(self, number: int, proxy: Proxy) -> None:
        self.number = number
        self._proxy = proxy
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._hosts: dict[str, HostAccount] = {}
        self._report: asyncio.TimerHandle | None = None
        self._lookups = asyncio.Semaphore(LOOKUPS_OF_ONE)
        self._next_question = 0.0
        self._is_closed = False

    async def start(self, listening: socket.socket) -> None:
        """Accept connections, unless the command has ended meanwhile."""
        self._server = await asyncio.start_server(self._accept, sock=listening, limit=HEAD_LIMIT)
        if self._is_closed:
            self._server.close()

    async def await_turn(self) -> None:
        """Wait until Phoenix may be asked once more for this command."""
        now = asyncio.get_running_loop().time()
        self._next_question = max(self._next_question, now - QUESTIONS_AT_ONCE * QUESTION_PAUSE) + QUESTION_PAUSE
        await asyncio.sleep(self._next_question - now)

    async def look_up(self, host: str, port: int) -> list[str]:
        """Addresses of a host; raises OSError without any. A lookup counts until its thread is free again."""
        await self._lookups.acquire()
        lookup = asyncio.create_task(self._proxy.names.resolve(host, port))
        lookup.add_done_callback(self._end_lookup)
        return await asyncio.shield(lookup)

    def _end_lookup(self, lookup: asyncio.Task[list[str]]) -> None:
        self._lookups.release()
        if not lookup.cancelled():
            lookup.exception()

    def account_of(self, host: str) -> HostAccount:
        """The account of a host, which is about to change."""
        if host not in self._hosts and len(self._hosts) >= MOST_HOSTS:
            host = OTHERS
        if self._report is None:
            self._report = asyncio.get_running_loop().call_later(REPORT_EVERY, self.report)
        return self._hosts.setdefault(host, HostAccount())

    def report(self, *, last: bool = False) -> None:
        """Send the account to Phoenix; later where packets wait."""
        if self._report is not None:
            self._report.cancel()
            self._report = None
        if not (last or self._proxy.outbox.is_empty):
            self._report = asyncio.get_running_loop().call_later(REPORT_EVERY, self.report)
            return
        rows = [[name, one.requests, one.received, one.sent, one.refused, one.why] for name, one in self._hosts.items()]
        self._proxy.send({"account": self.number, "hosts": rows, "last": last})

    async def close(self) -> None:
        """End every connection, and send the last account."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        ending = tuple(self._connections)
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        self.report(last=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "the server runs this as a task"
        try:
            if len(self._connections) >= MOST_OF_ONE or self._proxy.connections >= MOST_OF_ALL:
                writer.write(answer(503, TOO_MANY))
                return
            self._connections.add(task)
            self._proxy.connections += 1
            try:
                await ProxyConversation(self, self._proxy, (reader, writer)).serve()
            finally:
                self._connections.discard(task)
                self._proxy.connections -= 1
        except (OSError, BadHead, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client, the host or the command is gone, or waited too long: an answer would reach no one
        finally:
            writer.close()


class ProxyConversation:
    """One connection of a client."""

    def __init__(self, listener: Listener, proxy: Proxy, client: Peer) -> None:
        self._listener = listener
        self._proxy = proxy
        self._client = client

    async def serve(self) -> None:
        """Read what it asks for, reach it, and pass bytes until the end."""
        reader, writer = self._client
        first = b""
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                first = await reader.readexactly(1)
                is_socks = first[0] == heads.SOCKS_VERSION
                request = await self._socks_request() if is_socks else await self._http_request(first)
            host, next_hop = await self._reach(request)
        except (BadHead, RequestRefused) as error:
            socks = error.socks if isinstance(error, RequestRefused) else 1
            is_socks = first[:1] == bytes([heads.SOCKS_VERSION])
            writer.write(_socks_reply(socks) if is_socks else answer(error.status, str(error)))
            await writer.drain()
            return
        try:
            await self._pass(request, host, next_hop, is_socks=is_socks)
        finally:
            host[1].close()

    async def _http_request(self, first: bytes) -> ProxyRequest:
        try:
            return read_head(first + await self._client[0].readuntil(b"\r\n\r\n"))
        except asyncio.LimitOverrunError as error:
            raise BadHead("the head of the request is too long", 431) from error

    async def _socks_request(self) -> ProxyRequest:
        reader, writer = self._client
        methods = await reader.readexactly((await reader.readexactly(1))[0])
        if 0 not in methods:
            writer.write(bytes([heads.SOCKS_VERSION, 0xFF]))
            raise ConnectionResetError
        writer.write(bytes([heads.SOCKS_VERSION, 0]))
        version, command, _, kind = await reader.readexactly(4)
        if version != heads.SOCKS_VERSION or command != heads.SOCKS_CONNECT:
            raise RequestRefused("only connections are served", socks=7)
        sizes = {heads.SOCKS_IPV4: 4, heads.SOCKS_IPV6: 16}
        if kind not in {*sizes, heads.SOCKS_NAME}:
            raise RequestRefused("this kind of address is unknown", socks=8)
        size = sizes[kind] if kind in sizes else (await reader.readexactly(1))[0]
        content = await reader.readexactly(size)
        port = int.from_bytes(await reader.readexactly(2), "big")
        return ProxyRequest(heads.socks_host(kind, content), port)

    async def _reach(self, request: ProxyRequest) -> tuple[Peer, str]:
        """A connection to the host of a request, or to the HTTP proxy that leads there, whose address is returned too.

        Raises:
            Refused: it is not allowed, not public or not there.
        """
        try:
            await self._listener.await_turn()
            next_hop = await self._proxy.ask(self._listener.number, request.host, request.port)
            found = await self._addresses(request, proxied=bool(next_hop))
            peer = await (self._through(request, next_hop) if next_hop else self._connect(request, found))
        except RequestRefused as refusal:
            account = self._listener.account_of(request.host)
            account.refused += 1
            account.why = str(refusal)
            raise
        self._listener.account_of(request.host).requests += 1
        return peer, "" if _is_socks(next_hop) else next_hop  # behind SOCKS it is as without a proxy

    async def _addresses(self, request: ProxyRequest, *, proxied: bool) -> list[str]:
        """Checked addresses of a host; empty where only the next proxy can look it up."""
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                found = await self._listener.look_up(request.host, request.port)
        except (OSError, UnicodeError, RuntimeError):  # the last where no thread can start
            found = []
        if not found and not proxied:
            raise RequestRefused(UNKNOWN.format(host=request.host), 502, 4)
        if not all(self._proxy.names.admits(address) for address in found):
            raise RequestRefused(NOT_PUBLIC.format(host=request.host))
        return found

    async def _connect(self, request: ProxyRequest, addresses: list[str]) -> Peer:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                for address in addresses:
                    with contextlib.suppress(OSError):
                        return await asyncio.open_connection(address, request.port, limit=HEAD_LIMIT)
        raise RequestRefused(UNREACHABLE.format(host=request.host), 502, 5)

    async def _through(self, request: ProxyRequest, next_hop: str) -> Peer:
        """A connection by way of the user's own proxy, with a tunnel through it unless the request is a plain one."""
        parts = urlsplit(next_hop)
        port = parts.port or (SOCKS_PORT if _is_socks(next_hop) else 80)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                peer = await asyncio.open_connection(parts.hostname, port, limit=HEAD_LIMIT)
                try:
                    if _is_socks(next_hop):
                        await _open_socks(request, peer, next_hop)
                    elif not request.target:
                        await self._open_tunnel(request, peer, next_hop)
                except BaseException:
                    peer[1].close()
                    raise
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise RequestRefused("your proxy does not answer", 502, 5) from error
        return peer

    async def _open_tunnel(self, request: ProxyRequest, peer: Peer, next_hop: str) -> None:
        lines = [f"CONNECT {request.authority} HTTP/1.1".encode(), b"Host: " + request.authority.encode()]
        peer[1].write(b"\r\n".join([*lines, *_credentials(next_hop), b"", b""]))
        head = await peer[0].readuntil(b"\r\n\r\n")
        status = head.split(b" ", 2)[1:2]
        if status != [b"200"]:
            code = status[0][:3].decode("ascii", "replace") if status else "nothing"
            raise RequestRefused(f"your proxy answers {code} for {request.host}", 502, 5)

    async def _pass(self, request: ProxyRequest, host: Peer, next_hop: str, *, is_socks: bool) -> None:
        writer = self._client[1]
        listener = self._listener

        def count_sent(count: int) -> None:
            listener.account_of(request.host).sent += count

        def count_received(count: int) -> None:
            listener.account_of(request.host).received += count

        if request.target:
            extra = _credentials(next_hop) if next_hop else ()
            head = request.head(absolute=bool(next_hop), extra=extra)
            count_sent(len(head))
            host[1].write(head)
            await host[1].drain()
            await relay(self._client, host, count_sent, count_received, request.length)
            return
        writer.write(_socks_reply(0) if is_socks else b"HTTP/1.1 200 Connection established\r\n\r\n")
        await relay(self._client, host, count_sent, count_received)


class Proxy:
    """All listeners, and the questions to Phoenix."""

    def __init__(self, control: socket.socket, names: Names) -> None:
        self.names = names
        self.connections = 0
        self.outbox = Outbox(control)
        self._control = control
        self._listeners: dict[int, Listener] = {}
        self._asked: dict[int, asyncio.Future[dict[str, object]]] = {}
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended = asyncio.Event()

    async def ask(self, listener: int, host: str, port: int) -> str:
        """Have Phoenix decide about a host; the address of the next proxy, empty without one.

        Raises:
            Refused: it is not allowed.
        """
        self._count += 1
        number, answer_to = self._count, asyncio.get_running_loop().create_future()
        self._asked[number] = answer_to
        self.send({"ask": number, "listener": listener, "host": host, "port": port})
        try:
            async with asyncio.timeout(ASK_SECONDS):
                given: dict[str, object] = await answer_to
        except TimeoutError as error:
            raise RequestRefused(f"{host} was not answered for in time") from error
        finally:
            del self._asked[number]
        if given.get("allowed") is not True:
            raise RequestRefused(str(given.get("why", "")))
        return str(given.get("proxy", ""))

    def send(self, message: dict[str, object]) -> None:
        """Send a packet; a Phoenix that takes none is about to end, and this process with it."""
        with contextlib.suppress(OSError):
            self.outbox.send(json.dumps(message).encode())

    def hear(self) -> None:
        """Take the packets that came."""
        while not self.ended.is_set():
            try:
                packet, descriptors, _, _ = socket.recv_fds(self._control, PACKET, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                return
            except OSError:
                packet, descriptors = b"", []
            if not packet:
                self.ended.set()
                return
            self._take(json.loads(packet), descriptors)

    def _take(self, message: dict[str, int], descriptors: list[int]) -> None:
        if "open" in message and descriptors:
            listening = socket.socket(fileno=descriptors[0])
            listening.setblocking(False)
            self._listeners[message["open"]] = listener = Listener(message["open"], self)
            self._begin(listener.start(listening))
        elif "close" in message and (closed := self._listeners.pop(message["close"], None)) is not None:
            self._begin(closed.close())
        elif (asked := self._asked.get(message.get("answer", 0))) is not None and not asked.done():
            asked.set_result(dict(message))

    def _begin(self, work: object) -> None:
        assert asyncio.iscoroutine(work), "start and close of a listener"
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def answer(status: int, sentence: str) -> bytes:
    """A refusal in HTTP; its reason phrase has the sentence too, since most clients show nothing else."""
    line = "".join(sign if " " <= sign <= "~" else "?" for sign in sentence)
    body = f"Phoenix: {line}.\n".encode()
    head = f"HTTP/1.1 {status} {line[:300]}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


def _look_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _socks_reply(code: int) -> bytes:
    return bytes([heads.SOCKS_VERSION, code, 0, heads.SOCKS_IPV4, 0, 0, 0, 0, 0, 0])


def _is_socks(next_hop: str) -> bool:
    return next_hop.lower().startswith("socks")


async def _open_socks(request: ProxyRequest, peer: Peer, next_hop: str) -> None:
    """Have the user's own SOCKS 5 proxy connect to a host, whose name it looks up.

    Raises:
        Refused: it does not.
    """
    reader, writer = peer
    await _sign_in(peer, next_hop)
    kind, address = _socks_address(request.host)
    place = address + request.port.to_bytes(2, "big")
    writer.write(bytes([heads.SOCKS_VERSION, heads.SOCKS_CONNECT, 0, kind]) + place)
    _, code, _, kind = await reader.readexactly(4)
    if code:
        raise RequestRefused(f"your proxy answers {code} for {request.host}", 502, 5)
    size = {heads.SOCKS_IPV4: 4, heads.SOCKS_IPV6: 16}.get(kind) or (await reader.readexactly(1))[0]
    await reader.readexactly(size + 2)


async def _sign_in(peer: Peer, next_hop: str) -> None:
    """Agree with a SOCKS 5 proxy on a way to sign in, and do. Raises Refused."""
    (reader, writer), parts = peer, urlsplit(next_hop)
    words = [] if parts.username is None else [parts.username, parts.password or ""]
    given = [unquote(word).encode() for word in words]
    way = SOCKS_PASSWORD if given else 0
    writer.write(bytes([heads.SOCKS_VERSION, 1, way]))
    if (await reader.readexactly(2))[1] != way or any(len(word) > MOST_SOCKS for word in given):
        raise RequestRefused(NOT_SIGNED_IN, 502, 5)
    if given:
        writer.write(b"\1" + b"".join(bytes([len(word)]) + word for word in given))
        if (await reader.readexactly(2))[1]:
            raise RequestRefused(NOT_SIGNED_IN, 502, 5)


def _socks_address(host: str) -> tuple[int, bytes]:
    """Kind and bytes of a host in a SOCKS request."""
    for kind, family in ((heads.SOCKS_IPV4, socket.AF_INET), (heads.SOCKS_IPV6, socket.AF_INET6)):
        with contextlib.suppress(OSError):
            return kind, socket.inet_pton(family, host.strip("[]"))
    return heads.SOCKS_NAME, bytes([len(host)]) + host.encode()


def _credentials(next_hop: str) -> tuple[bytes, ...]:
    """The header with the user name and password in a proxy's address."""
    parts = urlsplit(next_hop)
    if parts.username is None:
        return ()
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return (b"Proxy-Authorization: Basic " + base64.b64encode(pair),)


def serve(names: Names | None = None) -> None:
    """The process's whole life: until Phoenix closes the socket."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.stack_size(STACK)
    for limit, wanted in ((resource.RLIMIT_DATA, MEMORY), (resource.RLIMIT_NOFILE, DESCRIPTORS)):
        _, most = resource.getrlimit(limit)
        bound = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(limit, (bound, bound))
    asyncio.run(_serve(names or Names()))


async def _serve(names: Names) -> None:
    control = socket.socket(fileno=CONTROL)
    control.setblocking(False)
    proxy = Proxy(control, names)
    loop = asyncio.get_running_loop()
    loop.add_reader(control, proxy.hear)
    await proxy.ended.wait()
    loop.remove_reader(control)
