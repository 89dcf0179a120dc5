"""Lists of what a request contains beside the messages, for a host that asks about the window."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.context.estimate import text_tokens, tools_tokens
from engine.context.prompt import IMPORTED
from engine.executor.context_manager import SystemPrompt
from engine.ports.profiles import BUILT_IN, Profile
from phoenix_tui.cli.control.flags import SERVED
from tools.clean import clean_line, reveal_name
from tools.contract import JsonValue

MOST_LISTED: Final = 500
"""Entries of a list."""


def memory_files(prompt: SystemPrompt) -> list[JsonValue]:
    """Instruction files with their owner, by the tokens of each."""
    owners = {reveal_name(str(file.path)): file.owner for file in prompt.files}
    found = [(one.section.origin.partition(IMPORTED)[0], one) for one in prompt.sections if one.section.is_instructions]
    return [
        {"path": path, "type": owners[path].value, "tokens": one.tokens}
        for path, one in found[:MOST_LISTED]
        if path in owners
    ]


def mcp_tools(prompt: SystemPrompt) -> list[JsonValue]:
    """Tools of MCP servers whose definitions are sent."""
    served = [spec for spec in prompt.specs if spec.name.startswith(SERVED)]
    return [
        {
            "name": spec.name,
            "serverName": spec.name.removeprefix(SERVED).partition("__")[0],
            "tokens": tools_tokens([spec]),
            "isLoaded": True,
        }
        for spec in served[:MOST_LISTED]
    ]


def agent_types(profiles: Iterable[Profile]) -> list[JsonValue]:
    """Agents that the tools for sub-agents name."""
    return [
        {
            "agentType": profile.name,
            "source": clean_line(profile.source) if profile.source != BUILT_IN else "built-in",
            "tokens": text_tokens(profile.description),
        }
        for profile in list(profiles)[:MOST_LISTED]
    ]
