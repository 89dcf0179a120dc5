"""MCP servers of a run without a screen: started first, named where they fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.ports.mcp import McpServers, ServerState, ServerView
from engine.records import ConversationRecord
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.output import write_progress
from phoenix_tui.text.server_text import cause_of, missing_words, state_words
from phoenix_tui.wiring.mcp import UNATTENDED_WAIT
from tools.clean import clean_line

TRY: Final = "`phoenix mcp test` connects to it and says why not"
REQUIRED_WAIT: Final = 30.0
"""Seconds for the connection of a server that a run cannot do without."""


async def started_servers(servers: McpServers, record: ConversationRecord) -> Sequence[ServerView]:
    """Start the servers of a run, waiting for those whose tools are not known yet; failures go to stderr.

    Raises:
        CommandError: a required server cannot connect.
    """
    for notice in await servers.notices(record):
        write_progress(f"phoenix: {clean_line(notice)}")
    views = await servers.views(record)
    if not any(view.state is ServerState.WAITING for view in views):
        return _told(views)
    is_required = any(view.is_required for view in views)
    unknown = any(view.state is ServerState.WAITING and not view.tools for view in views)
    seconds = REQUIRED_WAIT if is_required else UNATTENDED_WAIT if unknown else 0.0
    await servers.settle(record, seconds)
    return _told(await servers.views(record))


def _told(views: Sequence[ServerView]) -> Sequence[ServerView]:
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
