"""MCP servers inside the host, as `create_sdk_mcp_server` makes them, and questions of all servers to the user."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from engine.engine import Engine, find_asked_conversation
from engine.extensions.mcp.server_asks import NoAnswerError
from engine.ports.extensions import ExtensionPrompt
from engine.records import ConversationRecord
from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.control.frames import HostChannel, HostError
from tools.clean import clean, clean_line
from tools.contract import (
    ImageReader,
    ImageRejected,
    JsonObject,
    JsonValue,
    PreparedImage,
    Tool,
    ToolClass,
    ToolContext,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.mcp_form import LONGEST_MESSAGE, BadForm, form_of
from tools.mcp_host.protocol import raw
from tools.wording import one_line

LEAST_MS: Final = 1_000
"""Milliseconds below which a time for a call does not count, as in the program that the SDKs were written for."""
MOST_NAMED_TOOLS: Final = 1_000
ASKS: Final = "the host wants to be asked about each call of this tool"


class ServerPolicy(Struct, frozen=True):
    """Choices of a host about one server."""

    seconds: float | None = None
    """Time for a call; None: the usual one."""
    asks: frozenset[str] = frozenset()
    """Tools of the server that ask before each call, whatever mode and rules say."""
    denies: frozenset[str] = frozenset()
    """Tools that no model is offered."""

    def join(self, other: ServerPolicy) -> ServerPolicy:
        """Add the tools of another, and take its time where it has one."""
        return ServerPolicy(other.seconds or self.seconds, self.asks | other.asks, self.denies | other.denies)


NO_POLICY: Final = ServerPolicy()


def read_policy(value: JsonValue) -> ServerPolicy:
    """The choices in an entry of `sdkMcpServerConfigs`; parts of another shape are left out."""
    if not isinstance(value, dict):
        return NO_POLICY
    timeout, tools = value.get("timeout"), value.get("tools")
    is_time = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout >= LEAST_MS
    named: dict[str, set[str]] = {"always_ask": set(), "always_deny": set()}
    for tool in tools[:MOST_NAMED_TOOLS] if isinstance(tools, list) else []:
        name, policy = (tool.get("name"), tool.get("permission_policy")) if isinstance(tool, dict) else (None, None)
        if isinstance(name, str) and isinstance(policy, str) and policy in named:
            named[policy].add(name)
    seconds = float(timeout) / 1_000 if is_time and isinstance(timeout, int | float) else None
    return ServerPolicy(seconds, frozenset(named["always_ask"]), frozenset(named["always_deny"]))


log = logging.getLogger(__name__)

PROTOCOL: Final = "2025-06-18"
CONNECT_WITHIN: Final = 30.0
"""Seconds for the handshake and the list of one server."""
CALL_WITHIN: Final = 3_600.0
"""Seconds for one call."""
MOST_SERVERS: Final = 64
"""Servers of one handshake."""
MOST_TOOLS: Final = 500
"""Tools of one server; further ones are left out."""
MOST_PAGES: Final = 50
LONGEST_NAME: Final = 128
LONGEST_DESCRIPTION: Final = 4_096
LARGEST_SCHEMA: Final = 65_536
MOST_TEXT: Final = 100_000
"""Characters of a result for the model."""
MOST_IMAGES: Final = 10
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


class HostServer(Struct, eq=False):
    """One server of the host."""

    name: str
    error: str = ""
    """Reason why it cannot be used; empty while it can, or is not connected yet."""
    connected: bool = False
    is_on: bool = True
    policy: ServerPolicy = NO_POLICY
    """Choices of the host about its tools."""
    info: JsonObject = field(default_factory=dict[str, JsonValue])
    tools: dict[str, HostTool] = field(default_factory=dict[str, "HostTool"])

    @property
    def offered(self) -> dict[str, HostTool]:
        """The tools that models are offered."""
        if not self.is_on:
            return {}
        return {name: tool for name, tool in self.tools.items() if tool.own_name not in self.policy.denies}

    @property
    def status(self) -> str:
        """State under the names of hosts."""
        if not self.is_on:
            return "disabled"
        return "failed" if self.error else "connected" if self.connected else "pending"


class HostTool(Struct, eq=False):
    """A tool of a server of the host."""

    spec: ToolSpec
    own_name: str
    server: str
    servers: HostServers
    annotations: JsonObject

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Describe a call."""
        del working_dir
        summary = one_line(json.dumps(args, ensure_ascii=False), 200) if args else self.own_name
        asks = self.own_name in self.servers.policy(self.server).asks
        return ToolRequest(summary, asks_always=ASKS if asks else "")

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Call it in the host."""
        del context
        try:
            result = await self.servers.call(self.server, "tools/call", {"name": self.own_name, "arguments": args})
        except HostError as error:
            return ToolOutput(f"{self.spec.name}: {error}", is_error=True)
        return await self.servers.output(result)


class HostServers:
    """The servers of one host; a source of tools, and a part of the handshake."""

    def __init__(self, host: HostChannel, names: Sequence[str]) -> None:
        self._host = host
        self._servers = {name: HostServer(name) for name in names}
        self._connecting: asyncio.Task[None] | None = None
        self._ids = 0
        self.images: ImageReader | None = None
        """Decoder of images in results; None: they are left out."""

    def begin(self, request: JsonObject) -> None:
        """Take the servers of the handshake and start to connect: the answer does not wait for it."""
        names = request.get("sdkMcpServers")
        inside = [one for one in names if isinstance(one, str) and one] if isinstance(names, list) else []
        for name in inside[:MOST_SERVERS]:
            self._servers.setdefault(name, HostServer(name))
        configs = request.get("sdkMcpServerConfigs")
        for name, config in configs.items() if isinstance(configs, dict) else ():
            if (server := self._servers.get(name)) is not None:
                server.policy = server.policy.join(read_policy(config))
        self._connect()

    def policy(self, name: str) -> ServerPolicy:
        """Choices of the host about a server."""
        server = self._servers.get(name)
        return NO_POLICY if server is None else server.policy

    def names(self) -> list[str]:
        """Names of all."""
        return list(self._servers)

    def has(self, name: str) -> bool:
        """True for a server of the host."""
        return name in self._servers

    def statuses(self) -> list[JsonObject]:
        """The servers in the init frame."""
        return [{"name": one.name, "status": one.status} for one in self._servers.values()]

    def errors(self) -> dict[str, JsonValue]:
        """Reasons by name where a server cannot be used."""
        return {one.name: one.error for one in self._servers.values() if one.error}

    async def replace(self, configs: Mapping[str, JsonValue]) -> None:
        """Have these servers and no others, connected."""
        self._servers = {name: self._servers.get(name) or HostServer(name) for name in configs}
        for name, server in self._servers.items():
            server.policy = read_policy(configs[name])
        await self._connect_all()

    async def ready(self) -> None:
        """Wait until each server is connected, or is known to fail."""
        await self._connect()

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        """Tools of all servers that are on, sorted by name."""
        del record
        found = {name: tool for server in self._servers.values() for name, tool in server.offered.items()}
        return {name: cast("Tool", found[name]) for name in sorted(found)}

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        """No texts: the tools describe themselves."""
        del record
        return ()

    async def prepare(self, record: ConversationRecord) -> None:
        """Wait for the servers, within their own bound."""
        del record
        await self._connect()

    def close_conversation(self, conversation_id: str) -> None:
        """Do nothing: nothing is held for it."""

    async def call(self, server: str, method: str, params: JsonObject) -> JsonObject:
        """The result of a request of JSON-RPC.

        Raises:
            HostError: the host or the server refused it, or gave no answer.
        """
        self._ids += 1
        message: JsonObject = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        within = (self.policy(server).seconds or CALL_WITHIN) if method == "tools/call" else CONNECT_WITHIN
        answer = await self._send(server, message, within)
        error, result = answer.get("error"), answer.get("result")
        if isinstance(error, dict):
            raise HostError(clean_line(str(error.get("message") or "The server refused without a reason."))[:1_000])
        if not isinstance(result, dict):
            raise HostError(f"The server {server} gave no result.")
        return result

    async def output(self, result: JsonObject) -> ToolOutput:
        """The result of a call as a model reads it."""
        content = result.get("content")
        texts, images = list[str](), list[PreparedImage]()
        for block in content if isinstance(content, list) else []:
            found = await self._read_part(block, len(images)) if isinstance(block, dict) else "[left out: no object]"
            if isinstance(found, PreparedImage):
                images.append(found)
            else:
                texts.append(found)
        if not texts and not images:
            structured = result.get("structuredContent")
            texts.append(json.dumps(structured) if structured is not None else "(completed with no output)")
        text = clean("\n".join(texts))
        is_cut = len(text) > MOST_TEXT
        if is_cut:
            text = f"{text[:MOST_TEXT]}\n[{len(text) - MOST_TEXT:,} characters left out]"
        return ToolOutput(text, result.get("isError") is True, images=tuple(images), truncated=is_cut)

    def report(self) -> list[JsonValue]:
        """The servers for `mcp_status`."""
        return [_report_server(one) for one in self._servers.values()]

    def turn(self, name: str, *, is_on: bool) -> bool:
        """Switch a server on or off; False for an unknown one."""
        server = self._servers.get(name)
        if server is not None:
            server.is_on = is_on
        return server is not None

    async def reconnect(self, name: str) -> str:
        """Connect to a server again; returns the reason where it fails."""
        server = self._servers.get(name)
        if server is None:
            return f"There is no server {name[:60]}."
        server.connected, server.error = False, ""
        await self._connect_to(server)
        return server.error

    async def list_again(self, name: str) -> None:
        """Read the tools of a connected server anew; those from before stay where that fails."""
        server = self._servers[name]
        if server.connected:
            try:
                server.tools = await self._list_tools(name)
            except HostError as error:
                log.warning("the server %s of the host lists no tools: %s", name, error)

    def _connect(self) -> asyncio.Task[None]:
        if self._connecting is None:
            self._connecting = asyncio.ensure_future(self._connect_all())
        return self._connecting

    async def _connect_all(self) -> None:
        await asyncio.gather(*(self._connect_to(one) for one in self._servers.values()))

    async def _connect_to(self, server: HostServer) -> None:
        if server.error or server.connected:
            return
        client: JsonObject = {"name": "phoenix", "version": "1"}
        hello: JsonObject = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        try:
            answer = await self.call(server.name, "initialize", hello)
            info = answer.get("serverInfo")
            server.info = info if isinstance(info, dict) else {}
            await self._send(server.name, {"jsonrpc": "2.0", "method": "notifications/initialized"}, CONNECT_WITHIN)
            server.tools = await self._list_tools(server.name)
            server.connected = True
        except HostError as error:
            server.error = str(error)
            log.warning("the server %s of the host cannot be used: %s", server.name, error)

    async def _list_tools(self, server: str) -> dict[str, HostTool]:
        found: dict[str, HostTool] = {}
        params: JsonObject = {}
        for _ in range(MOST_PAGES):
            answer = await self.call(server, "tools/list", params)
            listed, cursor = answer.get("tools"), answer.get("nextCursor")
            for entry in listed if isinstance(listed, list) else []:
                tool = self._make_tool(server, entry) if isinstance(entry, dict) else None
                if tool is not None and len(found) < MOST_TOOLS:
                    found.setdefault(tool.spec.name, tool)
            if not isinstance(cursor, str) or not cursor:
                break
            params = {"cursor": cursor}
        return found

    def _make_tool(self, server: str, entry: JsonObject) -> HostTool | None:
        name, schema, about = entry.get("name"), entry.get("inputSchema"), entry.get("description")
        if not isinstance(name, str) or not name:
            return None
        full = f"mcp__{_NOT_IN_NAMES.sub('_', server)}__{_NOT_IN_NAMES.sub('_', name)}"
        fits = isinstance(schema, dict) and len(json.dumps(schema)) <= LARGEST_SCHEMA
        shape: JsonObject = schema if isinstance(schema, dict) and fits else {"type": "object"}
        if len(full) > LONGEST_NAME or shape.get("type", "object") != "object":
            log.warning("the tool %s of the server %s cannot be offered", name[:60], server)
            return None
        said = clean(about)[:LONGEST_DESCRIPTION] if isinstance(about, str) else ""
        notes = entry.get("annotations")
        spec = ToolSpec(full, said, {"properties": {}, **shape, "type": "object"}, ToolClass.RUN)
        return HostTool(spec, name, server, self, notes if isinstance(notes, dict) else {})

    async def _send(self, server: str, message: JsonObject, seconds: float) -> JsonObject:
        answer = await self._host.ask({"subtype": "mcp_message", "server_name": server, "message": message}, seconds)
        response = answer.get("mcp_response")
        return response if isinstance(response, dict) else {}

    async def _read_part(self, block: JsonObject, images: int) -> str | PreparedImage:
        kind, resource = block.get("type"), block.get("resource")
        if kind == "text":
            return str(block.get("text", ""))
        if kind == "image" and self.images is not None and images < MOST_IMAGES:
            try:
                return await self.images.prepare(base64.b64decode(str(block.get("data", "")), validate=True))
            except (ImageRejected, binascii.Error, ValueError) as error:
                return f"[an image was left out: {error}]"
        if kind == "resource" and isinstance(resource, dict) and isinstance(resource.get("text"), str):
            return str(resource["text"])
        if kind == "resource_link":
            return f"[resource {clean_line(str(block.get('uri', '')))}]"
        return f"[left out: a part of type {clean_line(str(kind))[:60]}]"


def _report_server(server: HostServer) -> JsonObject:
    tools: list[JsonValue] = [
        {
            "name": tool.own_name,
            "description": tool.spec.description,
            "annotations": {
                "readOnly": tool.annotations.get("readOnlyHint") is True,
                "destructive": tool.annotations.get("destructiveHint") is True,
                "openWorld": tool.annotations.get("openWorldHint") is True,
            },
        }
        for tool in server.tools.values()
    ]
    config: JsonObject = {"type": "sdk", "name": server.name}
    about: JsonObject = {"name": server.name, "status": server.status, "config": config, "scope": "dynamic"}
    if server.info:
        about["serverInfo"] = server.info
    if server.error:
        about["error"] = server.error
    about["tools"] = tools
    return about


ANSWER_WITHIN: Final = 3_600.0
"""Seconds for an answer; a host asks a person."""
LARGEST_ANSWER: Final = 64 * 1024
"""Bytes of the content of an answer, as JSON."""
LONGEST_ID: Final = 256
ACTIONS: Final = ("accept", "decline", "cancel")


class HostQuestions(Struct, frozen=True):
    """Implements `engine.extensions.mcp.server_asks.QuestionHost`."""

    host: HostChannel
    engine: Engine
    says_waiting: Callable[[bool], None]
    """Callback for True while the host is asked."""

    async def ask(self, conversation_id: str, server: str, kind: str, params: JsonObject) -> JsonObject:
        """The host's answer, as MCP has it. Raises BadForm and NoAnswerError."""
        request = elicitation(server, kind, params)
        conversation = find_asked_conversation(self.engine, conversation_id)
        if conversation is not None:
            conversation.server_questions.announce(server)
        self.says_waiting(True)
        try:
            given = await self.host.ask(request, ANSWER_WITHIN)
        except HostError as error:
            raise NoAnswerError(f"the host gave no answer ({clean_line(str(error))[:200].rstrip('.')})") from error
        finally:
            self.says_waiting(False)
        return check_answer(kind, given)


def elicitation(server: str, kind: str, params: JsonObject) -> JsonObject:
    """The request about a question of kind `form` or `url`. The schema stays as the server wrote it.

    Raises:
        BadForm: it cannot be asked.
    """
    message = params.get("message")
    text = clean(message[: LONGEST_MESSAGE * 2])[:LONGEST_MESSAGE].strip() if isinstance(message, str) else ""
    request: JsonObject = {"subtype": "elicitation", "mcp_server_name": server, "message": text, "mode": kind}
    if kind == "url":
        form_of(kind, params)  # refuses addresses that no browser should open
        request["url"] = params.get("url")
    else:
        schema = params.get("requestedSchema")
        if not isinstance(schema, dict):
            raise BadForm("has no fields")
        request["requested_schema"] = schema
    own_id = params.get("elicitationId")
    if isinstance(own_id, str) and 0 < len(own_id) <= LONGEST_ID:
        request["elicitation_id"] = own_id
    try:
        encode(request)
    except RecursionError:
        raise BadForm("is nested too deeply") from None
    return request


def check_answer(kind: str, given: JsonObject) -> JsonObject:
    """The answer for the server; content counts with a form that was accepted. Whether it fits, the server checks.

    Raises:
        NoAnswerError: it is none.
    """
    action = given.get("action")
    if action not in ACTIONS:
        raise NoAnswerError(f"the host's answer needs an action: {', '.join(ACTIONS)}")
    if action != "accept" or kind == "url":
        return {"action": action}
    content = given.get("content")
    if content is None:
        content = {}
    if not isinstance(content, dict) or not all(map(_is_plain, content.values())):
        raise NoAnswerError("the host's content must be an object of texts, numbers, booleans and lists of texts")
    try:
        size = len(bytes(raw(content)))
    except UnicodeEncodeError:
        raise NoAnswerError("the host's content has a text that is no Unicode") from None
    if size > LARGEST_ANSWER:
        raise NoAnswerError(f"the host's content has more than {LARGEST_ANSWER:,} bytes")
    return {"action": action, "content": content}


def _is_plain(value: JsonValue) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    return value is None or isinstance(value, str | int | float)
