"""One connection from its handshake to its end: what it lists, what changes, and what the server asks meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, Literal, TypeVar

import mcp_types as types
import msgspec
from mcp.client import Client, ClientRequestContext, IncomingMessage, Transport
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from tools.clean import clean, clean_line
from tools.mcp_host.asks import Asks
from tools.mcp_host.catalogue import fetch, fetch_tools
from tools.mcp_host.causes import cause
from tools.mcp_host.limits import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    LONGEST_SAMPLE,
    QUIET,
    QUIET_AT_MOST,
    RECONNECT,
)
from tools.mcp_host.log_ring import LogRing
from tools.mcp_host.protocol import Connect, Connected, Items, Listing, Root, SampleRefusal
from tools.mcp_host.schemas import OutputSchemas

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


class Session:
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
            message_handler=self._notified,
            logging_callback=self._logged,
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
        return self._described()

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
            await self.client.send_roots_list_changed()  # pyright: ignore[reportDeprecated] - of the handshake era

    def _withdraw(self) -> None:
        self._ended = True
        self._asks.drop(self.spec.server)

    def _described(self) -> Connected:
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

    async def _notified(self, message: IncomingMessage) -> None:
        for what in CHANGES.get(type(message), ()):
            if what in self.lists and not self._ended:
                self._changed(what)

    def _changed(self, what: Listing) -> None:
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

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
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
