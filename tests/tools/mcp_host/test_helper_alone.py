"""The SDK stays in the helper: neither the screen, nor `phoenix -p`, nor what the engine shares with it loads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.mcp_helper import ROOT
from tools.mcp_host.link import command, missing

SDK = {"mcp", "mcp_types", "starlette", "jsonschema", "referencing", "uvicorn", "jwt"}
FRONT_ENDS = "phoenix_tui.app phoenix_tui.wiring.screen phoenix_tui.wiring.linear phoenix_tui.wiring.headless"
SHARED = "tools.mcp_host.protocol tools.mcp_host.link"
EVERY_MODULE = """
import importlib, pkgutil, sys
for package in ("phoenix_tui", "engine", "tools"):
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not found.name.startswith("tools.mcp_host.") and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
"""


def loaded_by(program: str) -> set[str]:
    """Names of the packages that are loaded after a program ran."""
    program += "\nimport sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_front_ends_and_the_shared_protocol_load_neither_the_sdk_nor_pydantic() -> None:
    loaded = loaded_by("\n".join(f"import {name}" for name in f"{FRONT_ENDS} {SHARED}".split()))
    assert not loaded & (SDK | {"pydantic"})


def test_the_helper_needs_its_extra_and_no_module_of_the_working_directory(tmp_path: Path) -> None:
    assert missing() == ""
    for name in ("mcp", "tools", "asyncio", "argparse", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')")
    done = subprocess.run(
        [*command(3, tmp_path)[:5], "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "descriptor of the socket" in done.stdout
    program = "from tools.mcp_host import link; link.find_spec = lambda _: None; print(link.missing())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "MCP servers need the extra `mcp`: install phoenix-tui[mcp].\n"


def test_no_module_outside_of_the_helper_loads_the_sdk() -> None:
    """Functions included: import-linter reads their imports (pyproject.toml)."""
    assert not loaded_by(EVERY_MODULE) & SDK


def test_nothing_before_the_first_frame_loads_the_hub_of_servers() -> None:
    program = "import sys\nimport phoenix_tui.app, phoenix_tui.wiring.screen, phoenix_tui.cli.setup\n"
    program += "print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    hub = (
        "engine.extensions.mcp",
        "engine.ports.mcp",
        "tools.mcp_",
        "phoenix_tui.config.sources.server_files",
        "phoenix_tui.wiring.mcp",
    )
    assert [name for name in done.stdout.split() if name.startswith(hub)] == []
