"""Names of MCP tools as models call them, and the mark of a definition in rules."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from engine.ports.mcp import ServerDefinition

LONGEST: Final = 64
"""Characters of a tool name that every provider takes."""
_KEPT: Final = 55
_MARK: Final = 16
"""Hexadecimal digits of a mark."""
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """`mcp__SERVER__TOOL`, other characters as `_`; a longer name keeps 55 characters and gets a hash."""
    name = f"mcp__{_OTHER.sub('_', server)}__{_OTHER.sub('_', tool)}"
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()[:8]
    return f"{name[:_KEPT]}_{digest}"


def definition_mark(definition: ServerDefinition) -> str:
    """Mark of the program or address that a definition names, variables filled in: another one has another mark."""
    parts = (definition.transport, *definition.command, definition.cwd, definition.url, definition.origin.value)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
