"""Results of tools in the shapes that hooks written for Claude Code read."""

from __future__ import annotations

import re
from typing import Final

from tools.contract import DiffDisplay, JsonObject, JsonValue, TerminalDisplay, ToolOutput

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NUMBERED: Final = re.compile(r"^ *(\d+)[|:\t](.*)$", re.MULTILINE)
"""A line as `read_file` prints it: its number and its text."""


def tool_response(foreign: str, given: JsonObject, output: ToolOutput, original: str | None = None) -> JsonValue:
    """The result of a call under its foreign name and input; other tools give their text. `original` is the text of an
    edited file before.
    """
    if foreign == "Bash":
        return _bash(output)
    if foreign == "Read" and not output.images:
        return _read(given, output)
    if foreign in {"Edit", "MultiEdit"}:
        return _edit(given, output, original)
    if foreign == "Write":
        created = isinstance(output.display, DiffDisplay) and output.display.created
        kind = "create" if created else "update"
        return {"type": kind, "filePath": given.get("file_path"), "content": given.get("content")}
    return {"content": [{"type": "text", "text": output.text}]}


def _bash(output: ToolOutput) -> JsonObject:
    shown = output.display
    text = shown.output if isinstance(shown, TerminalDisplay) else output.text
    return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}


def _read(given: JsonObject, output: ToolOutput) -> JsonObject:
    lines = _NUMBERED.findall(output.text)
    offset = given.get("offset")
    start = int(lines[0][0]) if lines else offset if isinstance(offset, int) else 1
    count = len(lines) or output.text.count("\n") + 1
    return {
        "type": "text",
        "file": {
            "filePath": given.get("file_path"),
            "content": "\n".join(text for _, text in lines) if lines else output.text,
            "numLines": count,
            "startLine": start,
            "totalLines": max(count, int(lines[-1][0]) if lines else 0),
        },
    }


def _edit(given: JsonObject, output: ToolOutput, original: str | None) -> JsonObject:
    edits = given.get("edits")
    first = edits[0] if isinstance(edits, list) and edits and isinstance(edits[0], dict) else given
    diff = output.display.diff if isinstance(output.display, DiffDisplay) else ""
    return {
        "filePath": given.get("file_path"),
        "oldString": first.get("old_string"),
        "newString": first.get("new_string"),
        "originalFile": original,
        "structuredPatch": _hunks(diff),
        "userModified": False,
        "replaceAll": False,
    }


def _hunks(diff: str) -> list[JsonValue]:
    hunks: list[JsonValue] = []
    lines: list[JsonValue] = []
    for line in diff.splitlines():
        if found := _HUNK.match(line):
            lines = []
            old, old_lines, new, new_lines = (int(number) if number else 1 for number in found.groups())
            hunk: JsonObject = {"oldStart": old, "oldLines": old_lines, "newStart": new, "newLines": new_lines}
            hunk["lines"] = lines
            hunks.append(hunk)
        elif hunks:
            lines.append(line)
    return hunks
