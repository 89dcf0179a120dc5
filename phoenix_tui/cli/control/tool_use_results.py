"""Results of calls in a form for programs, beside the text that the model reads: the lines of a patch, the output."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct, field

from engine.codec import CodecError, decode_display
from engine.executor.call_arguments import parse_arguments
from engine.extensions.hooks.tool_responses import tool_response
from engine.machine.messages import ToolResult
from engine.updates import ToolEnded, ToolStarted, Update
from phoenix_tui.cli.control.names import foreign_call
from tools.contract import JsonObject, JsonValue, ToolInputError, ToolOutput

SHAPED: Final = frozenset({"Bash", "Read", "Write", "Edit", "MultiEdit"})
"""Tools whose results have a form of their own; of others the text says all."""
MOST_HELD: Final = 200
"""Calls whose results wait for their message."""


class ToolUseResults(Struct, eq=False):
    """The calls of one connection, from their begin to the message with their results."""

    cwd: Path
    _calls: dict[str, tuple[str, JsonObject]] = field(default_factory=dict[str, tuple[str, JsonObject]])
    """Name and input as hosts know them."""
    _results: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def follow(self, update: Update) -> None:
        """Take in an update of the conversation or of a sub-agent."""
        match update:
            case ToolStarted(call) if len(self._calls) < MOST_HELD:
                try:
                    name, given = foreign_call(call.name, parse_arguments(call.input_json), self.cwd)
                except ToolInputError:
                    return
                if name in SHAPED:
                    self._calls[call.id] = name, given
            case ToolEnded(result) if (known := self._calls.pop(result.call_id, None)) is not None:
                if len(self._results) < MOST_HELD:
                    self._results[result.call_id] = _shaped(*known, result)
            case _:
                pass

    def joined(self, line: JsonObject) -> JsonObject:
        """A `user` line with the result of its call; one with several results has room for none."""
        ids = _calls_of(line)
        found = [self._results.pop(one) for one in ids if one in self._results]
        return line | {"tool_use_result": found[0]} if len(ids) == 1 and found else line


def _shaped(name: str, given: JsonObject, result: ToolResult) -> JsonValue:
    if result.is_error:
        return f"Error: {result.text}"
    try:
        display = decode_display(result.display_json)
    except CodecError:
        display = None
    return tool_response(name, given, ToolOutput(result.text, display=display))


def _calls_of(line: JsonObject) -> list[str]:
    """Ids of the calls whose results a line has."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) and line.get("type") == "user" else None
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    return [str(one.get("tool_use_id")) for one in blocks if one.get("type") == "tool_result"]
