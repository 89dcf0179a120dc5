"""Opens everything for one headless run and closes it again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.requests import EngineError, RunCaps
from engine.machine.messages import Origin, Role, ToolUseBlock
from engine.ports import ConversationChanges, OwnedElsewhere, StorageError
from engine.ports.extensions import ExtensionSource
from engine.ports.mcp import ServerState, ServerView
from engine.records import ConversationQuery, ConversationRecord, PermissionMode
from engine.run_options import Effort
from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.faults import end_quietly, fault_of
from phoenix_tui.cli.finding import find_one
from phoenix_tui.cli.headless import HeadlessRun, ImageFiles, StructuredAnswer
from phoenix_tui.cli.outcome import HostCommands, RunOutcome
from phoenix_tui.cli.output import write_json_line, write_progress
from phoenix_tui.cli.reporters import JsonReporter, Partials, Reporter, StreamReporter, TextReporter, server_frame
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.rules import without_effect
from phoenix_tui.config.sources.extension_files import SourceKind
from phoenix_tui.config.sources.project_sources import TrustedSources
from phoenix_tui.config.sources.report import report_of
from phoenix_tui.lifecycle.watchdogs import MemoryLimit
from phoenix_tui.text.server_text import cause_of, missing_words, state_words
from phoenix_tui.text.trust_text import warn_untrusted
from phoenix_tui.wiring.backend import Backend, Outside, open_backend
from phoenix_tui.wiring.copies import place_of_copy
from phoenix_tui.wiring.installation import remove_now, waits_on_stderr
from phoenix_tui.wiring.mcp import UNATTENDED_WAIT
from phoenix_tui.wiring.models import choose, full_reference
from phoenix_tui.wiring.providers import why_no_budget
from phoenix_tui.wiring.start_facts import caps_of, caps_with, choose_sandbox, describe_widened
from tools.clean import clean_line, reveal_name
from tools.contract import JsonObject, JsonValue, SandboxMode

if TYPE_CHECKING:
    from engine.extensions.mcp.hub import McpHub
    from engine.store.store import Store


MOST_NAMED: Final = 3
_ALWAYS_NAMED: Final = frozenset({SourceKind.PROGRAM, SourceKind.SERVERS})
"""Kinds of files whose faults are named elsewhere."""


def _faults(found: TrustedSources, folder: Path) -> list[str]:
    from phoenix_tui.config.sources.catalogues import shorten_faults, source_faults  # noqa: PLC0415 - only with files

    return shorten_faults(source_faults(found, folder), MOST_NAMED, "`phoenix doctor`")


async def extension_fields(backend: Backend, conversation: Conversation) -> JsonObject:
    """Fields of the init line: tools, commands, skills and agents that there are."""
    record, invocables = conversation.record, backend.invocables
    await invocables.look(record.cwd)
    commands = HostCommands(
        lambda: invocables.catalogue(record.cwd),
        lambda: invocables.list_offered(record.cwd),
        lambda: invocables.look(record.cwd),
    )
    offers: tuple[ExtensionSource, ...] = (invocables, backend.mcp)
    names = [*conversation.tool_names(), *(name for one in offers for name in one.tools(record))]
    tools: list[JsonValue] = [*dict.fromkeys(names)]
    agents: list[JsonValue] = [one.name for one in await asyncio.to_thread(backend.profiles.names, record.cwd)]
    own: JsonObject = {"agents": agents, "tools": tools}
    return commands.init_fields() | own


TRY: Final = "`phoenix mcp test` connects to it and says why not"
REQUIRED_WAIT: Final = 30.0
"""Seconds for the connection of a server that a run cannot do without."""


async def start_servers(servers: McpHub, record: ConversationRecord) -> Sequence[ServerView]:
    """Start the servers of a run, waiting for those whose tools are not known yet; failures go to stderr.

    Raises:
        CommandError: a required server cannot connect.
    """
    for notice in await servers.notices(record):
        write_progress(f"phoenix: {clean_line(notice)}")
    views = await servers.views(record)
    if not any(view.state is ServerState.WAITING for view in views):
        return _report_failures(views)
    is_required = any(view.is_required for view in views)
    unknown = any(view.state is ServerState.WAITING and not view.tools for view in views)
    seconds = REQUIRED_WAIT if is_required else UNATTENDED_WAIT if unknown else 0.0
    await servers.settle(record, seconds)
    return _report_failures(await servers.views(record))


def _report_failures(views: Sequence[ServerView]) -> Sequence[ServerView]:
    for view in views:
        if view.is_required and view.state is ServerState.CONNECTING:
            raise CommandError(f"{missing_words(view, REQUIRED_WAIT)}; {TRY}.", Exit.FAILED)
        if view.state in {ServerState.FAILED, ServerState.NEEDS_AUTH}:
            why = cause_of(view) if view.text else state_words(view)
            sentence = f"MCP server '{clean_line(view.name)}' is left out: {why}"
            if view.is_required:
                raise CommandError(f"{sentence.replace('is left out', 'is required and failed')}.", Exit.FAILED)
            write_progress(f"phoenix: {sentence.rstrip('.')}.")
    return views


PAGE: Final = 500
"""Messages that are read at a time."""
UNKNOWN: Final = (
    "There is no message {id} in this conversation; --resume-session-at takes the uuid of one of its frames."
)
TOO_MANY: Final = (
    "More than the turn of --resume-drops-turn comes after that message; leave it out to drop all that follows."
)


async def place_of(store: Store, conversation_id: str, message_id: str, *, one_turn: bool) -> int:
    """The seq up to which a conversation goes on; the results of a reply's calls belong to it.

    `one_turn`: at most one prompt of the user may come after it.

    Raises:
        CommandError: there is no such message, or more comes after it.
    """
    seq = await _seq_of(store, conversation_id, message_id)
    after = await store.messages(conversation_id, first_seq=seq, last_seq=seq + 1)
    has_calls = any(isinstance(block, ToolUseBlock) for message in after[:1] for block in message.blocks)
    if has_calls and len(after) > 1 and after[1].origin is Origin.TOOL:
        seq += 1
    if one_turn:
        rest = await store.messages(conversation_id, first_seq=seq + 1)
        if sum(message.role is Role.USER and message.origin is Origin.HUMAN for message in rest) > 1:
            raise CommandError(TOO_MANY)
    return seq


async def _seq_of(store: Store, conversation_id: str, message_id: str) -> int:
    first = 1
    while page := await store.messages(conversation_id, first_seq=first, last_seq=first + PAGE - 1):
        for message in page:
            if message.id == message_id:
                return message.seq
        first = page[-1].seq + 1
    raise CommandError(UNKNOWN.format(id=clean_line(message_id)[:60]))


async def run_headless(arguments: RunArguments, setup: Setup, prompt: str, images: ImageFiles) -> Exit:
    """One run from prompt to exit code.

    Raises:
        CommandError: it cannot begin, or not go on; the result says so to scripts.
    """
    outcome = RunOutcome(arguments.session_id or "", "")
    try:
        return await _run(arguments, setup, prompt, images, outcome)
    except BrokenPipeError:
        raise
    except Exception as error:  # the edge of a run: a script reads a result, whatever happened
        outcome.fault = fault_of(error)
        if arguments.output_format in {"json", "stream-json"}:
            write_json_line(outcome.result_object())
        raise outcome.fault from error


async def _run(arguments: RunArguments, setup: Setup, prompt: str, images: ImageFiles, outcome: RunOutcome) -> Exit:
    structured = StructuredAnswer(arguments.json_schema) if arguments.json_schema is not None else None
    outside = Outside((structured,)) if structured is not None else None
    backend = await open_backend(setup, os.environ, strict_guide=True, waits=waits_on_stderr(setup), outside=outside)
    try:
        conversation, caps, servers = await begin_run(backend, arguments, setup, outcome)
        reporter = await _reporter(arguments, backend, conversation, servers)
        limit, link = MemoryLimit.of(setup.settings), backend.processes.link
        run = HeadlessRun(
            backend.engine, conversation, reporter, outcome, arguments.wait_agents, link, limit, structured
        )
        ended = await run.perform(prompt, images, replace(caps, run_id=arguments.run_id or ""))
        if ended is Exit.OK:
            with suppress(EngineError, StorageError):  # off, or the messages wait
                await backend.engine.tasks.flush(conversation.id, earlier=False)
        return ended
    finally:
        await end_quietly(backend.close())


async def begin_run(
    backend: Backend, arguments: RunArguments, setup: Setup, outcome: RunOutcome
) -> tuple[Conversation, RunCaps, Sequence[ServerView]]:
    """Open the conversation of a run; gives its limits and its MCP servers, too. Raises CommandError."""
    conversation = await start_conversation(backend, arguments, setup)
    record = conversation.record
    caps = await limits_of_runs(backend, setup, record)
    outcome.session_id, outcome.model, outcome.describe = record.id, record.model, backend.providers.describe
    for said in filter(None, (backend.engine.warning, backend.notice, *without_effect(setup.allowed_tools))):
        write_progress(said)
    await name_untrusted(backend, setup, record.cwd)
    servers = await start_servers(backend.mcp, record)
    await remove_old_events(backend, setup)
    return conversation, caps, servers


async def remove_old_events(backend: Backend, setup: Setup) -> None:
    """Remove one slice of old events, which is more than a run adds: scripts alone keep the table small."""
    await remove_now(backend.events, setup.settings.number("event_retention_days"), most=1)


async def name_untrusted(backend: Backend, setup: Setup, cwd: Path) -> None:
    """Look at the files that extend Phoenix, once, and say on stderr which are left out, and which wrong."""
    try:
        found = await asyncio.to_thread(backend.sources.look, cwd)
    except OSError as error:
        raise CommandError(f"{reveal_name(cwd)} cannot be trusted: {error.strerror or error}.", Exit.FAILED) from error
    if found.waiting:
        write_progress(warn_untrusted(await asyncio.to_thread(report_of, found, cwd)))
    if any(file.kind not in _ALWAYS_NAMED for file in found.files):
        for sentence in await asyncio.to_thread(_faults, found, cwd):
            write_progress(f"phoenix: {sentence}")


async def check_ids(backend: Backend, arguments: RunArguments) -> None:
    """Refuse ids that are in use (SPEC SDK-01, SDK-03)."""
    ports, session_id, run_id = backend.engine.ports, arguments.session_id, arguments.run_id
    if session_id and await ports.store.conversation(session_id) is not None:
        raise CommandError(f"There is already a conversation {session_id}; continue it with -r, or give another id.")
    if run_id and ports.runs is not None and await ports.runs.is_taken(run_id):
        raise CommandError(f"There is already a run {run_id}; give another id.")


async def check_sandbox(backend: Backend, sandbox: SandboxMode, required: bool) -> None:
    """Refuse an unattended run with a chosen sandbox that cannot be enforced, since no question is possible (FAULTS
    72).
    """
    if sandbox is SandboxMode.OFF or not required:
        return
    support = await backend.processes.probe()
    if not support.sandbox:
        raise CommandError(
            f"{support.sandbox_sentence} Use --sandbox off, or a system where `phoenix doctor` finds a sandbox."
        )


async def start_conversation(backend: Backend, arguments: RunArguments, setup: Setup) -> Conversation:
    """Start the engine and open the conversation, once ids and sandbox are checked.

    Raises:
        CommandError: one of them cannot be.
    """
    if not arguments.resumes:
        await check_sandbox(backend, *choose_sandbox(setup.settings, setup.cwd))
    await backend.engine.start()
    await check_ids(backend, arguments)
    conversation = await open_conversation(backend, arguments, setup)
    await check_sandbox(backend, conversation.record.sandbox, conversation.record.sandbox_required)
    return conversation


async def open_conversation(backend: Backend, arguments: RunArguments, setup: Setup) -> Conversation:
    engine = backend.engine
    if not arguments.resumes:
        return await engine.create(await _options(backend, arguments, setup))
    if arguments.resume:
        found = await find_one(engine.ports.store, arguments.resume)
    else:
        latest = await engine.list(ConversationQuery(cwd=setup.cwd, limit=1))
        if not latest:
            raise CommandError(f"There is no conversation in {setup.cwd} yet; leave -c out to start one.")
        found = latest[0]
    conversation_id, place = found.id, await asyncio.to_thread(place_of_copy, arguments, setup, found)
    if arguments.resume_at:
        store, one_turn = engine.ports.store, arguments.drops_one_turn
        conversation = await engine.fork(
            conversation_id,
            await place_of(store, conversation_id, arguments.resume_at, one_turn=one_turn),
            place=place,
        )
    elif arguments.fork:
        conversation = await engine.fork(conversation_id, place=place)
    else:
        conversation = await engine.open(conversation_id)
        if conversation.read_only:
            record = conversation.record
            raise OwnedElsewhere(record.id, record.owner_pid or 0)
    mode = arguments.permission_mode
    model = await full_reference(arguments.model, backend.providers) if arguments.model else None
    changes = ConversationChanges(
        arguments.name,
        model=model,
        permission_mode=PermissionMode(mode) if mode else None,
        sandbox=SandboxMode(arguments.sandbox) if arguments.sandbox else None,
        effort=Effort(arguments.effort) if arguments.effort else None,
    )
    if wider := describe_widened(conversation.record, changes):
        write_progress(wider)
    await conversation.change(changes)
    return conversation


async def _options(backend: Backend, arguments: RunArguments, setup: Setup) -> ConversationOptions:
    settings = setup.settings
    choice = await choose(setup, os.environ, backend.models, backend.providers)
    if choice.is_guide and choice.waiting:
        raise CommandError(choice.waiting, Exit.CREDENTIALS)
    if choice.sentence:
        write_progress(choice.sentence)
    sandbox, required = choose_sandbox(settings, setup.cwd)
    return ConversationOptions(
        cwd=setup.cwd,
        model=choice.reference,
        title=arguments.name or "",
        permission_mode=PermissionMode(settings.text("permission_mode") or PermissionMode.DENY),
        profile=settings.text("profile"),
        system_prompt=arguments.system_prompt or "",
        append_system_prompt=settings.text("append_system_prompt"),
        supervisor=settings.flag("route"),
        sandbox=sandbox,
        sandbox_required=required,
        scripted=not arguments.name,
        id=arguments.session_id or "",
        effort=Effort(settings.text("effort")),
    )


async def limits_of_runs(backend: Backend, setup: Setup, record: ConversationRecord) -> RunCaps:
    """The limits of its profile hold in a conversation however it is opened."""
    caps, model = caps_with(setup, record.profile, record.cwd) or caps_of(setup.settings), record.model
    backend.providers.resolve(model)
    trouble = await why_no_budget(backend.providers, model)
    if caps.max_budget_usd and trouble:
        raise CommandError(trouble)
    return caps


async def _reporter(
    arguments: RunArguments, backend: Backend, conversation: Conversation, servers: Sequence[ServerView]
) -> Reporter:
    match arguments.output_format:
        case "json":
            return JsonReporter()
        case "stream-json":
            record = conversation.record
            partials = Partials(record.model) if arguments.include_partial_messages else None
            mode, sandbox = record.permission_mode.value, record.sandbox.value
            names = tuple(name for server in servers for name in server.tools)
            frames = tuple(server_frame(server) for server in servers)
            shown = record.id, record.cwd, record.model, mode, sandbox, names, partials, frames
            fields = await extension_fields(backend, conversation)
            return StreamReporter(*shown, hook_events=arguments.include_hook_events, fields=fields)
        case _:
            return TextReporter()
