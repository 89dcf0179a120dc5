"""Definitions of the tests' MCP server for a whole Phoenix."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.forks import ROOT, shim_command

KINDS = "tests.support.mcp_kinds"

UNFORKED = {"command": sys.executable, "args": ["-m", KINDS], "env": {"PYTHONPATH": str(ROOT)}}
SERVER = {**UNFORKED, "args": list(shim_command(KINDS)[1:])}
"""The server as a fork, which a sandbox would not let reach the process that forks."""


def servers_json(**servers: Any) -> str:
    """Text of an `.mcp.json`."""
    return json.dumps({"mcpServers": servers})


def write_servers(folder: Path, **servers: Any) -> Path:
    """`.mcp.json` of a folder."""
    path = folder / ".mcp.json"
    path.write_text(servers_json(**servers), "utf-8")
    return path
