"""Start of the helper, for Phoenix: its command, and the reason why there is none."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
BOOT: Final = "import sys; sys.path.append(sys.argv.pop(1)); from tools.mcp_host.__main__ import main; main()"
"""Isolated (`-I`): no module comes from a working directory, and Phoenix's own folder is the last one searched."""


def missing() -> str:
    """A sentence on what to install; empty where the SDK is installed."""
    if find_spec("mcp") is not None:
        return ""
    return "MCP servers need the extra `mcp`: install phoenix-tui[mcp]."


def connecting_command(address: Path, spill: Path) -> tuple[str, ...]:
    """The helper that connects to a Unix socket, as a supervised program inherits no other descriptor."""
    return (sys.executable, "-I", "-c", BOOT, str(ROOT), "--connect", str(address), "--spill", str(spill))


def command(control: int, spill: Path) -> tuple[str, ...]:
    """The helper with the descriptor of its socket, which it must inherit, and its spill folder."""
    return (sys.executable, "-I", "-c", BOOT, str(ROOT), "--socket", str(control), "--spill", str(spill))
