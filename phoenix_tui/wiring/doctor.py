"""Opens the services of `phoenix doctor`, and runs its checks."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from engine.executor.engine_settings import AUTO
from engine.permissions.denials import denials_in
from engine.permissions.unreadable import build_closed_test
from engine.ports import DatabaseBusy, StorageError
from engine.providers.catalogue import find_small_model
from engine.rewind.snapshots.folders import SWITCHED_OFF, use_of
from engine.store.connection import sentence
from engine.store.opening import BUSY_AT_OPENING, check_file, check_kind, check_pages, journal_mode, open_for_reading
from engine.store.slices import count_put_away
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.doctor import machine_findings, report
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.instructions import instruction_faults
from phoenix_tui.config.settings import Settings
from phoenix_tui.features.service_interfaces import Finding, Health
from phoenix_tui.lifecycle import watchdogs
from phoenix_tui.models.choice import choose_model
from phoenix_tui.text.context_text import use_in_words
from phoenix_tui.text.trust_text import join_words
from phoenix_tui.wiring.backend import (
    cheap_model,
    checkpoint_limits,
    diagnostics_of,
    rules_of,
    search_findings,
    tracks_tasks,
)
from phoenix_tui.wiring.boards import project_sources, source_findings
from phoenix_tui.wiring.edit_services import language_server_findings
from phoenix_tui.wiring.hooks import hook_findings
from phoenix_tui.wiring.installation import command_processes
from phoenix_tui.wiring.installation import cutoff as expires_before
from phoenix_tui.wiring.mcp_commands import mcp_findings
from phoenix_tui.wiring.profiles import profile_files, profile_findings
from phoenix_tui.wiring.providers import DEFAULT_OPENAI_MODEL
from phoenix_tui.wiring.start_facts import facts_of
from phoenix_tui.wiring.trace_export import export_findings
from phoenix_tui.wiring.update_watch import update_findings
from tools.clean import clean_line, reveal_line
from tools.contract import Enforcement
from tools.git.checkouts import repository_of, worktrees
from tools.git.repository import GitFailure
from tools.mcp_host.link import missing
from tools.process.programs import find_program
from tools.process.supervision import NO_PROC, lacks_proc
from tools.process.usage import ProcessUsage, measure_tree
from tools.wording import pluralize

OWN_TERMINAL = "a line after ! runs in a terminal of its own"
NO_TERMINAL = "the system gives no terminal ({why}); a line after ! runs without one, and gets no keys"


def _terminals() -> Finding:
    try:
        pair = os.openpty()
    except OSError as error:
        why = error.strerror or "no reason given"
        return Finding("shell lines", Health.NOTE, NO_TERMINAL.format(why=why))
    for descriptor in pair:
        os.close(descriptor)
    return Finding("shell lines", Health.OK, OWN_TERMINAL)


TOPIC = "git worktree"


def worktree_finding(folder: Path) -> Finding:
    """Finding about git and the worktrees beside the repository of `folder`."""
    if not find_program("git", folder):
        return Finding(TOPIC, Health.NOTE, "no git in a folder of PATH that only you can write; --worktree needs one")
    try:
        found = worktrees(repository_of(folder))
    except GitFailure as failure:
        return Finding(TOPIC, Health.OK, f"not here: {failure}")
    left = [one.name for one in found if not one.complete]
    if left:
        text = f"{join_words(left)} left by a crash; /worktree NAME makes it anew, /worktree remove NAME removes it"
        return Finding(TOPIC, Health.NOTE, text)
    return Finding(TOPIC, Health.OK, f"{pluralize(len(found), 'worktree')} of this repository")


OTHERS: Final = " MCP servers and hooks of yours are not limited by host."
_CONVERSATIONS = "SELECT count(*) FROM conversations WHERE kind <> 'subagent'"


async def doctor(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix doctor`."""
    if arguments.bundle is not None:
        from phoenix_tui.cli.doctor import bundle_parts, write_bundle  # noqa: PLC0415 - seldom asked for

        parts = bundle_parts(await findings(setup), setup.settings, diagnostics_of(setup))
        return write_bundle(parts, arguments)
    return report(await findings(setup), as_json=arguments.json)


def network_sentence(enforcement: Enforcement, settings: Settings) -> str:
    """Hosts that sandboxed commands reach, in one sentence."""
    if not settings.flag("sandbox_network"):
        return "sandbox_network is off: no sandboxed command has network."
    if enforcement is not Enforcement.FULL:
        return "Commands cannot be limited to single hosts here; a yes for the network is one for all of it."
    hosts = settings.network
    if hosts is None:
        return f"Commands reach the hosts that you allow when they ask, by a proxy; mode auto has every host.{OTHERS}"
    return f"Sandboxed commands reach {', '.join(hosts) or 'no host'} without a question, through a proxy.{OTHERS}"


async def findings(setup: Setup) -> list[Finding]:
    """Run all checks of the doctor."""
    found = await machine_findings(setup.paths, setup.credentials, os.environ)
    found += search_findings(setup.settings.web, setup.credentials)
    async with command_processes(setup) as processes:
        support = await processes.probe()
        usage = await asyncio.to_thread(usage_findings, os.getpid())
        servers = await language_server_findings(setup, processes)
    if lacks_proc():
        found.append(Finding("processes", Health.BAD, f"No command can be started: {NO_PROC}."))
    else:
        found.append(Finding("processes", Health.OK, support.supervision_sentence))
    found.append(Finding("sandbox", Health.OK if support.guards_files else Health.NOTE, support.sandbox_sentence))
    found.append(Finding("hosts", Health.OK, network_sentence(support.enforcement, setup.settings)))
    found += profile_findings(profile_files(setup), setup.cwd)
    found += await asyncio.to_thread(_extensions, setup)
    found.append(await asyncio.to_thread(worktree_finding, setup.cwd))
    why = missing()
    helper = Finding("mcp helper", Health.NOTE if why else Health.OK, why or "can be started")
    found += [helper, _terminals()]
    found += await mcp_findings(setup, support.enforcement)
    found += servers
    found += [_background(setup), _sub_agents(setup.settings)]
    found.append(Finding("memory", Health.OK, watchdogs.in_words(watchdogs.MemoryLimit.of(setup.settings))))
    found += usage
    found.append(_checkpoints(setup))
    found.append(Finding("sqlite", Health.OK, f"{sqlite3.sqlite_version}, journal mode {journal_mode()}"))
    found.append(await asyncio.to_thread(_database, setup.paths.database))
    found += await asyncio.to_thread(export_findings, setup.settings, os.environ, setup.paths.database)
    found += await asyncio.to_thread(update_findings, setup.settings, os.environ)
    found += await asyncio.to_thread(_put_away, setup.paths.database, setup.settings.number("retention_days"))
    return found


MOST_PROCESSES: Final = 8
"""Processes that are named."""


def usage_findings(pid: int) -> list[Finding]:
    """CPU time and memory of a process, and of those that it started; none where the system does not tell."""
    found = measure_tree(pid)
    if not found:
        return [Finding("usage", Health.NOTE, "the system does not tell CPU time and memory of processes")]
    own, *started = found
    words = [Finding("usage", Health.OK, f"this process (pid {own.pid}): {_figures(own)}")]
    if started:
        cpu, memory = sum(one.cpu for one in started), sum(one.memory for one in started)
        named = [f"{clean_line(one.name)} (pid {one.pid}) {_figures(one)}" for one in started[:MOST_PROCESSES]]
        more = [f"{len(started) - MOST_PROCESSES} more"] if len(started) > MOST_PROCESSES else []
        total = (
            f"{pluralize(len(started), 'process', 'processes')} started by it: CPU {cpu:.1f} s, {memory / 1e6:.0f} MB"
        )
        words.append(Finding("usage", Health.OK, f"{total}: {'; '.join([*named, *more])}"))
    return words


def _figures(one: ProcessUsage) -> str:
    """Share of one CPU since its start, and memory."""
    return f"CPU {one.cpu:.1f} s ({100 * one.cpu / max(one.age, 0.1):.0f} % of one), {one.memory / 1e6:.0f} MB"


def _checkpoints(setup: Setup) -> Finding:
    """Finding about the kept contents of files, and the settings of their limits."""
    limits = checkpoint_limits(setup.settings)
    if not limits.total:
        return Finding("checkpoints", Health.NOTE, SWITCHED_OFF)
    words = use_in_words(use_of(setup.paths.checkpoints, limits)).removeprefix("Checkpoints: ")
    return Finding("checkpoints", Health.OK, words)


def _extensions(setup: Setup) -> list[Finding]:
    sources = project_sources(setup, may_give=False)
    found = [*source_findings(sources, setup.cwd), *hook_findings(sources, setup.cwd)]
    is_closed = build_closed_test(denials_in(rules_of(setup, sources), setup.cwd), setup.cwd)
    faults = instruction_faults(setup.paths.config, setup.cwd, sources.trust, is_closed)
    return [*found, *(Finding("instructions", Health.NOTE, reveal_line(fault)) for fault in faults)]


def _background(setup: Setup) -> Finding:
    """The model of titles, summaries and the task board, for the model of a new conversation."""
    keys = "cheap_model, task_tracking"
    model = choose_model(facts_of(setup, os.environ)).reference
    model = f"openai/{DEFAULT_OPENAI_MODEL}" if model == "openai" else model
    provider, _, name = model.partition("/")
    wanted = cheap_model(setup.settings)
    small = wanted if wanted != AUTO else find_small_model(name)
    if not small:
        text = f"{model} writes titles and summaries itself; the task board is off unless switched on ({keys})"
        return Finding("background", Health.OK, text)
    small = small if wanted != AUTO else f"{provider}/{small}"
    board = "titles, summaries and the task board" if tracks_tasks(setup.settings) else "titles and summaries"
    return Finding("background", Health.OK, f"{small} writes {board}, without thinking ({keys})")


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
        check_file(path)
        with closing(open_for_reading(path, BUSY_AT_OPENING)) as connection:
            check_kind(connection, path)
            check_pages(connection, path)
            count = int(connection.execute(_CONVERSATIONS).fetchone()[0])
        size = path.stat().st_size
    except (sqlite3.Error, OSError, StorageError) as error:
        fault = error if isinstance(error, StorageError) else sentence(error, path)
        return Finding("database", Health.NOTE if isinstance(fault, DatabaseBusy) else Health.BAD, str(fault))
    counted = f"{pluralize(count, 'conversation')} (those of scripts, archive and trash included)"
    return Finding("database", Health.OK, f"{path}, {size / 1e6:.1f} MB, {counted}, intact")


def _put_away(path: Path, days: float) -> list[Finding]:
    """Finding about the contents of archive and trash, and their expiry."""
    try:
        with closing(open_for_reading(path, BUSY_AT_OPENING)) as connection:
            found = count_put_away(connection, expires_before(days, time.time()))
    except sqlite3.Error:
        return []  # reported with the database itself
    if not found.count:
        return []
    size = f"{pluralize(found.count, 'conversation')} in archive and trash, {found.bytes / 1e6:.1f} MB"
    if not days:
        return [Finding("archive", Health.OK, f"{size}, kept forever; retention_days in config.toml changes that")]
    due = (
        f"{found.expired} of them will be deleted permanently at the next start"
        if found.expired
        else "none is due for deletion"
    )
    return [Finding("archive", Health.OK, f"{size}, kept for {days:g} days (retention_days); {due}")]
