"""Requests of the host about its conversation: the handshake, model, mode, servers, window, files and tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from engine.context.estimate import text_tokens, tools_tokens
from engine.context.prompt import IMPORTED
from engine.conversation import Conversation
from engine.engine import Engine
from engine.executor.context_manager import SystemPrompt
from engine.executor.requests import Accepted
from engine.ports import ConversationChanges, ProviderError, StorageError
from engine.ports.files import FilesError
from engine.ports.mcp import ServerDefinition, ServerOrigin, ServerState, ServerView
from engine.ports.profiles import BUILT_IN, Profile
from engine.records import PermissionMode
from engine.rewind.rewind import CannotRewind, Preview, RewindScope
from engine.run_options import Effort
from phoenix_tui.cli.control.extensions import HostAgents
from phoenix_tui.cli.control.frames import ControlRequestError, RequestHandler, process_facts, text_of
from phoenix_tui.cli.control.options import LONGEST_TITLE, SERVED, choose_effort, confirm_fields
from phoenix_tui.cli.control.reporter import bare_model, foreign_names
from phoenix_tui.cli.control.servers import MOST_SERVERS, HostServers
from phoenix_tui.cli.control.turns import ModelFinder, Turns
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.outcome import COMPATIBLE_VERSION, MODES, HostCommands
from phoenix_tui.cli.reporters import STATUS, server_frame
from phoenix_tui.config.claude_settings import FOREIGN_MODES, LINES, NOBODY, translate_model
from phoenix_tui.config.sources.server_definitions import DefinitionPlace, parse_definition
from tools.clean import clean, clean_line, reveal_name
from tools.contract import JsonObject, JsonValue

if TYPE_CHECKING:
    from engine.extensions.mcp.hub import McpHub

CONNECT_WITHIN: Final = 10.0
"""Seconds that a request waits for servers that a host sets."""
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
SCOPES: Final = {ServerOrigin.FLAG: "dynamic", ServerOrigin.PROJECT: "project", ServerOrigin.USER: "user"}


class McpRequests(Struct, eq=False):
    """Answers them for one connection, and is a part of the handshake."""

    inside: HostServers
    others: McpHub
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

    def handlers(self) -> Mapping[str, RequestHandler]:
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
            raise ControlRequestError(f"There is no server {name[:60]}.")
        off = [one for one in record.mcp_off if one != name] + ([] if is_on else [name])
        await self.conversation.change(ConversationChanges(mcp_off=tuple(off)))
        await self.others.settle(self.conversation.record, 0)
        return {}

    async def _reconnect(self, request: JsonObject) -> JsonObject:
        name, record = text_of(request, "serverName"), self.conversation.record
        if self.inside.has(name):
            if why := await self.inside.reconnect(name):
                raise ControlRequestError(why)
            return {}
        await self.others.reconnect(record, name)
        view = next((one for one in await self.others.views(record) if one.name == name), None)
        if view is None:
            raise ControlRequestError(f"There is no server {name[:60]}.")
        if view.state is not ServerState.CONNECTED:
            raise ControlRequestError(view.text or f"The server {name[:60]} is not connected.")
        return {}

    async def _message(self, request: JsonObject) -> JsonObject:
        """Take a notification of a server inside the host; a change of its tools lists them again."""
        name, message = text_of(request, "server_name"), request.get("message")
        if not self.inside.has(name):
            raise ControlRequestError(f"There is no server {name[:60]} inside the host.")
        if isinstance(message, dict) and message.get("method") == TOOLS_CHANGED:
            await self.inside.list_again(name)
        return {}

    async def _set_servers(self, request: JsonObject) -> JsonObject:
        """Set the servers of the host: those it had set before and does not name are gone."""
        given = request.get("servers")
        if not isinstance(given, dict) or len(given) > MOST_SERVERS:
            raise ControlRequestError(f"The request needs servers, an object of at most {MOST_SERVERS}.")
        inside = {name: one for name, one in given.items() if isinstance(one, dict) and one.get("type") == "sdk"}
        before = {*self.inside.names(), *self._set}
        place = DefinitionPlace(ServerOrigin.FLAG, "the host", Path(self.conversation.record.cwd), self.environment)
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


class InitPart(Protocol):
    """A part of a connection that reads the handshake and adds to the init frame, such as hooks or servers."""

    def begin(self, request: JsonObject) -> None:
        """Read the `initialize` request. Raises ControlRequestError."""
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
    servers: McpRequests
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

    def handlers(self) -> Mapping[str, RequestHandler]:
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
        return process_facts() | facts | confirm_fields(request, self.launch)

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
            raise ControlRequestError(
                f"There is no permission mode {given[:60]}; use {', '.join(list(FOREIGN_MODES)[:6])}."
            )
        self.unasked = given == NOBODY
        self.turns.approvals.asks = self.asks and not self.unasked
        await self.change_mode(PermissionMode(FOREIGN_MODES[given]))
        return {"mode": self.mode_name}

    async def _set_model(self, request: JsonObject) -> JsonObject:
        given = request.get("model")
        if given is not None and not isinstance(given, str):
            raise ControlRequestError("The request needs model, a text or null.")
        wanted = self.default_model if given in {None, "", "default"} else translate_model(given)
        try:
            reference = await self.find_model(wanted)
        except ProviderError as error:
            raise ControlRequestError(error.message) from error
        await self.conversation.change(ConversationChanges(model=reference))
        self.turns.reporter.model = reference
        return {"model": bare_model(reference)}


MOST_OUTPUT: Final = 8_192
"""Bytes of a task's output: its end."""


class SessionRequests(Struct, eq=False):
    """Answers these requests for one connection."""

    turns: Turns
    commands: HostCommands

    def handlers(self) -> Mapping[str, RequestHandler]:
        """The requests that it answers."""
        return {
            "rename_session": self._rename,
            "set_max_thinking_tokens": self._set_thinking,
            "cancel_async_message": self._cancel_message,
            "get_task_output": self._task_output,
            "background_tasks": self._background,
            "reload_skills": self._reload_skills,
            "side_question": self._side_question,
        }

    async def _rename(self, request: JsonObject) -> JsonObject:
        title = clean_line(text_of(request, "title"))[:LONGEST_TITLE]
        if request.get("session_id") not in {None, self.turns.conversation.id}:
            raise ControlRequestError("This connection has another session than the one to be renamed.")
        await self.turns.conversation.change(ConversationChanges(title))
        return {}

    async def _set_thinking(self, request: JsonObject) -> JsonObject:
        given = request.get("max_thinking_tokens")
        if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
            raise ControlRequestError("max_thinking_tokens must be a number of tokens, or null.")
        effort = Effort.DEFAULT if given is None else Effort(choose_effort(given))
        await self.turns.conversation.change(ConversationChanges(effort=effort))
        return {}

    async def _cancel_message(self, request: JsonObject) -> JsonObject:
        return {"cancelled": await self.turns.drop(text_of(request, "message_uuid"))}

    async def _task_output(self, request: JsonObject) -> JsonObject:
        task_id = text_of(request, "task_id")
        try:
            captured = self.turns.conversation.jobs.output(task_id)
        except KeyError as error:
            raise ControlRequestError(f"There is no task {clean_line(task_id)[:60]}.") from error
        shown = (captured.tail or captured.head)[-MOST_OUTPUT:]
        total = len(captured.head) + captured.dropped + len(captured.tail)
        output = clean(shown.decode("utf-8", "replace"))
        return {"output": output, "total_bytes": total, "truncated": total > len(shown)}

    async def _background(self, request: JsonObject) -> JsonObject:
        del request
        return {"backgrounded": isinstance(self.turns.conversation.jobs.background(), Accepted)}

    async def _reload_skills(self, request: JsonObject) -> JsonObject:
        del request
        await self.commands.ready()
        skills: list[JsonValue] = self.commands.objects()
        return {"skills": skills}

    async def _side_question(self, request: JsonObject) -> JsonObject:
        try:
            answer = await self.turns.conversation.side.ask(text_of(request, "question"))
        except (ProviderError, StorageError) as error:
            raise ControlRequestError(str(error)) from error
        return {"response": answer, "synthetic": False}


MOST_LISTED: Final = 500
"""Entries of a list."""


def list_memory_files(prompt: SystemPrompt) -> list[JsonValue]:
    """Instruction files with their owner, by the tokens of each."""
    owners = {reveal_name(str(file.path)): file.owner for file in prompt.files}
    found = [(one.section.origin.partition(IMPORTED)[0], one) for one in prompt.sections if one.section.is_instructions]
    return [
        {"path": path, "type": owners[path].value, "tokens": one.tokens}
        for path, one in found[:MOST_LISTED]
        if path in owners
    ]


def list_mcp_tools(prompt: SystemPrompt) -> list[JsonValue]:
    """Tools of MCP servers whose definitions are sent."""
    served = [spec for spec in prompt.specs if spec.name.startswith(SERVED)]
    return [
        {
            "name": spec.name,
            "serverName": spec.name.removeprefix(SERVED).partition("__")[0],
            "tokens": tools_tokens([spec]),
            "isLoaded": True,
        }
        for spec in served[:MOST_LISTED]
    ]


def list_agent_types(profiles: Iterable[Profile]) -> list[JsonValue]:
    """Agents that the tools for sub-agents name."""
    return [
        {
            "agentType": profile.name,
            "source": clean_line(profile.source) if profile.source != BUILT_IN else "built-in",
            "tokens": text_tokens(profile.description),
        }
        for profile in list(profiles)[:MOST_LISTED]
    ]


COLORS: Final = ("promptBorder", "inactive", "claude", "warning", "permission", "success", "text")
"""Names of colours that hosts know, for the shares in order."""
NO_CHECKPOINT: Final = "No file checkpoint found for this message."


class Inspection(Struct, eq=False):
    """Answers these requests for one connection."""

    engine: Engine
    turns: Turns
    agents: HostAgents

    def handlers(self) -> Mapping[str, RequestHandler]:
        """The requests that it answers."""
        return {
            "get_context_usage": self._context_usage,
            "rewind_files": self._rewind_files,
            "stop_task": self._stop_task,
        }

    async def _context_usage(self, request: JsonObject) -> JsonObject:
        del request
        conversation = self.turns.conversation
        report, prompt = await conversation.context.report(), await conversation.context.prompt()
        shares = [(filling, tokens) for filling, tokens in report.measured.shares if tokens]
        categories: list[JsonValue] = [
            {
                "name": filling.value.replace("_", " ").capitalize(),
                "tokens": tokens,
                "color": COLORS[number % len(COLORS)],
            }
            for number, (filling, tokens) in enumerate(shares)
        ]
        threshold = report.window * report.compact_percent // 100
        nothing: list[JsonValue] = []
        return {
            "categories": categories,
            "totalTokens": report.tokens,
            "maxTokens": report.window,
            "rawMaxTokens": report.window,
            "percentage": round(report.tokens * 100 / report.window) if report.window else 0,
            "model": bare_model(conversation.record.model),
            "isAutoCompactEnabled": report.compact_percent <= 100,
            "autoCompactThreshold": threshold if report.compact_percent <= 100 else None,
            "memoryFiles": list_memory_files(prompt),
            "mcpTools": list_mcp_tools(prompt),
            "agents": list_agent_types(self.agents.list_added(conversation.record.cwd)),
            "gridRows": nothing,
        }

    async def _rewind_files(self, request: JsonObject) -> JsonObject:
        seq = self.turns.seqs.get(text_of(request, "user_message_id"))
        conversation, rewinding = self.turns.conversation, self.engine.ports.rewinding
        if seq is None or rewinding is None:
            raise ControlRequestError(NO_CHECKPOINT)
        try:
            if request.get("dry_run") is True:
                return _describe_preview(await rewinding.preview(conversation.record, seq))
            await rewinding.rewind(conversation.record, conversation.state, seq, RewindScope.FILES)
        except (CannotRewind, FilesError, StorageError) as error:
            raise ControlRequestError(str(error)) from error
        return {"canRewind": True}

    async def _stop_task(self, request: JsonObject) -> JsonObject:
        task_id, sub_agents = text_of(request, "task_id"), self.engine.sub_agents
        parent = self.turns.conversation.id
        agents = [view.id for view in sub_agents.views(parent)] if sub_agents is not None else []
        if sub_agents is not None and task_id in agents:
            sub_agents.stop([task_id])
            return {}
        try:
            await self.turns.conversation.jobs.kill(task_id)
        except KeyError as error:
            raise ControlRequestError(f"There is no task {task_id[:60]}.") from error
        return {}


def _describe_preview(preview: Preview) -> JsonObject:
    """The files that a rewind would change."""
    if preview.refusal:
        return {"canRewind": False, "error": preview.refusal}
    changes = [one.change for one in preview.files if one.possible and not one.conflict]
    names: list[JsonValue] = [clean_line(change.name) for change in changes]
    lines = sum(change.added for change in changes), sum(change.removed for change in changes)
    return {"canRewind": True, "filesChanged": names, "insertions": lines[0], "deletions": lines[1]}
