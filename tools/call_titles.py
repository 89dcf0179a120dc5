"""Titles of calls for people: the tool once, then its arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tools.clean import reveal_line

if TYPE_CHECKING:
    from tools.contract import JsonObject, JsonValue

SERVER_TOOL: Final = "mcp__"
"""Beginning of the name of an MCP tool: `mcp__SERVER__TOOL`."""
_PLAIN: Final = re.compile(r"[^\s\"'=,]+")
"""A text that needs no quotes between other arguments."""
LONGEST: Final = 400
"""Characters of all arguments."""
LONGEST_READ: Final = 64 * 1024
"""Characters of JSON that are read for a title; of longer ones it shows the beginning."""
_MOST_NAMED: Final = 20
"""Arguments that a title names."""


def tool_label(name: str) -> str:
    """Name of a tool as a person reads it: `SERVER: TOOL` for one of an MCP server, any other as it is."""
    server, _, tool = name.removeprefix(SERVER_TOOL).partition("__")
    if not name.startswith(SERVER_TOOL) or not server:
        return name
    return f"{server}: {tool}" if tool else server


def call_title(name: str, input_json: str, summary: str = "", gap: str = " ") -> str:
    """Tool and summary of its request, which for an MCP tool is made of the arguments: its own begins with the tool."""
    words = arguments_of(input_json) if name.startswith(SERVER_TOOL) else summary
    return f"{tool_label(name)}{gap}{words}" if words and words != name else tool_label(name)


def arguments_of(input_json: str) -> str:
    """Arguments of a call of an MCP tool on one line, nothing hidden; the text itself where it is no object."""
    import json  # noqa: PLC0415 - not for the first frame

    try:
        args: JsonValue = json.loads(input_json or "{}") if len(input_json) <= LONGEST_READ else None
        words = show_arguments(args) if isinstance(args, dict) else input_json
    except (ValueError, RecursionError):
        words = input_json
    words = reveal_line(words[: LONGEST * 2])
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def show_arguments(args: JsonObject) -> str:
    """Arguments of an MCP tool on one line: the value of a single one, else `name=value` of each."""
    if len(args) == 1:
        (value,) = args.values()
        return value if isinstance(value, str) else _show_value(value)
    return " ".join(f"{key}={_show_value(value)}" for key, value in list(args.items())[:_MOST_NAMED])


def _show_value(value: JsonValue) -> str:
    import json  # noqa: PLC0415 - not for the first frame

    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
