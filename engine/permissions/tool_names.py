"""Tool names in permission rules: the class of a tool that is not there now, and the tools of MCP servers."""

from __future__ import annotations

import re
from typing import Final

from engine.permissions.hosts import NET
from tools.call_titles import SERVER_TOOL
from tools.contract import ToolClass

ANY: Final = "__*"
"""End of a rule's name that stands for every tool of one MCP server."""
READING: Final = (
    *("ask_user", "exit_plan", "todo_write", "skill", "tool_search"),
    *("list_mcp_resources", "read_mcp_resource"),
)
"""Tools of class read that open no files."""
WEB: Final = ("web_fetch", "web_search")
"""Tools of class net."""
CLASSES: Final = {**dict.fromkeys(READING, ToolClass.READ), **dict.fromkeys((*WEB, NET), ToolClass.NET)}
_SERVER_TOOLS: Final = re.compile(r"mcp__[A-Za-z0-9-][\w-]*__\*", re.ASCII)


def is_server_tool(name: str) -> bool:
    """True for the tool of an MCP server."""
    return name.startswith(SERVER_TOOL)


def class_named(name: str) -> ToolClass | None:
    """Class of the tools that the name in a rule means, although none of them is there now; None if unknown."""
    if is_server_tool(name):
        return ToolClass.RUN
    return CLASSES.get(name)


def why_no_name(name: str) -> str:
    """Reason why the name in a rule can mean no tool, in one sentence; empty where it can."""
    if "*" not in name or _SERVER_TOOLS.fullmatch(name):
        return ""
    return f"A tool name has * only as in {SERVER_TOOL}SERVER{ANY}, for every tool of one server."


def covers(named: str, tool: str, *, widely: bool = False) -> bool:
    """True if a name in a rule means `tool`.

    `mcp__a__*` means the tools of the server `a`. As the tool x of a server `a__b` is called `mcp__a__b__x`, a tool
    with `__` in its own name must be named whole; `widely`, for a rule that denies, it is meant all the same.
    """
    if not named.endswith(ANY):
        return named == tool
    own = tool.removeprefix(named[:-1])
    return own != tool and bool(own) and not why_no_name(named) and (widely or "__" not in own)
