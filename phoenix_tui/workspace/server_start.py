"""Connects to MCP servers once the screen is idle, so that the first message has their tools."""

from __future__ import annotations

import asyncio
from typing import Final

from engine.api.errors import ENGINE_ERRORS
from phoenix_tui.commands.server_completions import server_record
from phoenix_tui.workspace.active_conversation import ActiveConversation

IDLE: Final = 0.3
"""Seconds without a key after which servers are started; a message starts them at once."""
MOST_LOOKS: Final = 10_000
"""Pauses that are waited for; whoever types on for an hour gets them with the message."""


async def start_servers(active: ActiveConversation) -> None:
    """Wait for a pause in typing, then start the servers of the conversation in view, and wait for none of them."""
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
    try:
        await servers.settle(server_record(active), 0.0)
    except ENGINE_ERRORS:
        return  # said when a message is sent
