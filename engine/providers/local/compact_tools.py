"""The few tools offered to a small model, in the simplest form, and their mapping to the real ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from tools.contract import JsonObject, ToolSpec


class CompactTool(Struct, frozen=True):
    """A tool whose arguments are all required texts."""

    name: str
    description: str
    parameters: tuple[str, ...]
    expand: Callable[[Mapping[str, str]], JsonObject]
    """Conversion from these arguments to those of the real tool."""


def _as_they_are(given: Mapping[str, str]) -> JsonObject:
    return dict(given)


_EVERYTHING = re.compile(r"/?(?:\*\*?)?(?:/\*)?/?$")


def _listing(given: Mapping[str, str]) -> JsonObject:
    """A folder, with or without `/**` behind it, goes as the path, everything else with a wildcard as the glob."""
    pattern = given["pattern"].strip()
    folder = _EVERYTHING.sub("", pattern)
    if folder in {"", ".", "./"}:
        return {}
    return {"glob": pattern} if re.search(r"[*?\[]", folder) else {"path": folder}


def _replacement(given: Mapping[str, str]) -> JsonObject:
    return {"path": given["path"], "edits": [{"op": "replace", "old": given["old"], "new": given["new"]}]}


COMPACT_TOOLS = (
    CompactTool(
        "bash", "run a shell command in the current directory: grep, find, git, tests", ("command",), _as_they_are
    ),
    CompactTool("read_file", "show one text file", ("path",), _as_they_are),
    CompactTool("list_files", "list file names; pattern is a glob, empty for all files", ("pattern",), _listing),
    CompactTool("write_file", "create a file or replace all of it", ("path", "content"), _as_they_are),
    CompactTool(
        "patch", "replace one exact piece of text in a file you have read", ("path", "old", "new"), _replacement
    ),
)


def offered(specs: Sequence[ToolSpec]) -> tuple[CompactTool, ...]:
    """Compact tools whose counterparts the conversation has."""
    names = {spec.name for spec in specs}
    return tuple(tool for tool in COMPACT_TOOLS if tool.name in names)


def compact_arguments(name: str, arguments: JsonObject) -> JsonObject:
    """A real call as the small model would have written it."""
    edits = arguments.get("edits")
    if name == "patch" and isinstance(edits, list) and len(edits) == 1 and isinstance(edits[0], dict):
        return {"path": arguments.get("path"), "old": edits[0].get("old"), "new": edits[0].get("new")}
    if name == "list_files":
        return {"pattern": arguments.get("glob") or arguments.get("path") or ""}
    return arguments
