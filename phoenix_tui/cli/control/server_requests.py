"""Requests of a host about MCP servers: those inside it, and those that Phoenix connects to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from engine.conversation import Conversation
from engine.ports import ConversationChanges
from engine.ports.mcp import McpServers, ServerDefinition, ServerOrigin, ServerState, ServerView
from phoenix_tui.cli.control.host_servers import MOST_SERVERS, HostServers
from phoenix_tui.cli.control.requests import Handler, RequestError, text_of
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.server_status import STATUS, server_frame
from phoenix_tui.config.servers.definition import Place, parse_definition
from tools.contract import JsonObject, JsonValue

CONNECT_WITHIN: Final = 10.0
"""Seconds that a request waits for servers that a host sets."""
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
SCOPES: Final = {ServerOrigin.FLAG: "dynamic", ServerOrigin.PROJECT: "project", ServerOrigin.USER: "user"}


class ServerRequests(Struct, eq=False):
    """Answers them for one connection, and is a part of the handshake."""

    inside: HostServers
    others: McpServers
    conversation: Conversation
    start: Callable[[], Awaitable[Sequence[ServerView]]]
    """Starts the others before the first turn. Raises CommandError: a required one failed."""
    environment: Mapping[str, str]
    """Variables of definitions."""
    why_not: str = ""
    """Reason why no turn can begin; empty: it can."""
    _views: Sequence[ServerView] = ()
    _has_started: bool = False
    _set: dict[str, ServerDefinition] = field(default_factory=dict[str, ServerDefinition])
    """Servers that the host has set and Phoenix connects to."""

    def handlers(self) -> Mapping[str, Handler]:
        """The requests that it answers."""
        return {
            "mcp_status": self._status,
            "mcp_toggle": self._toggle,
            "mcp_reconnect": self._reconnect,
            "mcp_set_servers": self._set_servers,
            "mcp_message": self._message,
        }

    def begin(self, request: JsonObject) -> None:
        """Take the servers inside the host."""
        self.inside.begin(request)

    def init_fields(self) -> JsonObject:
        """All servers in the init frame."""
        own = {one.name for one in self._views}
        servers: list[JsonValue] = [one for one in self.inside.statuses() if one["name"] not in own]
        servers += [server_frame(view) for view in self._views]
        return {"mcp_servers": servers}

    async def ready(self) -> None:
        """Start the servers before the first turn, each within its bound; later look at them again."""
        await self.inside.ready()
        if self._has_started:
            self._views = await self.others.views(self.conversation.record)
            return
        try:
            self._views = await self.start()
            self._has_started, self.why_not = True, ""
        except CommandError as error:
            self.why_not = error.sentence

    async def _status(self, request: JsonObject) -> JsonObject:
        del request
        views = await self.others.views(self.conversation.record)
        return {"mcpServers": [*self.inside.report(), *map(_report, views)]}

    async def _toggle(self, request: JsonObject) -> JsonObject:
        name, is_on = text_of(request, "serverName"), request.get("enabled") is True
        if self.inside.turn(name, is_on=is_on):
            return {}
        record = self.conversation.record
        if all(view.name != name for view in await self.others.views(record)):
            raise RequestError(f"There is no server {name[:60]}.")
        off = [one for one in record.mcp_off if one != name] + ([] if is_on else [name])
        await self.conversation.change(ConversationChanges(mcp_off=tuple(off)))
        await self.others.settle(self.conversation.record, 0)
        return {}

    async def _reconnect(self, request: JsonObject) -> JsonObject:
        name, record = text_of(request, "serverName"), self.conversation.record
        if self.inside.has(name):
            if why := await self.inside.reconnect(name):
                raise RequestError(why)
            return {}
        await self.others.reconnect(record, name)
        view = next((one for one in await self.others.views(record) if one.name == name), None)
        if view is None:
            raise RequestError(f"There is no server {name[:60]}.")
        if view.state is not ServerState.CONNECTED:
            raise RequestError(view.text or f"The server {name[:60]} is not connected.")
        return {}

    async def _message(self, request: JsonObject) -> JsonObject:
        """Take a notification of a server inside the host; a change of its tools lists them again."""
        name, message = text_of(request, "server_name"), request.get("message")
        if not self.inside.has(name):
            raise RequestError(f"There is no server {name[:60]} inside the host.")
        if isinstance(message, dict) and message.get("method") == TOOLS_CHANGED:
            await self.inside.list_again(name)
        return {}

    async def _set_servers(self, request: JsonObject) -> JsonObject:
        """Set the servers of the host: those it had set before and does not name are gone."""
        given = request.get("servers")
        if not isinstance(given, dict) or len(given) > MOST_SERVERS:
            raise RequestError(f"The request needs servers, an object of at most {MOST_SERVERS}.")
        inside = {name: one for name, one in given.items() if isinstance(one, dict) and one.get("type") == "sdk"}
        before = {*self.inside.names(), *self._set}
        place = Place(ServerOrigin.FLAG, "the host", Path(self.conversation.record.cwd), self.environment)
        made = [parse_definition(name, config, place)[0] for name, config in given.items() if name not in inside]
        self._set = {one.name: one for one in made}
        self.others.give(self.conversation.id, made)
        await self.inside.replace(inside)
        await self.others.settle(self.conversation.record, CONNECT_WITHIN)
        views = {view.name: view for view in await self.others.views(self.conversation.record)}
        after = {*inside, *self._set}
        errors = self.inside.errors() | {
            name: view.text or view.state.value
            for name, view in views.items()
            if name in self._set and view.state in {ServerState.FAILED, ServerState.NEEDS_AUTH}
        }
        added: list[JsonValue] = [*sorted(after - before)]
        removed: list[JsonValue] = [*sorted(before - after)]
        return {"added": added, "removed": removed, "errors": {**errors}}


def _report(view: ServerView) -> JsonObject:
    prefix = len(f"mcp__{view.name}__")
    tools: list[JsonValue] = [{"name": name[prefix:], "annotations": {}} for name in view.tools]
    where = "command" if view.transport == "stdio" else "url"
    config: JsonObject = {"type": view.transport, where: view.shown}
    about: JsonObject = {
        "name": view.name,
        "status": STATUS[view.state],
        "config": config,
        "scope": SCOPES[view.origin],
    }
    if view.text and view.state is not ServerState.CONNECTED:
        about["error"] = view.text
    about["tools"] = tools
    return about
