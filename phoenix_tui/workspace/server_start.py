"""Connects to MCP servers once the screen is idle, so that the first message has their tools; names required ones that
do not connect.
"""

from __future__ import annotations

import asyncio
from typing import Final

from engine.api.errors import ENGINE_ERRORS
from engine.ports.mcp import ServerState
from phoenix_tui.commands.completions import server_record
from phoenix_tui.text.server_text import missing_words
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.workspace.active_conversation import ActiveConversation

IDLE: Final = 0.3
"""Seconds without a key after which servers are started; a message starts them at once."""
PATIENCE: Final = 30.0
"""Seconds for the connection of a required server; no message waits for it."""
TRY: Final = "In /mcp Enter shows its log and r connects again."
MOST_LOOKS: Final = 10_000
"""Pauses that are waited for; whoever types on for an hour gets them with the message."""


async def start_servers(active: ActiveConversation, toasts: Notifier) -> None:
    """Wait for a pause in typing, then start the servers of the conversation in view; nothing else waits for them."""
    servers = active.services.mcp
    if servers is None:
        return
    answering = active.parts.dock.composer.answering
    left = IDLE
    for _ in range(MOST_LOOKS):
        await asyncio.sleep(left)
        left = IDLE - (answering.clock.monotonic() - answering.typed_at)
        if left <= 0:
            break
    record = server_record(active)
    try:
        await servers.settle(record, PATIENCE)
        views = await servers.views(record)
    except ENGINE_ERRORS:
        return  # said when a message is sent
    for view in views:
        if view.is_required and view.state in {ServerState.CONNECTING, ServerState.FAILED, ServerState.NEEDS_AUTH}:
            toasts.tell(f"{missing_words(view, PATIENCE)}. {TRY}", bad=True)
