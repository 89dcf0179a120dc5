"""One server in the helper: its transport, its session, and the questions that it asks."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

import anyio
import mcp_types as types
import msgspec
from mcp.client import Client, ClientRequestContext, IncomingMessage, Transport
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Raw
from pydantic import BaseModel, ValidationError

from tools.clean import clean, clean_line
from tools.mcp_host.catalogue import OutputSchemas, fetch, fetch_tools
from tools.mcp_host.causes import AuthNeeded, ServerFailed, cause, find, innermost, is_of_server
from tools.mcp_host.guard import LogRing, Traffic
from tools.mcp_host.oauth import ServerAuth, SignIn
from tools.mcp_host.protocol import (
    CLOSE,
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    LONGEST_SAMPLE,
    MOST_ASKS,
    NOTHING,
    QUIET,
    QUIET_AT_MOST,
    RECONNECT,
    SIGN_IN,
    AskClosed,
    AuthUrl,
    Connect,
    Connected,
    HelperEvent,
    HelperServerState,
    Items,
    Listing,
    NewCredentials,
    Root,
    SampleRefusal,
    ServerAsk,
    ServerStatus,
)
from tools.mcp_host.transports import UNAUTHORIZED, LinePipe, Refusals, stdio_transport, web_transport


class Asks:
    """All open questions of the helper."""

    def __init__(self, send: Callable[[HelperEvent], None]) -> None:
        self._send = send
        self._open: dict[int, asyncio.Future[Raw]] = {}
        self._server_of: dict[int, str] = {}
        self._by_server: Counter[str] = Counter()
        self._next = 0

    def waiting(self, server: str) -> bool:
        """True while a question of this server is open: its calls then have all the time they need."""
        return self._by_server[server] > 0

    async def ask(self, server: str, kind: Literal["form", "url", "sampling"], params: Raw) -> Raw | None:
        """The answer, or None where this server has too many questions."""
        if self._by_server[server] >= MOST_ASKS:
            return None
        self._next += 1
        number = self._next
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._open[number], self._server_of[number] = answer, server
        self._by_server[server] += 1
        try:
            self._send(ServerAsk(ask=number, server=server, kind=kind, params=params))
            return await answer
        except asyncio.CancelledError:
            self._send(AskClosed(ask=number))
            raise
        finally:
            del self._open[number], self._server_of[number]
            self._by_server[server] -= 1

    def drop(self, server: str) -> None:
        """Withdraw the questions of a server whose connection ended: a call that waits for an answer fails at once."""
        for number, answer in tuple(self._open.items()):
            if self._server_of[number] == server and not answer.done():
                answer.set_result(NOTHING)
                self._send(AskClosed(ask=number))

    def answer(self, number: int, result: Raw) -> bool:
        """Give an answer; False for a question that is closed."""
        waiting = self._open.get(number)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(result)
        return True


M = TypeVar("M", bound=BaseModel)
NO_ANSWER: Final = types.ErrorData(code=types.INVALID_REQUEST, message="Too many questions are open.")
TOO_LONG: Final = types.ErrorData(
    code=types.INVALID_PARAMS, message=f"A sampling request has at most {LONGEST_SAMPLE // 1024**2} MB."
)
CHANGES: Final[dict[type[object], tuple[Listing, ...]]] = {
    types.ToolListChangedNotification: ("tools",),
    types.PromptListChangedNotification: ("prompts",),
    types.ResourceListChangedNotification: ("resources", "templates"),
}


class McpSession:
    """A client of the SDK with the callbacks of Phoenix. `listed` is called with each new list."""

    def __init__(self, spec: Connect, asks: Asks, log: LogRing, listed: Callable[[Items], None]) -> None:
        self.spec, self.roots = spec, spec.roots
        self.schemas = OutputSchemas()
        self.lists: dict[Listing, Items] = {}
        self.client: Client
        self.problem = ""
        """Reason why a list is missing."""
        self._asks, self._log, self._listed = asks, log, listed
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._first_change: dict[str, float] = {}
        self._ended = False

    @contextlib.asynccontextmanager
    async def open(self, transport: Transport) -> AsyncGenerator[None]:
        """Connect; the context is the connection. While it closes, what the server still sends begins nothing."""
        spec = self.spec
        self.client = Client(
            transport,
            client_info=types.Implementation(name="phoenix", version="1"),
            mode=spec.era,
            message_handler=self._handle_notification,
            logging_callback=self._note_log,
            log_level="info",
            list_roots_callback=None if spec.roots is None else self._list_roots,
            elicitation_callback=self._elicit if spec.elicitation else None,
            sampling_callback=self._sample if spec.sampling else None,
            cache=None,
        )
        async with self.client:
            try:
                yield
            finally:
                self._withdraw()

    async def begin(self) -> Connected:
        """Fetch the first lists and follow changes."""
        client = self.client
        # The SDK would check structured content on the loop without an end; `OutputSchemas` does it with a deadline.
        setattr(client.session, "validate_tool_result", _accept)  # noqa: B010 - a method, so types refuse it
        for what in ("tools", "prompts"):
            if getattr(client.server_capabilities, what) is not None:
                await self.refresh(what)
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            self._tasks["listen"] = asyncio.ensure_future(self._listen())
        return self._describe()

    async def end(self) -> None:
        """Stop what follows changes, and withdraw what the server asks."""
        self._withdraw()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def refresh(self, what: Listing) -> Items:
        """Fetch a list; an event follows if it differs from the one before.

        Raises:
            Exception: any of the SDK for a server that does not give it.
        """
        try:
            if what == "tools":
                items, schemas = await fetch_tools(self.spec.server, self.client)
                self.schemas.replace(schemas)
            else:
                items = await fetch(self.spec.server, self.client, what)
        except (MCPError, ValidationError) as error:
            self.problem = f"the list of {what} could not be fetched: {cause(error)}"
            self._log.add("error", self.problem)
            if what in self.lists or what not in {"tools", "prompts"}:
                raise
            items = Items(server=self.spec.server, what=what)
        before = self.lists.get(what)
        self.lists[what] = items
        if before is None or before.digest != items.digest:
            self._listed(items)
        return items

    async def replace_roots(self, roots: list[Root]) -> None:
        """Take other folders; a server of the handshake era gets a notification."""
        self.roots = roots
        if self.client.protocol_version not in MODERN_PROTOCOL_VERSIONS and self.spec.roots is not None:
            await self.client.send_roots_list_changed()  # pyrefly: ignore[deprecated] - of the handshake era

    def _withdraw(self) -> None:
        self._ended = True
        self._asks.drop(self.spec.server)

    def _describe(self) -> Connected:
        client = self.client
        info, capabilities = client.server_info, client.server_capabilities
        names = ("tools", "prompts", "resources", "completions", "logging")
        return Connected(
            protocol=client.protocol_version[:LONGEST_NAME],
            server_name=clean_line(info.name[:LONGEST_NAME]) if info else "",
            server_version=clean_line(info.version[:LONGEST_NAME]) if info else "",
            instructions=clean((client.instructions or "")[:LONGEST_DESCRIPTION]),
            has=[name for name in names if getattr(capabilities, name) is not None],
        )

    async def _handle_notification(self, message: IncomingMessage) -> None:
        for what in CHANGES.get(type(message), ()):
            if what in self.lists and not self._ended:
                self._note_change(what)

    def _note_change(self, what: Listing) -> None:
        now = asyncio.get_running_loop().time()
        first = self._first_change.setdefault(what, now)
        running = self._tasks.get(what)
        if running is not None and not running.done():
            if now - first > QUIET_AT_MOST - QUIET:
                return  # it is fetched soon, however often it changes
            running.cancel()
        self._tasks[what] = asyncio.ensure_future(self._refresh_later(what))

    async def _refresh_later(self, what: Listing) -> None:
        await asyncio.sleep(QUIET)
        self._first_change.pop(what, None)
        with contextlib.suppress(MCPError, ValidationError):
            await asyncio.shield(self.refresh(what))

    async def _listen(self) -> None:
        """Subscribe to changes of lists in the newer era; the events come to `_notified` as in the older one."""
        capabilities = self.client.server_capabilities
        tools, prompts, resources = (
            bool(getattr(getattr(capabilities, name), "list_changed", False))
            for name in ("tools", "prompts", "resources")
        )
        for wait in RECONNECT if tools or prompts or resources else ():
            try:
                async with self.client.listen(
                    tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
                ) as changes:
                    async for _ in changes:
                        pass
            except (MCPError, RuntimeError, TimeoutError) as error:  # SubscriptionLost is a RuntimeError
                self._log.add("debug", f"the subscription to changes ended: {cause(error)}")
            await asyncio.sleep(wait)

    async def _note_log(self, params: types.LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else str(params.data)[:LONGEST_DESCRIPTION]
        self._log.add(params.level, f"{params.logger[:LONGEST_NAME]}: {data}" if params.logger else data)

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        roots = [types.Root.model_validate({"uri": one.uri, "name": one.name or None}) for one in self.roots or ()]
        return types.ListRootsResult(roots=roots)

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        kind: Literal["url", "form"] = "url" if isinstance(params, types.ElicitRequestURLParams) else "form"
        answer = await self._ask(kind, _params(params))
        if answer is None:
            return NO_ANSWER
        if bytes(answer) == b"null":
            return types.ElicitResult(action="cancel")
        return _valid(types.ElicitResult, answer)

    async def _sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        asked = _params(params)
        if len(bytes(asked)) > LONGEST_SAMPLE:
            return TOO_LONG
        answer = await self._ask("sampling", asked)
        if answer is None:
            return NO_ANSWER
        if bytes(answer) == b"null":
            return types.ErrorData(code=types.INVALID_REQUEST, message="The request was withdrawn.")
        try:
            refusal = msgspec.json.decode(answer, type=SampleRefusal)
        except msgspec.MsgspecError:
            return _valid(types.CreateMessageResult, answer)
        return types.ErrorData(code=refusal.code, message=refusal.refused)

    async def _ask(self, kind: Literal["form", "url", "sampling"], params: msgspec.Raw) -> msgspec.Raw | None:
        return None if self._ended else await self._asks.ask(self.spec.server, kind, params)


async def _accept(_name: str, _result: Any) -> None:
    """Leave the check of structured content to `OutputSchemas`."""


def _params(params: BaseModel) -> msgspec.Raw:
    return msgspec.Raw(params.model_dump_json(by_alias=True, exclude_none=True, exclude={"meta", "metadata"}).encode())


def _valid(kind: type[M], answer: msgspec.Raw) -> M | types.ErrorData:
    try:
        return kind.model_validate_json(bytes(answer))
    except ValidationError:
        return types.ErrorData(code=types.INTERNAL_ERROR, message="Phoenix gave no valid answer.")


T = TypeVar("T")
STABLE: Final = 60.0
"""Seconds after which a connection counts as good: the waits before reconnecting begin again."""
SESSION_GONE: Final = "Session terminated"
"""Message that the SDK makes of HTTP status 404 for a session."""
SIGNED_OUT: Final = "it wants a sign-in again"


class Server:
    """Owns the task in which connections live; `pipe` belongs to a stdio server."""

    def __init__(self, spec: Connect, pipe: LinePipe | None, asks: Asks, send: Callable[[HelperEvent], None]) -> None:
        self.spec = spec
        self.name = spec.name or spec.server
        self.log = LogRing(spec.server, send)
        self.auth = ServerAuth(spec.url, spec.oauth, spec.credentials, self._credentials_changed)
        self.traffic: Traffic | None = None
        self._refusals = Refusals()
        self._pipe, self._asks, self._send = pipe, asks, send
        self._closing = False
        self._state: HelperServerState = "closed"
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[tuple[McpSession, Connected]] = asyncio.get_running_loop().create_future()
        self._sign_in: SignIn | None = None
        self._renewing = False
        """True while a session that the server forgot is replaced, which does not wait."""

    async def connect_session(self) -> tuple[McpSession, Connected]:
        """The session, once it is there; a server over HTTP that failed is tried again.

        Raises:
            Failed, AuthNeeded: there is none.
        """
        if self._task is None or (self._task.done() and self._pipe is None and not self._closing):
            self._start()
        return await asyncio.shield(self._ready)

    async def renew_session(self, lost: McpSession) -> McpSession:
        """Another session after the server forgot `lost`."""
        if self._ready.done() and not self._ready.exception() and self._ready.result()[0] is lost and self.traffic:
            self._ready, self._renewing = asyncio.get_running_loop().create_future(), True
            self.traffic.end("the server forgot its session")
        return (await self.connect_session())[0]

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
        self._fail(ServerFailed("gone", f"MCP server '{self.name}' was disconnected."))
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
        signing = SignIn(self._send_sign_in_page)
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

    def _send_sign_in_page(self, url: str, callback: str) -> None:
        self._send(AuthUrl(server=self.spec.server, url=url, host=urlsplit(url).netloc, callback=callback))

    def _credentials_changed(self, content: Raw) -> None:
        self._send(NewCredentials(server=self.spec.server, content=content))

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
                return self._give_up(
                    "ended",
                    ServerFailed("gone", f"MCP server '{self.name}' ended: {cause(error).rstrip('.')}."),
                    cause(error),
                )
            if find(error, AuthNeeded) or (signing and not was_connected):
                known = isinstance(error, AuthNeeded)
                return self._give_up("needs_auth", AuthNeeded(), "" if known else cause(error))
            if was_connected and anyio.current_time() - begun > STABLE:
                waits = iter(RECONNECT)
            retrying = retrying or was_connected
            wait = 0.0 if self._renewing else next(waits, None) if retrying else None
            self._renewing = False
            if wait is None:
                return self._give_up(
                    "failed",
                    ServerFailed("failed", f"MCP server '{self.name}' is not connected: {cause(error).rstrip('.')}."),
                    cause(error),
                )
            self._tell("reconnecting", cause(error))
            if self._ready.done():
                self._ready = asyncio.get_running_loop().create_future()
            await asyncio.sleep(wait)

    async def _once(self) -> tuple[bool, BaseException]:
        """One connection from start to end: True if there was one, and the reason of its end."""
        refusals, traffic = Refusals(), Traffic(self.log.add)
        self.traffic, self._refusals = traffic, refusals
        session = McpSession(self.spec, self._asks, self.log, self._send)
        reached = False
        try:
            limit = SIGN_IN + 60 if self._sign_in else self.spec.timeout_ms / 1000
            with anyio.CancelScope(deadline=anyio.current_time() + limit) as scope:
                async with session.open(self._transport(refusals, traffic)):
                    connected = await session.begin()
                    self._check_lists(session, refusals)
                    reached, scope.deadline = True, float("inf")
                    self.cancel_sign_in()
                    self._tell("connected", session.problem)
                    if not self._ready.done():
                        self._ready.set_result((session, connected))
                    await traffic.over.wait()
            error: BaseException = AuthNeeded() if traffic.cause == SIGNED_OUT else ServerFailed("gone", traffic.cause)
            if scope.cancelled_caught:
                error = ServerFailed("timeout", f"it did not finish connecting in {limit:g} s")
        except Exception as problem:  # noqa: BLE001 - whatever a server makes the SDK raise ends its connection alone
            error = problem if not traffic.cause else ServerFailed("gone", traffic.cause)
            if find(problem, AuthNeeded) or (refusals.status and not self._sign_in):
                error = AuthNeeded()
            elif failed := find(problem, ServerFailed):
                error = failed
        finally:
            await session.end()
        return reached, error

    def _transport(self, refusals: Refusals, traffic: Traffic) -> Transport:
        if self._pipe is not None:
            return stdio_transport(self._pipe, traffic)
        provider = self.auth.provider(self._sign_in) if self._sign_in or self.auth.has_tokens else None
        return web_transport(self.spec, provider, refusals, traffic)

    def _check_lists(self, session: McpSession, refusals: Refusals) -> None:
        """Take a list that was refused with 401 for what it is: some servers answer the handshake to anyone.

        Raises:
            AuthNeeded: the user must sign in.
        """
        if session.problem and refusals.wants_sign_in and not self._sign_in:
            raise AuthNeeded

    def _give_up(self, state: HelperServerState, error: Exception, text: str) -> None:
        self.cancel_sign_in()
        self._fail(error)
        self._tell(state, text)

    def _fail(self, error: Exception) -> None:
        if self._ready.done():
            self._ready = asyncio.get_running_loop().create_future()
        self._ready.set_exception(error)
        self._ready.exception()  # read once, so that the loop does not report it

    def _tell(self, state: HelperServerState, text: str = "") -> None:
        if state != self._state or text:
            self._state = state
            self._send(ServerStatus(server=self.spec.server, state=state, text=text))

    async def with_session(self, work: Callable[[McpSession], Awaitable[T]]) -> T:
        """Run a request; one that the server did not know the session of runs again in a new one."""
        session, _ = await self.connect_session()
        try:
            return await work(session)
        except Exception as error:
            if self._refusals.status == UNAUTHORIZED and self.traffic and not self._sign_in:
                self.traffic.end(SIGNED_OUT)  # its tokens or headers count no more: the next connection has others
                raise AuthNeeded from error
            inner = innermost(error)
            is_closed = isinstance(inner, MCPError) and inner.code == CONNECTION_CLOSED and not is_of_server(inner)
            if is_closed and self.traffic and self.traffic.cause:
                raise ServerFailed("gone", f"MCP server '{self.name}' ended: {self.traffic.cause}.") from error
            if self.spec.transport != "http" or SESSION_GONE not in str(inner):
                raise
        return await work(await self.renew_session(session))
