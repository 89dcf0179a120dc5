"""The ACP SDK stays in `phoenix acp`: neither the screens nor `phoenix -p` load it."""

from __future__ import annotations

from tests.support.loading import loaded_by

FRONT_ENDS = "phoenix_tui.app phoenix_tui.wiring.screen phoenix_tui.wiring.linear phoenix_tui.wiring.headless"
STARTS = f"{FRONT_ENDS} phoenix_tui.wiring.acp"
OTHERS = """
import importlib, pkgutil
for package in ("phoenix_tui", "engine", "tools"):
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not found.name.startswith(("phoenix_tui.acp.", "tools.mcp_host.")) and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
"""


def test_no_front_end_loads_the_sdk_or_pydantic_at_its_start() -> None:
    loaded = loaded_by("\n".join(f"import {name}" for name in STARTS.split()))
    assert not loaded & {"acp", "pydantic"}


def test_no_module_outside_of_the_agent_loads_the_sdk() -> None:
    assert "acp" not in loaded_by(OTHERS)
