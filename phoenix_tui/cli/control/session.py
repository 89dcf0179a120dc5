"""Requests of the host about its conversation: the handshake, an interruption, mode and model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from engine.conversation import Conversation
from engine.ports import ConversationChanges, ProviderError
from engine.records import PermissionMode
from phoenix_tui.cli.agent_sdk import COMPATIBLE_VERSION, MODES
from phoenix_tui.cli.control.host_agents import HostAgents
from phoenix_tui.cli.control.host_commands import HostCommands
from phoenix_tui.cli.control.launch_fields import confirmed
from phoenix_tui.cli.control.model_finder import ModelFinder
from phoenix_tui.cli.control.names import bare_model, foreign_names
from phoenix_tui.cli.control.requests import Handler, RequestError, process_facts, text_of
from phoenix_tui.cli.control.server_requests import ServerRequests
from phoenix_tui.cli.control.turns import Turns
from phoenix_tui.config.claude_words import FOREIGN_MODES, LINES, NOBODY, known_model
from tools.contract import JsonObject, JsonValue


class InitPart(Protocol):
    """A part of a connection that reads the handshake and adds to the init frame, such as hooks or servers."""

    def begin(self, request: JsonObject) -> None:
        """Read the `initialize` request. Raises RequestError."""
        ...

    def init_fields(self) -> JsonObject:
        """Fields of the init frame."""
        ...

    async def ready(self) -> None:
        """Wait until the first turn may begin, within the part's own bound; never raises."""
        ...


class ControlSession(Struct, eq=False):
    """The conversation of one connection, as its host asks about it."""

    conversation: Conversation
    turns: Turns
    tools: Callable[[], Sequence[str]]
    """Native names of the tools of its model."""
    find_model: ModelFinder
    default_model: str
    servers: ServerRequests
    commands: HostCommands
    agents: HostAgents
    parts: Sequence[InitPart] = ()
    unasked: bool = False
    """Mode `dontAsk`."""
    asks: bool = False
    """True where the host can be asked."""
    launch: JsonObject = field(default_factory=dict[str, JsonValue])
    """Fields of the handshake that counted at the launch."""
    began: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the handshake is over."""

    def handlers(self) -> Mapping[str, Handler]:
        """The requests that it answers."""
        return {
            "initialize": self._initialize,
            "interrupt": self._interrupt,
            "set_permission_mode": self._set_mode,
            "set_model": self._set_model,
            "list_models": self._list_models,
            **self.servers.handlers(),
        }

    async def ready(self) -> str:
        """Wait for all parts; returns why no turn can begin."""
        for part in (*self.parts, self.commands):
            await part.ready()
        return self.servers.why_not

    def init_frame(self) -> JsonObject:
        """The init frame as it is now."""
        record = self.conversation.record
        nothing: list[JsonValue] = []
        tools: list[JsonValue] = list(foreign_names(self.tools()))
        frame: JsonObject = {
            "type": "system",
            "subtype": "init",
            "cwd": str(record.cwd),
            "tools": tools,
            "model": bare_model(record.model),
            "permissionMode": self.mode_name,
            "mcp_servers": nothing,
            "slash_commands": nothing,
            "agents": nothing,
            "skills": nothing,
            "plugins": nothing,
            "output_style": "default",
            "apiKeySource": "none",
            "claude_code_version": COMPATIBLE_VERSION,
            "capabilities": process_facts()["capabilities"],
        }
        for part in (*self.parts, self.commands):
            frame |= part.init_fields()
        return frame

    @property
    def mode_name(self) -> str:
        """The permission mode as the host calls it."""
        mode = self.conversation.record.permission_mode
        return NOBODY if self.unasked and mode is PermissionMode.ASK else MODES.get(mode.value, mode.value)

    async def change_mode(self, mode: PermissionMode) -> None:
        """Take a mode and report it."""
        await self.conversation.change(ConversationChanges(permission_mode=mode))
        status: JsonObject = {"type": "system", "subtype": "status", "status": None}
        self.turns.reporter.tell(status | {"permissionMode": self.mode_name})

    async def _initialize(self, request: JsonObject) -> JsonObject:
        for part in self.parts:
            part.begin(request)
        forwards = request.get("forwardSubagentText") is True
        self.turns.reporter.forwards_text = forwards
        await self.commands.ready()
        self.began.set()
        styles: list[JsonValue] = ["default"]
        facts: JsonObject = {
            "commands": self.commands.objects(),
            "agents": self.agents.objects(),
            "output_style": "default",
            "available_output_styles": styles,
            "models": self._models(),
            "claude_code_version": COMPATIBLE_VERSION,
            "current_permission_mode": self.mode_name,
            "session_state": self.turns.state,
        }
        return process_facts() | facts | confirmed(request, self.launch)

    def _models(self) -> list[JsonValue]:
        default: JsonObject = {
            "value": "default",
            "displayName": "Default",
            "description": bare_model(self.default_model),
            "supportsEffort": True,
        }
        lines: list[JsonValue] = [
            {"value": name, "displayName": name.title(), "description": bare_model(model), "supportsEffort": True}
            for name, model in LINES.items()
        ]
        return [default, *lines]

    async def _list_models(self, request: JsonObject) -> JsonObject:
        del request
        return {"models": self._models()}

    async def _interrupt(self, request: JsonObject) -> JsonObject:
        self.turns.stop()
        cancelled: list[JsonValue] = []
        if request.get("cancel_queued") is True:
            cancelled = [uuid for uuid in self.turns.waiting if await self.turns.drop(uuid)]
        waiting: list[JsonValue] = list(self.turns.waiting)
        answer: JsonObject = {"still_queued": waiting}
        if cancelled:
            answer["cancelled"] = cancelled
        return answer

    async def _set_mode(self, request: JsonObject) -> JsonObject:
        given = text_of(request, "mode")
        if given not in FOREIGN_MODES:
            raise RequestError(f"There is no permission mode {given[:60]}; use {', '.join(list(FOREIGN_MODES)[:6])}.")
        self.unasked = given == NOBODY
        self.turns.approvals.asks = self.asks and not self.unasked
        await self.change_mode(PermissionMode(FOREIGN_MODES[given]))
        return {"mode": self.mode_name}

    async def _set_model(self, request: JsonObject) -> JsonObject:
        given = request.get("model")
        if given is not None and not isinstance(given, str):
            raise RequestError("The request needs model, a text or null.")
        wanted = self.default_model if given in {None, "", "default"} else known_model(str(given))
        try:
            reference = await self.find_model(wanted)
        except ProviderError as error:
            raise RequestError(error.message) from error
        await self.conversation.change(ConversationChanges(model=reference))
        self.turns.reporter.model = reference
        return {"model": bare_model(reference)}
