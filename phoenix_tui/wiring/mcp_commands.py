"""Opens the hub of MCP servers for `phoenix mcp` and the doctor."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

from engine.extensions.mcp.hub import McpHub
from engine.ports.mcp import FolderServers, SandboxReason, ServerOrigin, confinement
from engine.records import ConversationRecord, build_unstored_record
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.mcp_command import SIGNING, change_access, show_servers
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.credentials import KEYRING
from phoenix_tui.features.service_interfaces import Finding, Health
from phoenix_tui.text.server_text import sandbox_words
from phoenix_tui.wiring.boards import project_sources
from phoenix_tui.wiring.hooks import APART
from phoenix_tui.wiring.installation import process_settings
from phoenix_tui.wiring.mcp import MISSING, keep_nothing, open_hub, server_files
from phoenix_tui.wiring.start_facts import choose_sandbox
from tools.clean import clean_line, reveal_name
from tools.contract import Enforcement, SandboxMode
from tools.images.decoder import ImageDecoder
from tools.process.start import start_processes
from tools.wording import pluralize


async def mcp(setup: Setup, arguments: CommandArguments) -> Exit:
    """`phoenix mcp list`, `get`, `test`, `login` and `logout`."""
    async with _hub(setup) as hub:
        if arguments.action in SIGNING:
            return await change_access(hub, _record(setup), arguments)
        return await show_servers(hub, _record(setup), arguments)


@asynccontextmanager
async def _hub(setup: Setup) -> AsyncGenerator[McpHub]:
    processes = await start_processes(process_settings(setup, os.environ))
    sources = project_sources(setup, may_give=False)
    images = ImageDecoder(processes.runner)
    hub = open_hub(setup, os.environ, sources, processes, images, keep_nothing, unattended=True)
    try:
        yield hub
    finally:
        await hub.close()
        await processes.close()


def _record(setup: Setup) -> ConversationRecord:
    """A conversation of this folder that is not stored: its servers run as those of a new one would."""
    sandbox, required = choose_sandbox(setup.settings, setup.cwd)
    return build_unstored_record(setup.cwd, sandbox, required=required)


async def mcp_findings(setup: Setup, enforcement: Enforcement) -> list[Finding]:
    """Findings about the definitions of servers; none is started."""
    files = server_files(setup, os.environ, project_sources(setup, may_give=False))
    found = await asyncio.to_thread(files.look, Path(setup.cwd))
    sandboxes = _sandbox_findings(found, choose_sandbox(setup.settings, setup.cwd)[0], enforcement)
    return [*_findings(found), *sandboxes, *_tokens_finding(setup)]


def _sandbox_findings(found: FolderServers, mode: SandboxMode, enforcement: Enforcement) -> Iterator[Finding]:
    """The sandbox of each program, and why."""
    for one in found.servers:
        if one.is_enabled and not one.trouble and one.transport == "stdio":
            chosen, reason = confinement(one, mode, enforcement)
            is_open = chosen is SandboxMode.OFF or reason is SandboxReason.FILES_ONLY
            yield Finding(
                "mcp",
                Health.NOTE if is_open else Health.OK,
                f"{clean_line(one.name)}: sandbox {sandbox_words(chosen, reason)}",
            )


def _tokens_finding(setup: Setup) -> Iterator[Finding]:
    """Finding about the keyring, where tokens of servers are to be there."""
    if setup.credentials.mcp_tokens == KEYRING:
        is_there = find_spec(KEYRING) is not None
        words = "tokens of servers are in the keyring" if is_there else f"tokens of servers: {MISSING}"
        yield Finding("mcp", Health.OK if is_there else Health.BAD, words)


def _findings(found: FolderServers) -> list[Finding]:
    usable = [one for one in found.servers if one.is_enabled and not one.trouble]
    defined = f"{pluralize(len(usable), 'server')} defined; `phoenix mcp test` connects to them"
    rows = [Finding("mcp", Health.OK, defined if usable else "none defined")]
    rows += [Finding("mcp", Health.NOTE, clean_line(one.trouble)) for one in found.servers if one.trouble]
    own = [one for one in usable if one.transport == "stdio" and one.origin is not ServerOrigin.PROJECT and not one.cwd]
    if own:
        place = reveal_name(found.root) if found.trusted else APART
        rows.append(Finding("mcp", Health.OK, f"{pluralize(len(own), 'server')} of your own: started in {place}"))
    return [*rows, *(Finding("mcp", Health.NOTE, clean_line(notice)) for notice in found.notices)]
