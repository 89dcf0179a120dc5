"""MCP servers that a client names for a session, as definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acp.schema import HttpMcpServer, McpServerStdio, SseMcpServer


def tables_of(request: Any) -> Mapping[str, object]:
    """Definitions by name, as they would stand in `.mcp.json`; one of another transport gives a sentence later."""
    return {one.name: _table(one) for one in getattr(request, "mcp_servers", None) or ()}


def _table(server: Any) -> object:
    if isinstance(server, McpServerStdio):
        env = {one.name: one.value for one in server.env}
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": env}
    if isinstance(server, HttpMcpServer | SseMcpServer):
        headers = {one.name: one.value for one in server.headers}
        return {"type": server.type, "url": server.url, "headers": headers}
    return {"type": server.type}
