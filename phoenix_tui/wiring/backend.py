"""Services behind a screen or a script: processes, store, tools, providers and the engine on top."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.context.input_guard import GuardAction
from engine.context.omissions import PruningRule
from engine.diagnostics import Diagnostics, DiagnosticsLevel
from engine.engine import Engine
from engine.executor.engine_settings import EngineSettings
from engine.executor.session import NEVER, Ports
from engine.extensions.mcp.hub import McpHub
from engine.memory.memory import Memory, NoteFolder
from engine.permissions.rules import RuleBook
from engine.ports.extensions import ExtensionSource, HookRunner
from engine.ports.files import CheckpointLimits, Folders
from engine.ports.profiles import Profiles
from engine.ports.storage import DatabaseWaits
from engine.rewind.rewind import Rewinding
from engine.rewind.snapshots.folders import SWITCHED_OFF, CheckpointFolders, NoFolders
from engine.rewind.turn_recorder import TurnRecorder
from engine.store import Store
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.claude_settings import ClaudeRules
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.instructions import Instructions
from phoenix_tui.config.paths import Paths
from phoenix_tui.config.profile_files import ProfileFiles
from phoenix_tui.config.rules import OnlyDenials, RuleFile, with_flags
from phoenix_tui.config.settings import Settings, WebSettings
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.features.language_server_board import LanguageServerBoard
from phoenix_tui.features.service_interfaces import Finding, Health
from phoenix_tui.lifecycle.watchdogs import MemoryLimit
from phoenix_tui.models.files import ModelFiles
from phoenix_tui.models.known import own_file
from phoenix_tui.models.offers import LISTS_FILE, KeptLists
from phoenix_tui.wiring.boards import DefaultModel, project_sources
from phoenix_tui.wiring.edit_services import FILE as ALLOWED
from phoenix_tui.wiring.edit_services import (
    AllowedFolders,
    UserFormatters,
    open_checks,
    read_allowed_folders,
)
from phoenix_tui.wiring.hooks import OpenedHooks, file_hooks
from phoenix_tui.wiring.installation import RandomIds, open_the_store, process_settings
from phoenix_tui.wiring.invocable_source import STATES, InvocableSource, SkillStates
from phoenix_tui.wiring.mcp import CACHE, CHOICES, FOLDER, TOKENS, keeps_in, open_hub
from phoenix_tui.wiring.profiles import AgentProfiles
from phoenix_tui.wiring.providers import ProviderRegistry, make_embedded_factory
from phoenix_tui.wiring.review_answers import ReviewAnswers
from phoenix_tui.wiring.trace_export import open_trace_export
from tools.clock import SYSTEM_CLOCK
from tools.contract import ProcessRunner, Tool
from tools.files.writing import ReadLedger
from tools.images.decoder import ImageDecoder
from tools.process.link import ZygoteLink
from tools.process.start import Processes, start_processes
from tools.registry import ToolDependencies, build_tools
from tools.web_pages import SearchService

if TYPE_CHECKING:
    from engine.store.events import EventLog
    from engine.store.library import Library


TOPIC = "web search"


def search_service(wanted: WebSettings | None, credentials: Credentials) -> SearchService | None:
    """The service, with its key; None where none is configured, or its key is missing."""
    if wanted is None or why_no_search(wanted, credentials):
        return None
    from tools.web.search_services import ConfiguredSearch  # noqa: PLC0415 - only where one is configured

    key = credentials.key(wanted.search, wanted.key_env) if wanted.key_env else ""
    return ConfiguredSearch(wanted.search, wanted.url, key)


def why_no_search(wanted: WebSettings, credentials: Credentials) -> str:
    """Reason why the configured service cannot be asked, in one sentence; empty where it can."""
    if not wanted.key_env or credentials.source(wanted.search, wanted.key_env):
        return ""
    return f"{wanted.search} has no key; set {wanted.key_env}"


def search_findings(wanted: WebSettings | None, credentials: Credentials) -> list[Finding]:
    """Describe what searches the web."""
    if wanted is None:
        return [Finding(TOPIC, Health.OK, "by Claude's own server where the model is Claude; [web] adds a service")]
    if why := why_no_search(wanted, credentials):
        return [Finding(TOPIC, Health.NOTE, why)]
    return [Finding(TOPIC, Health.OK, f"{wanted.search} at {wanted.url}")]


class Outside(Struct, frozen=True):
    """Parts of the engine that come from a host: tools, hooks and rules."""

    extensions: tuple[ExtensionSource, ...] = ()
    hooks: tuple[HookRunner, ...] = ()
    profiles_over: Callable[[Profiles], Profiles] = lambda profiles: profiles
    """Adds profiles to those of the user."""
    rules_over: Callable[[RuleBook], RuleBook] = lambda book: book
    """Adds rules to those of the user."""
    attended: bool = False
    """True where the host can be asked questions: its models may then ask the user."""
    leaves_out: Callable[[str], bool] = lambda _: False
    """True for tools that no model is given."""
    left_out: tuple[str, ...] = ()
    """Tools of servers, and servers as `mcp__SERVER`, that no model is given."""


class Backend(Struct, frozen=True):
    """Opened services; `close` ends all of them."""

    engine: Engine
    library: Library
    providers: ProviderRegistry
    models: ModelFiles
    processes: Processes
    profiles: AgentProfiles
    events: EventLog
    sources: ProjectSources
    hooks: OpenedHooks
    invocables: InvocableSource
    mcp: McpHub
    notice: str = ""
    """Sentence about something that is switched on and cannot work; empty without."""
    checks: LanguageServerBoard | None = None
    """Language servers; None where they are switched off."""

    async def close(self) -> None:
        """Stop every run, close the store, end every program; each, whatever happens to the others."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.end_programs)
            await self.engine.close()

    async def end_programs(self) -> None:
        """End every program: MCP servers first, which see the end of their input."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.processes.close)
            if self.checks is not None:
                stack.push_async_callback(self.checks.close)
            await self.mcp.close()


async def open_backend(
    setup: Setup,
    environment: Mapping[str, str],
    *,
    strict_guide: bool = False,
    link: ZygoteLink | None = None,
    patient: bool = False,
    waits: DatabaseWaits | None = None,
    outside: Outside | None = None,
) -> Backend:
    """Open everything for `setup`, and test a requested sandbox.

    `strict_guide`: in unattended runs no model names a conversation. `patient`: waits without end for a busy database.

    Raises:
        StorageError: the database cannot be opened.
        NoHelper: no process can be started.
    """
    processes = await start_processes(process_settings(setup, environment), link)
    async with AsyncExitStack() as stack:
        if link is None:
            stack.push_async_callback(processes.close)
        store = await open_the_store(setup.paths, ephemeral=setup.ephemeral, patient=patient, waits=waits)
        stack.push_async_callback(store.close)
        opened = await _backend(setup, environment, processes, store, outside, strict_guide=strict_guide)
        stack.pop_all()
    return opened


async def _backend(
    setup: Setup,
    environment: Mapping[str, str],
    processes: Processes,
    store: Store,
    outside: Outside | None,
    *,
    strict_guide: bool,
) -> Backend:
    """The engine and its services on top of processes and store."""
    paths = setup.paths
    models, registry = _models(setup, environment, processes.runner, strict_guide=strict_guide)
    images = ImageDecoder(processes.runner)
    trust, sources = TrustFile(paths.trust_file), project_sources(setup)
    profiles = AgentProfiles(ProfileFiles(paths.profiles, trust), sources)
    invocables = _invocables(setup, sources, processes.runner, attended=not strict_guide)
    keep = keeps_in(store)
    allowed = read_allowed_folders(setup)
    hub = open_hub(setup, environment, sources, processes, images, keep, unattended=strict_guide)
    export, notice = await open_trace_export(setup.settings, environment, store.trace_queue)
    ports = Ports(
        store=store,
        library=store.library,
        queue=store.queue,
        providers=registry,
        tools=_own_tools(setup, environment, processes, images, allowed),
        jobs=processes.jobs,
        images=images,
        rules=rules_of(setup, sources),
        clock=SYSTEM_CLOCK,
        ids=RandomIds(),
        rewinding=rewinding(store, paths, checkpoint_limits(setup.settings)),
        memory=Memory(NoteFolder(paths.memory), store.notes, setup.credentials),
        agents=store.agents,
        tasks=store.tasks,
        statistics=store.statistics,
        profiles=profiles,
        runs=store.runs,
        hooks=((hooks := file_hooks(setup, sources, processes.services, store)).runner,),
        extensions=(invocables, profiles, hub),  # the first looks at files, for the second too
        invocables=invocables,
        server_texts=hub.texts,
        probe=processes,
        trace_export=export,
        edit_checks=(checks := open_checks(setup, environment, processes, allowed)),
    )
    engine = _engine(ports, engine_settings(setup, sources, unwatched=strict_guide), outside)
    sources.closes = engine.rules.build_denied_test
    opened = engine, store.library, registry, models, processes, profiles
    return Backend(*opened, store.events, sources, hooks, invocables, hub, notice, checks)


def _own_tools(
    setup: Setup,
    environment: Mapping[str, str],
    processes: Processes,
    images: ImageDecoder,
    allowed: AllowedFolders,
) -> dict[str, Tool]:
    """Phoenix's own tools, by name."""
    paths = setup.paths
    return build_tools(
        ToolDependencies(
            processes.runner,
            processes.jobs,
            images,
            ReadLedger(),
            paths.outputs,
            search_service(setup.settings.web, setup.credentials),
            UserFormatters(paths.config_file, environment, processes, allowed),
        )
    )


def rules_of(setup: Setup, sources: ProjectSources) -> RuleBook:
    """The rules of the user's file, which a run that writes nothing keeps in memory, of settings files and of flags."""
    file = RuleFile(setup.paths.rules_file)
    book: RuleBook = file.in_memory() if setup.ephemeral else file
    if setup.files is not None and not setup.files.users:
        book = OnlyDenials(book)
    book = ClaudeRules(book, sources, counts_users=setup.files is None or setup.files.users)
    return with_flags(book, setup.allowed_tools, setup.denied_tools)


def _engine(ports: Ports, settings: EngineSettings, outside: Outside | None) -> Engine:
    if outside is None:
        reviews = (ReviewAnswers(),) if settings.attended else ()
        return Engine(replace(ports, extensions=(*ports.extensions, *reviews)), settings)
    rules = outside.rules_over(ports.rules)
    extensions, hooks = (*ports.extensions, *outside.extensions), (*ports.hooks, *outside.hooks)
    profiles = outside.profiles_over(ports.profiles) if ports.profiles is not None else None
    with_host = replace(ports, rules=rules, extensions=extensions, hooks=hooks, profiles=profiles)
    attended = settings.attended or outside.attended
    settings = replace(settings, attended=attended, left_out=outside.left_out, keeps_instructions=True)
    engine = Engine(with_host, settings)
    engine.leave_out(outside.leaves_out)
    return engine


def _invocables(setup: Setup, sources: ProjectSources, runner: ProcessRunner, *, attended: bool) -> InvocableSource:
    """Skills and command files; `attended`: a person can answer a question."""
    states = SkillStates(setup.paths.state / STATES, keeps=not setup.ephemeral)
    return InvocableSource(sources, states, runner, attended)


def _models(
    setup: Setup, environment: Mapping[str, str], runner: ProcessRunner, *, strict_guide: bool
) -> tuple[ModelFiles, ProviderRegistry]:
    files = model_files(setup.paths, runner, environment)
    embedded = make_embedded_factory(files, runner)
    lists = KeptLists(setup.paths.state / LISTS_FILE)
    state = None if setup.ephemeral else setup.paths.state
    return files, ProviderRegistry(setup.settings, setup.credentials, environment, embedded, strict_guide, lists, state)


def diagnostics_of(setup: Setup) -> Diagnostics:
    """Files for debugging, without the keys of this user."""
    level = DiagnosticsLevel(setup.settings.text("diagnostics"))
    return Diagnostics(setup.paths.log_file.parent, level, setup.credentials.secrets)


def engine_settings(setup: Setup, sources: ProjectSources, *, unwatched: bool) -> EngineSettings:
    """The numbers and choices of this setup that hold for every conversation."""
    paths, settings = setup.paths, setup.settings
    wants_tracking = settings.text("task_tracking") == "on" and not setup.ephemeral
    return EngineSettings(
        instructions=Instructions(setup.users_folder, sources.trust, sources),
        spills=(paths.outputs,),
        own=own_paths(paths, setup.cwd),
        home=Path.home(),
        sandbox_network=settings.flag("sandbox_network"),
        network=settings.network,
        diagnostics=None if setup.ephemeral else diagnostics_of(setup),
        history_turns=int(settings.number("history_turns")),
        input_guard=GuardAction(settings.text("input_guard")),
        sanitize_replies=settings.flag("sanitize_replies"),
        attended=not unwatched,
        may_defer=unwatched,
        memory=settings.flag("memory"),
        memory_flush=settings.flag("memory_flush") and not unwatched and not setup.ephemeral,
        auto_title=settings.flag("auto_title") and not unwatched,
        trace_verbose=settings.flag("trace_verbose"),
        turn_summaries=settings.flag("turn_summaries") and not unwatched and not setup.ephemeral,
        compact_percent=int(settings.number("compact_percent")) or NEVER,
        compact_after_runs=settings.flag("compact_after_runs") and not unwatched and not setup.ephemeral,
        compact_messages=int(settings.number("compact_messages")),
        pruning=_pruning(settings),
        summary_model=settings.text("summary_model"),
        summary_tokens=int(settings.number("summary_tokens")),
        summary_timeout=settings.number("summary_timeout"),
        max_agents=int(settings.number("max_agents")),
        agent_depth=int(settings.number("agent_depth")),
        agent_turns=int(settings.number("agent_turns")),
        agent_timeout=settings.number("agent_timeout"),
        agent_budget_usd=settings.number("agent_budget_usd"),
        budget_day_usd=settings.number("budget_day_usd"),
        budget_project_usd=settings.number("budget_project_usd"),
        cheap_model=cheap_model(settings),
        task_tracking=wants_tracking or (tracks_tasks(settings) and not unwatched and not setup.ephemeral),
        track_always=wants_tracking,
        track_tokens=int(settings.number("task_tracking_tokens")),
        task_criteria=settings.text("task_criteria"),
        memory_gauge=MemoryLimit.of(settings),
        route_wait=0.0 if unwatched else settings.number("route_wait"),
    )


def cheap_model(settings: Settings) -> str:
    """The setting as the engine has it: a reference, `AUTO`, or empty for none."""
    wanted = settings.text("cheap_model").strip()
    return "" if wanted == "off" else wanted


def tracks_tasks(settings: Settings) -> bool:
    """True where the task board may be kept: it costs tokens, so only by a cheap model, or where the user wants it."""
    wanted = settings.text("task_tracking")
    return wanted == "on" or (wanted == "auto" and bool(cheap_model(settings)))


def _pruning(settings: Settings) -> PruningRule:
    """The shares of the window from which old tool results are shortened and cleared; 0 per cent is never."""
    shorten, clear = (settings.number(name) / 100 for name in ("prune_percent", "clear_percent"))
    return PruningRule(shorten > 0, shorten, clear or NEVER)


def own_paths(paths: Paths, cwd: Path) -> tuple[Path, ...]:
    """Phoenix's settings, keys and records, resolved; its folders as a whole unless `cwd` is in them."""
    files = (
        paths.config_file,
        paths.credentials_file,
        paths.config / TOKENS,
        paths.config / CHOICES,
        paths.rules_file,
        paths.config / "hooks.json",
        paths.config / "trust.json",
        paths.trust_file,
        paths.config / ALLOWED,
        paths.keymap_file,
        *paths.prompt_files,
        paths.profiles,
        paths.themes,
        *(paths.database.with_name(f"{paths.database.name}{end}") for end in ("", "-journal", "-wal", "-shm")),
        paths.attachments,
        paths.data / "backups",
        paths.checkpoints.parent,
        paths.memory,
        paths.models,
        paths.state / "open",
        paths.locks,
        paths.placeholders,
        paths.state / STATES,
        paths.log_file.parent,
        paths.outputs,
        paths.state / FOLDER,
        paths.state / CACHE,
    )
    folders = (folder for folder in (paths.config, paths.data, paths.state) if not cwd.is_relative_to(folder.resolve()))
    return tuple(dict.fromkeys(path.resolve() for path in (*folders, *files)))


def checkpoint_limits(settings: Settings) -> CheckpointLimits:
    """Limits of the kept contents of files."""
    megabyte = 1024 * 1024
    most = int(settings.number("checkpoint_total_mb"))
    return CheckpointLimits(int(settings.number("checkpoint_file_mb")) * megabyte, most * megabyte)


def rewinding(store: Store, paths: Paths, limits: CheckpointLimits) -> Rewinding:
    """Going back, files too where anything is kept on disk."""
    kept = not store.warning and store.path == paths.database
    own = (paths.config, paths.data, paths.state)
    folders: Folders = NoFolders() if not kept else NoFolders(SWITCHED_OFF)
    if kept and limits.total:
        folders = CheckpointFolders(paths.checkpoints, own, limits)
    clock, ids = SYSTEM_CLOCK, RandomIds()
    return Rewinding(folders, store.turn_log, TurnRecorder(folders, store.turn_log, clock, ids), clock, ids)


def model_files(paths: Paths, runner: ProcessRunner, environment: Mapping[str, str]) -> ModelFiles:
    """The models of this machine, the file of PHOENIX_GGUF among them."""
    return ModelFiles(paths.models, runner, DefaultModel(paths.config_file), own=own_file(environment))
