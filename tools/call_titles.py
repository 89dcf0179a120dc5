"""Titles of calls for people: the tool once, then its arguments."""

from __future__ import annotations

import json
import re
from typing import Final

from tools.contract import JsonObject, JsonValue

SERVER_TOOL: Final = "mcp__"
"""Beginning of the name of an MCP tool: `mcp__SERVER__TOOL`."""
_PLAIN: Final = re.compile(r"[^\s\"'=,]+")
"""A text that needs no quotes between other arguments."""
_MOST_NAMED: Final = 20
"""Arguments that a title names."""


def tool_label(name: str) -> str:
    """Name of a tool as a person reads it: `SERVER: TOOL` for one of an MCP server, any other as it is."""
    server, _, tool = name.removeprefix(SERVER_TOOL).partition("__")
    if not name.startswith(SERVER_TOOL) or not server:
        return name
    return f"{server}: {tool}" if tool else server


def call_title(name: str, summary: str = "", gap: str = " ") -> str:
    """Tool and summary of its request; the summary of an MCP tool begins with server and tool already."""
    if summary and name.startswith(SERVER_TOOL):
        return summary
    return f"{tool_label(name)}{gap}{summary}" if summary and summary != name else tool_label(name)


def named_arguments(args: JsonObject) -> str:
    """Arguments of an MCP tool on one line: the value of a single one, else `name=value` of each."""
    if len(args) == 1:
        (value,) = args.values()
        return value if isinstance(value, str) else _shown(value)
    return " ".join(f"{key}={_shown(value)}" for key, value in list(args.items())[:_MOST_NAMED])


def _shown(value: JsonValue) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
