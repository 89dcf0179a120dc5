"""Opens the services of each sub-command, and no more."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

from engine.ports import ImportTerms, ProviderError
from engine.records import PermissionMode
from engine.rewind.snapshots.disabled import SWITCHED_OFF
from engine.rewind.snapshots.folders import use_of
from engine.store import expiring
from engine.store.opening import journal_mode, open_for_reading
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.conversations import ConversationCommands
from phoenix_tui.cli.doctor import machine_findings, report
from phoenix_tui.cli.events_command import EventsCommand
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.findings import Finding, Health
from phoenix_tui.cli.model_commands import ModelCommands, show_models
from phoenix_tui.cli.runs_command import RunCommands
from phoenix_tui.cli.setup import Setup, checked_folder
from phoenix_tui.cli.tasks_command import show_tasks
from phoenix_tui.cli.trace_command import show_trace
from phoenix_tui.config.settings import ConfigError, Settings
from phoenix_tui.lifecycle import memory_limit
from phoenix_tui.models.offers import LISTS_FILE, KeptLists, ProviderState
from phoenix_tui.text.checkpoint_text import use_in_words
from phoenix_tui.wiring.backend import (
    checkpoint_limits,
    diagnostics_of,
    model_files,
    open_the_store,
    process_settings,
    tracks_tasks,
)
from phoenix_tui.wiring.choice import choose
from phoenix_tui.wiring.expiring import cutoff as expires_before
from phoenix_tui.wiring.hook_board import hook_findings
from phoenix_tui.wiring.language_servers import language_server_findings
from phoenix_tui.wiring.mcp_commands import mcp_findings
from phoenix_tui.wiring.profile_board import profile_files, profile_findings
from phoenix_tui.wiring.providers import ProviderRegistry, embedded_factory
from phoenix_tui.wiring.settings_board import DefaultModel
from phoenix_tui.wiring.trace_export import export_findings
from phoenix_tui.wiring.trust_board import project_sources, source_findings
from phoenix_tui.wiring.update_watch import update_findings
from phoenix_tui.wiring.waits import waits_on_stderr
from phoenix_tui.wiring.web_search import search_findings
from phoenix_tui.wiring.worktree_findings import worktree_finding
from tools.contract import SandboxMode
from tools.process.start import Processes, start_processes
from tools.wording import counted

_CONVERSATIONS = "SELECT count(*) FROM conversations WHERE kind <> 'subagent'"


async def conversations(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix conversations ...`."""
    store = await open_the_store(setup.paths, waits=waits_on_stderr(setup))
    try:
        terms = partial(_import_terms, setup, arguments)
        return await ConversationCommands(store, store.library, store.agents, arguments, terms).run()
    finally:
        await store.close()


async def runs(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix runs ...`."""
    store = await open_the_store(setup.paths, waits=waits_on_stderr(setup))
    try:
        return await RunCommands(store, store.runs, arguments).run()
    finally:
        await store.close()


async def events(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix events`."""
    store = await open_the_store(setup.paths, waits=waits_on_stderr(setup))
    try:
        return await EventsCommand(store, store.events, arguments).run()
    finally:
        await store.close()


async def tasks(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix tasks`."""
    store = await open_the_store(setup.paths, waits=waits_on_stderr(setup))
    try:
        return await show_tasks(store, store.tasks, arguments, by_setting=tracks_tasks(setup.settings))
    finally:
        await store.close()


async def trace(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix trace`."""
    store = await open_the_store(setup.paths, waits=waits_on_stderr(setup))
    try:
        return await show_trace(store, store.library.traces, arguments)
    finally:
        await store.close()


async def _import_terms(setup: Setup, arguments: CommandArguments) -> ImportTerms:
    """The requested folder, else this one, and the settings of a new conversation of this user."""
    cwd = await asyncio.to_thread(checked_folder, Path(arguments.cwd or "."))
    mode = PermissionMode(setup.settings.text("permission_mode") or PermissionMode.ASK)
    async with _processes(setup) as processes:
        files = model_files(setup.paths, processes.runner, os.environ)
        registry = ProviderRegistry(
            setup.settings, setup.credentials, os.environ, embedded_factory(files, processes.runner)
        )
        try:
            reference = (await choose(setup, os.environ, files, registry)).reference
        except ProviderError as error:
            raise CommandError(error.message, Exit.FAILED) from error
        finally:
            await registry.close()
    return ImportTerms(cwd, reference, mode, SandboxMode(setup.settings.text("sandbox")))


async def models(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix models`."""
    async with _processes(setup) as processes:
        files = model_files(setup.paths, processes.runner, os.environ)
        embedded = embedded_factory(files, processes.runner)
        lists = KeptLists(setup.paths.state / LISTS_FILE)
        registry = ProviderRegistry(setup.settings, setup.credentials, os.environ, embedded, lists=lists)
        try:
            only = arguments.provider
            if only and only not in registry.names():
                raise CommandError(f"There is no provider '{only}'. The providers are {', '.join(registry.names())}.")
            default = (await choose(setup, os.environ, files, registry)).reference
            offers = await registry.offers(only, refresh=arguments.refresh)
            if only and (why := offers[0]).state is not ProviderState.READY:
                raise CommandError(f"{only}: {why.state.value}: {why.words}", Exit.FAILED)
            return show_models([one for each in offers for one in each.models], default, as_json=arguments.json)
        except ProviderError as error:
            raise CommandError(error.message, Exit.FAILED) from error
        finally:
            await registry.close()


async def model(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix model ...`."""
    async with _processes(setup) as processes:
        files = model_files(setup.paths, processes.runner, os.environ)
        try:
            return await ModelCommands(files, arguments, DefaultModel(setup.paths.config_file)).run()
        except (ConfigError, OSError) as error:
            raise CommandError(str(error), Exit.FAILED) from error


async def stats(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix stats`."""
    from phoenix_tui.cli.stats_command import run_stats  # noqa: PLC0415 - one command, one import

    store = await open_the_store(setup.paths, waits=waits_on_stderr(setup))
    try:
        return await run_stats(store.statistics, arguments)
    finally:
        await store.close()


async def doctor(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix doctor`."""
    if arguments.bundle is not None:
        from phoenix_tui.cli.bundle import bundle_parts, write_bundle  # noqa: PLC0415 - seldom asked for

        parts = bundle_parts(await findings(setup), setup.settings, diagnostics_of(setup))
        return write_bundle(parts, arguments)
    return report(await findings(setup), as_json=arguments.json)


async def findings(setup: Setup) -> list[Finding]:
    """Run all checks of the doctor."""
    found = await machine_findings(setup.paths, setup.credentials, os.environ)
    found += search_findings(setup.settings.web, setup.credentials)
    async with _processes(setup) as processes:
        support = await processes.probe()
        servers = await language_server_findings(setup, processes)
    found.append(Finding("processes", Health.OK, support.supervision_sentence))
    found.append(Finding("sandbox", Health.OK if support.sandbox else Health.NOTE, support.sandbox_sentence))
    found += profile_findings(profile_files(setup), setup.cwd)
    found += await asyncio.to_thread(_extensions, setup)
    found.append(await asyncio.to_thread(worktree_finding, setup.cwd))
    found += await mcp_findings(setup)
    found += servers
    found.append(_sub_agents(setup.settings))
    found.append(Finding("memory", Health.OK, memory_limit.in_words(memory_limit.MemoryLimit.of(setup.settings))))
    found.append(_checkpoints(setup))
    found.append(Finding("sqlite", Health.OK, f"{sqlite3.sqlite_version}, journal mode {journal_mode()}"))
    found.append(await asyncio.to_thread(_database, setup.paths.database))
    found += await asyncio.to_thread(export_findings, setup.settings, os.environ, setup.paths.database)
    found += await asyncio.to_thread(update_findings, setup.settings, os.environ)
    found += await asyncio.to_thread(_put_away, setup.paths.database, setup.settings.number("retention_days"))
    return found


def _checkpoints(setup: Setup) -> Finding:
    """Finding about the kept contents of files, and the settings of their limits."""
    limits = checkpoint_limits(setup.settings)
    if not limits.total:
        return Finding("checkpoints", Health.NOTE, SWITCHED_OFF)
    words = use_in_words(use_of(setup.paths.checkpoints, limits)).removeprefix("Checkpoints: ")
    return Finding("checkpoints", Health.OK, words)


def _extensions(setup: Setup) -> list[Finding]:
    sources = project_sources(setup, may_give=False)
    return [*source_findings(sources, setup.cwd), *hook_findings(sources, setup.cwd)]


def _sub_agents(settings: Settings) -> Finding:
    """The limits of sub-agents, and where they are changed."""
    at_once, turns = settings.number("max_agents"), settings.number("agent_turns")
    seconds, dollars = settings.number("agent_timeout"), settings.number("agent_budget_usd")
    if not settings.number("agent_depth"):
        return Finding("sub-agents", Health.OK, "off (agent_depth = 0)")
    budget = f"${dollars:g}" if dollars else "no budget"
    text = f"{at_once:g} at the same time, one level deep, {turns:g} model replies, {seconds:g} s and {budget} each"
    keys = "max_agents, agent_depth, agent_turns, agent_timeout, agent_budget_usd"
    return Finding("sub-agents", Health.OK, f"{text} ({keys})")


def _database(path: Path) -> Finding:
    if not path.exists():
        return Finding("database", Health.OK, f"{path} does not exist yet; the first conversation creates it")
    try:
        connection = open_for_reading(path)
        try:
            verdict = str(connection.execute("PRAGMA quick_check(3)").fetchone()[0])
            count = int(connection.execute(_CONVERSATIONS).fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error as error:
        return Finding("database", Health.BAD, f"{path}: {error}")
    if verdict != "ok":
        return Finding("database", Health.BAD, f"{path} is damaged: {verdict}")
    return Finding(
        "database", Health.OK, f"{path}, {path.stat().st_size / 1e6:.1f} MB, {counted(count, 'conversation')}, intact"
    )


def _put_away(path: Path, days: float) -> list[Finding]:
    """Finding about the contents of archive and trash, and their expiry."""
    try:
        with closing(open_for_reading(path)) as connection:
            found = expiring.put_away(connection, expires_before(days, time.time()))
    except sqlite3.Error:
        return []  # reported with the database itself
    if not found.count:
        return []
    size = f"{counted(found.count, 'conversation')} in archive and trash, {found.bytes / 1e6:.1f} MB"
    if not days:
        return [Finding("archive", Health.OK, f"{size}, kept forever; retention_days in config.toml changes that")]
    due = (
        f"{found.expired} of them will be deleted permanently at the next start"
        if found.expired
        else "none is due for deletion"
    )
    return [Finding("archive", Health.OK, f"{size}, kept for {days:g} days (retention_days); {due}")]


@asynccontextmanager
async def _processes(setup: Setup) -> AsyncGenerator[Processes]:
    processes = await start_processes(process_settings(setup, os.environ))
    try:
        yield processes
    finally:
        await processes.close()
