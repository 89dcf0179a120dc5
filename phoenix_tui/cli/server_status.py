"""MCP servers in the lines for scripts and hosts."""

from __future__ import annotations

from typing import Final

from engine.ports.mcp import ServerOrigin, ServerState, ServerView
from tools.contract import JsonObject

STATUS: Final = {
    ServerState.CONNECTED: "connected",
    ServerState.CONNECTING: "pending",
    ServerState.WAITING: "pending",
    ServerState.NEEDS_AUTH: "needs-auth",
    ServerState.FAILED: "failed",
    ServerState.OFF: "disabled",
}


def server_frame(view: ServerView) -> JsonObject:
    """Entry of a server in the first line of stream-json."""
    source = view.source if view.origin is not ServerOrigin.FLAG or view.source else "--mcp-config"
    return {"name": view.name, "status": STATUS[view.state], "source": source}
