"""The files that extend Phoenix in a run without a screen: what its first line and stderr say of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from engine.conversation import Conversation
from engine.ports.extensions import ExtensionSource
from phoenix_tui.cli.outcome import HostCommands
from phoenix_tui.cli.output import write_progress
from phoenix_tui.config.sources.kinds import SourceKind
from phoenix_tui.config.sources.source_trust import TrustedSources
from phoenix_tui.wiring.backend import Backend
from tools.contract import JsonObject, JsonValue

MOST_NAMED: Final = 3
_ALWAYS_NAMED: Final = frozenset({SourceKind.PROGRAM, SourceKind.SERVERS})
"""Kinds of files whose faults are named elsewhere."""


async def name_faults(found: TrustedSources, folder: Path) -> None:
    """Write faults of skills, commands, agents and rules to stderr, as such a run has no sheet."""
    if any(file.kind not in _ALWAYS_NAMED for file in found.files):
        for sentence in await asyncio.to_thread(_faults, found, folder):
            write_progress(f"phoenix: {sentence}")


def _faults(found: TrustedSources, folder: Path) -> list[str]:
    from phoenix_tui.config.sources.source_faults import shortened, source_faults  # noqa: PLC0415 - only with files

    return shortened(source_faults(found, folder), MOST_NAMED, "`phoenix doctor`")


async def extension_fields(backend: Backend, conversation: Conversation) -> JsonObject:
    """Fields of the init line: tools, commands, skills and agents that there are."""
    record, invocables = conversation.record, backend.invocables
    await invocables.look(record.cwd)
    commands = HostCommands(
        lambda: invocables.catalogue(record.cwd),
        lambda: invocables.offered(record.cwd),
        lambda: invocables.look(record.cwd),
    )
    offers: tuple[ExtensionSource, ...] = (invocables, backend.mcp)
    names = [*conversation.tool_names(), *(name for one in offers for name in one.tools(record))]
    tools: list[JsonValue] = [*dict.fromkeys(names)]
    agents: list[JsonValue] = [one.name for one in await asyncio.to_thread(backend.profiles.names, record.cwd)]
    own: JsonObject = {"agents": agents, "tools": tools}
    return commands.init_fields() | own
