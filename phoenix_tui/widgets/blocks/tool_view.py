"""A tool call in the form for the screen, built from a stored row or from updates."""

from __future__ import annotations

import json
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from engine.codec import CodecError, decode_display
from engine.machine.messages import ToolCall, ToolResult, ToolStatus, is_own_call
from engine.records import ToolCallRecord
from tools.call_titles import SERVER_TOOL, arguments_of, tool_label
from tools.clean import clean, clean_line, reveal_line
from tools.contract import AgentsDisplay, DiffDisplay, Display, JsonValue, TerminalDisplay
from tools.terminal.values import TextRun
from tools.wording import counted

LIVE_TAIL: Final = 8_192
"""Characters of live output kept for the rows under a running call."""
LONGEST: Final = 256 * 1024
"""Characters of an output that are shown; tools give at most 128 KB."""
QUICK_SECONDS: Final = 1.0
"""A read that took no longer is folded with its neighbours."""
_SUMMARIES: Final = ("command", "path", "file_path", "pattern", "query", "url", "prompt", "task", "task_description")
_FOLDABLE: Final = frozenset({"read_file", "list_files", "search", "keyword_search"})


class ToolView(Struct, frozen=True):
    """State of a call; texts are cleaned, the summary is revealed."""

    id: str
    name: str
    summary: str
    status: ToolStatus = ToolStatus.QUEUED
    tail: str = ""
    """The newest output while it runs."""
    runs: tuple[TextRun, ...] = ()
    """Coloured pieces of `tail`."""
    cursor: tuple[int, int] | None = None
    """Row and characters before the cursor of a running line of the user."""
    folder: str = ""
    """Folder of a running line of the user, where it is not the conversation's."""
    wants_screen: bool = False
    """True while a running line of the user needs the whole terminal."""
    reads_keys: bool = False
    """True while the whole terminal would suit it better."""
    text: str = ""
    """Text that the model read, where there is no display."""
    display: Display | None = None
    duration: float = 0.0
    since: float = 0.0
    """Monotonic start while it runs."""
    ended_processes: int = 0

    @property
    def label(self) -> str:
        """Name of the tool as its row shows it."""
        return tool_label(self.name)

    @property
    def is_own(self) -> bool:
        """True when the user ran it with `!`."""
        return is_own_call(self.id)

    def __post_init__(self) -> None:
        """Reveal the summary from any source: a row shows exactly the command."""
        force_setattr(self, "summary", reveal_line(self.summary))

    @property
    def output(self) -> str:
        """All its output as text, that of a running call as far as it is kept."""
        match self.display:
            case TerminalDisplay(output=shown) | DiffDisplay(diff=shown):
                return clean(shown)
            case _:
                return self.text or self.tail

    @property
    def folds_with_others(self) -> bool:
        """True for a quick, successful read that may share one row."""
        return self.name in _FOLDABLE and self.status is ToolStatus.SUCCESS and self.duration <= QUICK_SECONDS


def summary_of(input_json: str, name: str = "") -> str:
    """The one argument that describes a call: the command, the path, the pattern; all of them for an MCP tool."""
    if name.startswith(SERVER_TOOL):
        return arguments_of(input_json)
    try:
        arguments: JsonValue = json.loads(input_json or "{}")
    except (ValueError, RecursionError):
        return reveal_line(input_json)
    if not isinstance(arguments, dict):
        return reveal_line(input_json)
    if isinstance(tasks := arguments.get("tasks"), list):
        return _tasks_of(tasks)
    named = [value for key in _SUMMARIES if isinstance(value := arguments.get(key), str) and value]
    texts = named or [value for value in arguments.values() if isinstance(value, str)]
    return _one_line(texts[0]) if texts else ""


def _one_line(text: str) -> str:
    """A text on one row, its line ends as a sign, as in the question about it."""
    return reveal_line("\n".join(line.rstrip(" ") for line in text.strip(" \n").split("\n")))


def _tasks_of(tasks: list[JsonValue]) -> str:
    """Tasks that a call gives its sub-agents."""
    names = [name for one in tasks if isinstance(one, dict) and isinstance(name := one.get("task"), str)]
    count = counted(len(tasks), "sub-agent")
    return reveal_line(f"{count}: {' · '.join(names)}") if names else count


def queued_call(call: ToolCall) -> ToolView:
    """A call that the model has just made."""
    return ToolView(call.id, clean_line(call.name), summary_of(call.input_json, call.name))


def stored_call(record: ToolCallRecord) -> ToolView:
    """A call as the database has it."""
    return ToolView(
        record.tool_use_id,
        clean_line(record.name),
        summary_of(record.input_json, record.name),
        record.status,
        text=clean(shortened(record.output_text)),
        display=display_stored(record.display_json),
        duration=record.duration_ms / 1000,
    )


def display_of(result: ToolResult) -> Display | None:
    """The display of a call that has just ended; None where there is none or it cannot be read."""
    return AgentsDisplay(result.agents) if result.agents else display_stored(result.display_json)


def display_stored(display_json: str) -> Display | None:
    """A stored display; None where there is none or it cannot be read."""
    try:
        return decode_display(display_json)
    except CodecError:
        return None


def shortened(output: str, longest: int = LONGEST) -> str:
    """An output whose middle is left out where no tool gives as much: an imported one may have millions."""
    if len(output) <= longest:
        return output
    left_out = len(output) - longest
    return f"{output[: longest // 2]}\n… {left_out:,} characters are left out …\n{output[-longest // 2 :]}"


def with_output(view: ToolView, text: str) -> str:
    """The live tail after more output."""
    return (view.tail + clean(text[-4 * LIVE_TAIL :]))[-LIVE_TAIL:]
