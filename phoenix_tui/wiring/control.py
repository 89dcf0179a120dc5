"""Opens everything for one run that a host drives, and closes it again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Generator
from functools import partial

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.equipment import is_left_out
from engine.permissions.rules import RuleBook
from engine.ports import ConversationChanges, OwnedElsewhere
from engine.ports.extensions import ExtensionSource
from engine.records import ConversationRecord, PermissionMode
from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.control.approvals import HostApprovals, HostPermissions, PermissionUpdates, PromptTool, is_whole
from phoenix_tui.cli.control.connection import ControlConnection, FrameWriter, HostLines
from phoenix_tui.cli.control.extensions import HostAgents, HostHooks, HostPlugins, HostSchema, HostSkills
from phoenix_tui.cli.control.frames import EndOfInput, HostChannel, HostRequests
from phoenix_tui.cli.control.options import SERVED, STDIO, HostOptions, add_handshake
from phoenix_tui.cli.control.reporter import ControlReporter, ToolUseResults, native_tools
from phoenix_tui.cli.control.servers import HostQuestions, HostServers
from phoenix_tui.cli.control.session import ControlSession, InitPart, Inspection, McpRequests, SessionRequests
from phoenix_tui.cli.control.turns import Fallback, Turns
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.faults import end_quietly
from phoenix_tui.cli.headless import StructuredAnswer
from phoenix_tui.cli.outcome import HostCommands, RunOutcome
from phoenix_tui.cli.output import behind_the_loop, watch_reader, write_progress
from phoenix_tui.cli.reporters import Partials, StreamReporter
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.rules import folder_rules, split_list
from phoenix_tui.lifecycle.stop_signals import listen
from phoenix_tui.wiring.backend import Backend, Outside, open_backend
from phoenix_tui.wiring.headless import (
    limits_of_runs,
    name_untrusted,
    remove_old_events,
    start_conversation,
    start_servers,
)
from phoenix_tui.wiring.installation import waits_on_stderr
from phoenix_tui.wiring.models import full_reference
from tools.contract import JsonObject

SIGNALS = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.TERMINATED}
LAST_WORDS = 2.0
"""Seconds a reader gets for the last frames of a run that a signal stopped."""
PLAIN_PROMPT = "You are a helpful agent. You work in the folder {cwd} on {system}. Use the tools on offer."
"""System prompt of a host that asks for none."""


async def run_control(options: HostOptions, setup: Setup, plugins: HostPlugins) -> Exit:
    """Serve one host until it closes stdin.

    Raises:
        CommandError: it cannot begin; nothing was sent to a model.
        BrokenPipeError: the reader of stdout is gone; the run is stopped.
    """
    writer = FrameWriter()
    host = HostChannel(writer)
    connection = ControlConnection(host)
    loop = asyncio.get_running_loop()
    served = ControlRun(options, setup, plugins, host, connection, writer)
    writer.lost = served.stop
    with behind_the_loop(lambda: loop.call_soon_threadsafe(served.stop)) as written:
        HostLines(connection.take, ahead=options.ahead)
        with watch_reader(served.stop):
            code = await served.perform()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS if served.is_stopped else None):
                await written()
    return Exit.FAILED if connection.faults else code


class ControlRun:
    """One connection from its first line to its end."""

    def __init__(
        self,
        options: HostOptions,
        setup: Setup,
        plugins: HostPlugins,
        host: HostChannel,
        connection: ControlConnection,
        writer: FrameWriter,
    ) -> None:
        self._options = options
        self._plugins = plugins
        self._setup = setup
        self._host = host
        self._connection = connection
        self._writer = writer
        self._rules: HostPermissions | None = None
        self._stopped_by: Exit | None = None
        """The signal that came before the first turn could, as its exit code."""
        self._structured = StructuredAnswer(options.run.json_schema)
        self._hooks = HostHooks(host)
        self._agents = HostAgents(plugins.agents)
        self._servers = HostServers(host, options.in_host)
        self._turns: Turns | None = None

    @property
    def _sources(self) -> tuple[ExtensionSource, ...]:
        return self._structured, self._servers

    @property
    def is_stopped(self) -> bool:
        """True where a signal ended it."""
        return self._stopped_by is not None or (self._turns is not None and self._turns.stopped_by is not None)

    def stop(self) -> None:
        """Stop: stdout has lost its reader."""
        if self._turns is not None:
            self._turns.stop(Exit.FAILED)

    async def perform(self) -> Exit:
        """Open everything, serve the host, close everything."""
        with self._signals():
            async with self._open_conversation() as (backend, conversation):
                turns = await self._assemble(backend, conversation)
                if self._stopped_by is not None:
                    turns.stop(self._stopped_by)
                await name_untrusted(backend, self._setup, conversation.record.cwd)
                await remove_old_events(backend, self._setup)
                return await turns.perform()

    @contextlib.asynccontextmanager
    async def _open_conversation(self) -> AsyncGenerator[tuple[Backend, Conversation]]:
        setup = self._setup
        outside = Outside(
            self._sources,
            (self._hooks,),
            self._agents.over,
            attended=self._options.prompt_tool == STDIO,
            rules_over=self._rules_over,
            leaves_out=self._leaves_out,
            left_out=list_left_out(self._options),
        )
        backend = await open_backend(
            setup, os.environ, strict_guide=True, waits=waits_on_stderr(setup), outside=outside
        )
        try:
            conversation = await start_conversation(backend, *await self._choose_setup())
            for notice in filter(None, (backend.engine.warning, backend.notice)):
                write_progress(notice)
            yield backend, conversation
        except OwnedElsewhere as error:  # the flag has another name here
            raise CommandError(f"{error} Use --fork-session to continue in a copy.") from error
        finally:
            await end_quietly(backend.close())

    async def _choose_setup(self) -> tuple[RunArguments, Setup]:
        """The command line and the settings, with what the handshake says about a new conversation."""
        options, setup = self._options, self._setup
        if not options.run.resumes:
            options = add_handshake(options, await self._connection.first())
            setup = replace(setup, settings=options.append_prompts(setup.settings))
        prompt = options.run.system_prompt
        if prompt == "":
            prompt = PLAIN_PROMPT.format(cwd=setup.cwd, system=os.uname().sysname)
        return replace(options.run, system_prompt=prompt), setup

    async def _assemble(self, backend: Backend, conversation: Conversation) -> Turns:
        options, record = self._options, conversation.record
        caps = await limits_of_runs(backend, self._setup, record)
        run = self._options.run
        if not (run.permission_mode or run.resumes) and conversation.record.permission_mode is PermissionMode.DENY:
            await conversation.change(ConversationChanges(permission_mode=PermissionMode.ASK))
        asks = bool(options.prompt_tool)
        tool = PromptTool(options.prompt_tool, conversation, backend.mcp, self._servers)
        turns: Turns
        approvals = HostApprovals(
            conversation,
            self._host if options.prompt_tool == STDIO else tool,
            PermissionUpdates(self._own_rules, lambda mode: session.change_mode(mode), write_progress, record.cwd),
            lambda waits: turns.tell_waiting(waits),
            asks and not options.unasked,
        )
        find_model = partial(full_reference, providers=backend.providers)
        turns = Turns(
            backend.engine,
            conversation,
            self._reporter(record),
            approvals,
            RunOutcome(record.id, record.model, describe=backend.providers.describe),
            options,
            caps,
            self._structured,
            Fallback(options.fallback_model, find_model, write_progress),
            lambda: session.init_frame(),
            lambda: _ready(session, tool),
        )
        servers, commands = self._server_requests(backend, conversation), _commands(backend, record)
        session = ControlSession(
            conversation,
            turns,
            lambda: self._tools(backend, conversation),
            find_model,
            record.model,
            servers,
            commands,
            self._agents,
            (*self._parts(backend), servers),
            unasked=options.unasked,
            asks=asks,
            launch=self._launch,
        )
        self._agents.cwd = record.cwd
        self._servers.images, self._turns = backend.engine.ports.images, turns
        backend.mcp.asks.host = HostQuestions(self._host, backend.engine, turns.tell_waiting)
        self._open(session, Inspection(backend.engine, turns, self._agents), SessionRequests(turns, commands))
        return turns

    def _open(self, session: ControlSession, *more: Inspection | SessionRequests) -> None:
        """Answer the host's requests from now on."""
        handlers = {name: handle for part in (session, *more) for name, handle in part.handlers().items()}
        self._connection.open(HostRequests(self._writer, handlers), session.turns)

    def _parts(self, backend: Backend) -> tuple[InitPart, ...]:
        """The parts of the handshake beside commands and servers."""
        skills, schema = HostSkills(backend.invocables.offer), HostSchema(self._structured)
        return self._hooks, self._agents, self._plugins, skills, schema

    @property
    def _launch(self) -> JsonObject:
        """Fields of the handshake that counted at the launch; plugins only where each was found."""
        launch = self._options.launch
        return {name: launch[name] for name in launch if name != "plugins" or not self._plugins.errors}

    @property
    def _own_rules(self) -> HostPermissions:
        assert self._rules is not None, "the backend has asked for the rules"
        return self._rules

    def _reporter(self, record: ConversationRecord) -> ControlReporter:
        run = self._options.run
        partials = Partials(record.model) if run.include_partial_messages else None
        stream = StreamReporter(record.id, record.cwd, record.model, "", record.sandbox.value, (), partials)
        stream = replace(stream, hook_events=run.include_hook_events)
        return ControlReporter(self._writer, record.id, record.cwd, record.model, stream, ToolUseResults(record.cwd))

    def _server_requests(self, backend: Backend, conversation: Conversation) -> McpRequests:
        return McpRequests(
            self._servers,
            backend.mcp,
            conversation,
            lambda: start_servers(backend.mcp, conversation.record),
            os.environ,
        )

    def _tools(self, backend: Backend, conversation: Conversation) -> list[str]:
        """Names of the tools that the model is offered."""
        offers: tuple[ExtensionSource, ...] = (backend.invocables, backend.mcp, *self._sources)
        served = (name for one in offers for name in one.tools(conversation.record))
        gone = list_left_out(self._options)
        return [*conversation.tool_names(), *(name for name in served if not is_left_out(name, gone))]

    def _rules_over(self, book: RuleBook) -> RuleBook:
        self._rules = HostPermissions(book)
        for text in self._options.allowed:
            self._rules.allow(text)
        for text in self._options.disallowed:
            self._rules.deny(text)
        for text in self._options.asked:
            self._rules.ask(text)
        for folder in self._options.add_dirs:
            try:
                texts = folder_rules(folder, self._setup.cwd)
            except ValueError as error:
                write_progress(f"phoenix: --add-dir: {error}.")
                continue
            for text in texts:
                self._rules.allow(text)
        return self._rules

    def _leaves_out(self, tool: str) -> bool:
        options = self._options
        if any(is_whole(name) and tool in native_tools(name) for name in options.disallowed):
            return True
        if options.tools is None or options.tools == "default":
            return False
        return not any(tool in native_tools(name) for name in split_list(options.tools))

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        listen(loop, SIGNALS, lambda number: self._stop(SIGNALS[number]))
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _stop(self, code: Exit) -> None:
        if self._turns is not None:
            self._turns.stop(code)
        elif self._stopped_by is None:
            self._stopped_by = code
            self._connection.take(EndOfInput())


async def _ready(session: ControlSession, tool: PromptTool) -> str:
    """Wait until a turn may begin; returns why it cannot."""
    return await session.ready() or await tool.ready()


def list_left_out(options: HostOptions) -> tuple[str, ...]:
    """Tools of servers that no model is offered: those that are denied whole, and the one that is asked about calls."""
    denied = (name.strip() for name in options.disallowed if name.startswith(SERVED) and is_whole(name))
    return (*denied, *((options.prompt_tool,) if options.prompt_tool.startswith(SERVED) else ()))


def _commands(backend: Backend, record: ConversationRecord) -> HostCommands:
    """Skills and command files of the conversation's folder."""
    invocables = backend.invocables
    return HostCommands(
        partial(invocables.catalogue, record.cwd),
        partial(invocables.list_offered, record.cwd),
        partial(invocables.look, record.cwd),
    )
