"""Opens the database for each sub-command that needs nothing else. Each loads only its own code."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.ports import ImportTerms
from engine.store import Store
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.faults import end_quietly
from phoenix_tui.cli.setup import Setup
from phoenix_tui.wiring.installation import open_the_store, waits_on_stderr

# ruff: noqa: PLC0415 - one command, one import


async def conversations(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix conversations ...`."""
    from phoenix_tui.cli.conversations import ConversationCommands

    async def terms() -> ImportTerms:
        from phoenix_tui.wiring.model_commands import import_terms

        return await import_terms(setup, arguments)

    async with _open_store(setup) as store:
        return await ConversationCommands(store, store.library, store.agents, arguments, terms).run()


async def runs(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix runs ...`."""
    from phoenix_tui.cli.runs_command import RunCommands

    async with _open_store(setup) as store:
        return await RunCommands(store, store.runs, arguments).run()


async def events(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix events`."""
    from phoenix_tui.cli.runs_command import EventsCommand

    async with _open_store(setup) as store:
        return await EventsCommand(store, store.events, arguments).run()


async def tasks(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix tasks`."""
    from phoenix_tui.cli.stats_command import show_tasks
    from phoenix_tui.wiring.backend import tracks_tasks

    async with _open_store(setup) as store:
        return await show_tasks(store, store.tasks, arguments, by_setting=tracks_tasks(setup.settings))


async def trace(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix trace`."""
    from phoenix_tui.cli.runs_command import show_trace

    async with _open_store(setup) as store:
        return await show_trace(store, store.library.traces, arguments)


async def stats(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix stats`."""
    from phoenix_tui.cli.stats_command import run_stats

    async with _open_store(setup) as store:
        return await run_stats(store.statistics, arguments)


@asynccontextmanager
async def _open_store(setup: Setup) -> AsyncGenerator[Store]:
    store = await open_the_store(setup.paths, waits=waits_on_stderr(setup))
    try:
        yield store
    finally:
        await end_quietly(store.close())
