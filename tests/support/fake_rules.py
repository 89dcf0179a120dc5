"""The real rules over a list in memory and two tools that do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from engine.rule_store import RuleStore
from phoenix_tui.config.rules import RulesInMemory
from tools.contract import ToolClass, ToolSpec

NOW = 1_763_000_000.0


def named(name: str, tool_class: ToolClass) -> Any:
    return SimpleNamespace(spec=ToolSpec(name, "", {}, tool_class))


def rule_desk(opened: Mapping[str, object], kept: object | None = None) -> RuleStore:
    """Rules for good in `kept`, those of conversations in their `rules`."""
    tools = {"bash": named("bash", ToolClass.RUN), "write_file": named("write_file", ToolClass.EDIT)}
    clock = SimpleNamespace(now=lambda: NOW)
    ports = SimpleNamespace(rules=kept or RulesInMemory(), tools=tools, clock=clock)
    return RuleStore(cast("Any", ports), cast("Any", opened))
