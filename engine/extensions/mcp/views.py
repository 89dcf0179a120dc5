"""Servers of a conversation as front ends see them."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from engine.extensions.mcp.connection import ServerConnection
from engine.extensions.mcp.hub_texts import usages
from engine.extensions.mcp.offering import CHARACTERS_A_TOKEN, Offered
from engine.ports.mcp import ServerDefinition, ServerState, ServerView

OFF_FOR_GOOD: Final = "switched off for good"
OFF_HERE: Final = "switched off in this conversation"


def view_of(
    definition: ServerDefinition, server: ServerConnection | None, offered: Offered, *, is_on: bool, deferred: Set[str]
) -> ServerView:
    """One server; `server` is None where it is not used."""
    if server is None:
        state = ServerState.FAILED if definition.trouble and is_on else ServerState.OFF
        text = definition.trouble or (OFF_HERE if definition.is_enabled else "enabled = false")
        if definition.is_off:
            state, text = ServerState.OFF, OFF_FOR_GOOD
        return ServerView(
            definition.name,
            state,
            text,
            definition.source,
            definition.origin,
            definition.transport,
            definition.shown,
            is_required=definition.is_required,
            samples=definition.samples,
            is_on=is_on,
            secrets=definition.secrets,
            is_off=definition.is_off,
        )
    catalogue = server.catalogue
    sent = [one for one in offered.tools if one.spec.name not in deferred]
    said = catalogue.instructions if catalogue is not None else ""
    return ServerView(
        definition.name,
        server.state,
        server.text,
        definition.source,
        definition.origin,
        definition.transport,
        definition.shown,
        tools=tuple(one.spec.name for one in offered.tools),
        left_out=(*offered.left_out, *(f"{one.name}: {one.reason}" for one in server.left_out)),
        prompts=usages(definition.name, catalogue) if catalogue is not None else (),
        instructions=said,
        tokens=sum(one.tokens for one in sent) + len(said) // CHARACTERS_A_TOKEN,
        deferred=len(offered.tools) - len(sent),
        pid=server.pid,
        last_ms=server.last_ms,
        is_required=definition.is_required,
        samples=definition.samples,
        sandbox=server.sandbox,
        sandbox_reason=server.sandbox_reason,
        has_network=server.has_network,
        kept=server.kept if server.is_confined else None,
        folder=str(server.start_in or definition.cwd or server.root) if definition.transport == "stdio" else "",
    )
