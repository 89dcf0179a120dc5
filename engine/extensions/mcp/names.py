"""Names of MCP tools as models call them."""

from __future__ import annotations

import hashlib
import re
from typing import Final

LONGEST: Final = 64
"""Characters of a tool name that every provider takes."""
_KEPT: Final = 55
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """`mcp__SERVER__TOOL`, other characters as `_`; a longer name keeps 55 characters and gets a hash."""
    name = f"mcp__{_OTHER.sub('_', server)}__{_OTHER.sub('_', tool)}"
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()[:8]
    return f"{name[:_KEPT]}_{digest}"
