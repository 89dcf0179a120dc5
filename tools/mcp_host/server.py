"""A server as Phoenix named it: its connection, the attempts to reconnect, signing in, and the requests to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from urllib.parse import urlsplit

import anyio
from mcp.client import Transport
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from msgspec import Raw

from tools.mcp_host.asks import Asks
from tools.mcp_host.causes import AuthNeeded, Failed, cause, find, innermost, is_of_server
from tools.mcp_host.guard import Traffic
from tools.mcp_host.limits import CLOSE, RECONNECT, SIGN_IN
from tools.mcp_host.log_ring import LogRing
from tools.mcp_host.oauth import ServerAuth
from tools.mcp_host.pipes import LinePipe
from tools.mcp_host.protocol import AuthUrl, Connect, Connected, Credentials, Event, State, Status
from tools.mcp_host.session import Session
from tools.mcp_host.sign_in import SignIn
from tools.mcp_host.stdio import stdio_transport
from tools.mcp_host.web import UNAUTHORIZED, Refusals, web_transport

T = TypeVar("T")
STABLE: Final = 60.0
"""Seconds after which a connection counts as good: the waits before reconnecting begin again."""
SESSION_GONE: Final = "Session terminated"
"""Message that the SDK makes of HTTP status 404 for a session."""
SIGNED_OUT: Final = "it wants a sign-in again"


class Server:
    """Owns the task in which connections live; `pipe` belongs to a stdio server."""

    def __init__(self, spec: Connect, pipe: LinePipe | None, asks: Asks, send: Callable[[Event], None]) -> None:
        self.spec = spec
        self.name = spec.name or spec.server
        self.log = LogRing(spec.server, send)
        self.auth = ServerAuth(spec.url, spec.oauth, spec.credentials, self._credentials_changed)
        self.traffic: Traffic | None = None
        self._refusals = Refusals()
        self._pipe, self._asks, self._send = pipe, asks, send
        self._closing = False
        self._state: State = "closed"
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[tuple[Session, Connected]] = asyncio.get_running_loop().create_future()
        self._sign_in: SignIn | None = None
        self._renewing = False
        """True while a session that the server forgot is replaced, which does not wait."""

    async def connected(self) -> tuple[Session, Connected]:
        """The session, once it is there; a server over HTTP that failed is tried again.

        Raises:
            Failed, AuthNeeded: there is none.
        """
        if self._task is None or (self._task.done() and self._pipe is None and not self._closing):
            self._start()
        return await asyncio.shield(self._ready)

    async def renewed(self, lost: Session) -> Session:
        """Another session after the server forgot `lost`."""
        if self._ready.done() and not self._ready.exception() and self._ready.result()[0] is lost and self.traffic:
            self._ready, self._renewing = asyncio.get_running_loop().create_future(), True
            self.traffic.end("the server forgot its session")
        return (await self.connected())[0]

    async def close(self, *, quiet: bool = False) -> None:
        """End the connection, in `CLOSE` seconds at most; `quiet` where another one takes its name."""
        self._closing = True
        self.cancel_sign_in()
        if self.traffic is not None:
            self.traffic.end("it was closed")
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=CLOSE)
            await self._stop()
        if self._pipe is not None:
            self._pipe.close()
        self._fail(Failed("gone", f"MCP server '{self.name}' was disconnected."))
        if not quiet:
            self._tell("closed")

    async def sign_out(self) -> None:
        """Drop the tokens and the connection made with them."""
        self.cancel_sign_in()
        await self._stop()
        self.auth.forget()
        self._give_up("needs_auth", AuthNeeded(), "")

    async def sign_in(self) -> None:
        """Begin a sign-in: the connection is made again with a provider that asks the user."""
        self.cancel_sign_in()
        await self._stop()
        signing = SignIn(self._opened)
        await signing.listen(self.auth.callback_port)
        self._sign_in = signing
        self._start()

    def paste(self, url: str) -> str:
        """Take the address that the browser was sent to; returns the problem with it."""
        return self._sign_in.take(url) if self._sign_in is not None else "No sign-in is open. Begin one first."

    def cancel_sign_in(self) -> None:
        """End an open sign-in."""
        if self._sign_in is not None:
            self._sign_in.close()
            self._sign_in = None

    def _opened(self, url: str, callback: str) -> None:
        self._send(AuthUrl(server=self.spec.server, url=url, host=urlsplit(url).netloc, callback=callback))

    def _credentials_changed(self, content: Raw) -> None:
        self._send(Credentials(server=self.spec.server, content=content))

    def _start(self) -> None:
        if self._ready.done():
            self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._live())

    async def _stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSE)

    async def _live(self) -> None:
        """Connect, and over HTTP again after a loss."""
        waits, retrying = iter(RECONNECT), False
        while True:
            self._tell("connecting")
            signing, begun = self._sign_in is not None, anyio.current_time()
            was_connected, error = await self._once()
            if self._closing:
                return None
            if self._pipe is not None:
                return self._give_up("ended", _gone(self.name, error), cause(error))
            if find(error, AuthNeeded) or (signing and not was_connected):
                known = isinstance(error, AuthNeeded)
                return self._give_up("needs_auth", AuthNeeded(), "" if known else cause(error))
            if was_connected and anyio.current_time() - begun > STABLE:
                waits = iter(RECONNECT)
            retrying = retrying or was_connected
            wait = 0.0 if self._renewing else next(waits, None) if retrying else None
            self._renewing = False
            if wait is None:
                return self._give_up("failed", _unreachable(self.name, error), cause(error))
            self._tell("reconnecting", cause(error))
            if self._ready.done():
                self._ready = asyncio.get_running_loop().create_future()
            await asyncio.sleep(wait)

    async def _once(self) -> tuple[bool, BaseException]:
        """One connection from start to end: True if there was one, and the reason of its end."""
        refusals, traffic = Refusals(), Traffic(self.log.add)
        self.traffic, self._refusals = traffic, refusals
        session = Session(self.spec, self._asks, self.log, self._send)
        reached = False
        try:
            limit = SIGN_IN + 60 if self._sign_in else self.spec.timeout_ms / 1000
            with anyio.CancelScope(deadline=anyio.current_time() + limit) as scope:
                async with session.open(self._transport(refusals, traffic)):
                    connected = await session.begin()
                    self._check_lists(session, refusals)
                    reached, scope.deadline = True, float("inf")
                    self._arrived(session, connected)
                    await traffic.over.wait()
            error: BaseException = AuthNeeded() if traffic.cause == SIGNED_OUT else Failed("gone", traffic.cause)
            if scope.cancelled_caught:
                error = Failed("timeout", f"it did not finish connecting in {limit:g} s")
        except Exception as problem:  # noqa: BLE001 - whatever a server makes the SDK raise ends its connection alone
            error = problem if not traffic.cause else Failed("gone", traffic.cause)
            if find(problem, AuthNeeded) or (refusals.status and not self._sign_in):
                error = AuthNeeded()
            elif failed := find(problem, Failed):
                error = failed
        finally:
            await session.end()
        return reached, error

    def _check_lists(self, session: Session, refusals: Refusals) -> None:
        """Take a list that was refused with 401 for what it is: some servers answer the handshake to anyone.

        Raises:
            AuthNeeded: the user must sign in.
        """
        if session.problem and refusals.wants_sign_in and not self._sign_in:
            raise AuthNeeded

    def _transport(self, refusals: Refusals, traffic: Traffic) -> Transport:
        if self._pipe is not None:
            return stdio_transport(self._pipe, traffic)
        provider = self.auth.provider(self._sign_in) if self._sign_in or self.auth.has_tokens else None
        return web_transport(self.spec, provider, refusals, traffic)

    def _arrived(self, session: Session, connected: Connected) -> None:
        self.cancel_sign_in()
        self._tell("connected", session.problem)
        if not self._ready.done():
            self._ready.set_result((session, connected))

    def _give_up(self, state: State, error: Exception, text: str) -> None:
        self.cancel_sign_in()
        self._fail(error)
        self._tell(state, text)

    def _fail(self, error: Exception) -> None:
        if self._ready.done():
            self._ready = asyncio.get_running_loop().create_future()
        self._ready.set_exception(error)
        self._ready.exception()  # read once, so that the loop does not report it

    def _tell(self, state: State, text: str = "") -> None:
        if state != self._state or text:
            self._state = state
            self._send(Status(server=self.spec.server, state=state, text=text))

    async def with_session(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Run a request; one that the server did not know the session of runs again in a new one."""
        session, _ = await self.connected()
        try:
            return await work(session)
        except Exception as error:
            if self._refusals.status == UNAUTHORIZED and self.traffic and not self._sign_in:
                self.traffic.end(SIGNED_OUT)  # its tokens or headers count no more: the next connection has others
                raise AuthNeeded from error
            inner = innermost(error)
            is_closed = isinstance(inner, MCPError) and inner.code == CONNECTION_CLOSED and not is_of_server(inner)
            if is_closed and self.traffic and self.traffic.cause:
                raise Failed("gone", f"MCP server '{self.name}' ended: {self.traffic.cause}.") from error
            if self.spec.transport != "http" or SESSION_GONE not in str(inner):
                raise
        return await work(await self.renewed(session))


def _gone(name: str, error: BaseException) -> Failed:
    return Failed("gone", f"MCP server '{name}' ended: {cause(error).rstrip('.')}.")


def _unreachable(name: str, error: BaseException) -> Failed:
    return Failed("failed", f"MCP server '{name}' is not connected: {cause(error).rstrip('.')}.")
