"""Definitions of the tests' MCP server for a whole Phoenix."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.mcp_helper import ROOT

SERVER = {"command": sys.executable, "args": ["-m", "tests.support.mcp_kinds"], "env": {"PYTHONPATH": str(ROOT)}}


def servers_json(**servers: Any) -> str:
    """Text of an `.mcp.json`."""
    return json.dumps({"mcpServers": servers})


def write_servers(folder: Path, **servers: Any) -> Path:
    """`.mcp.json` of a folder."""
    path = folder / ".mcp.json"
    path.write_text(servers_json(**servers), "utf-8")
    return path
