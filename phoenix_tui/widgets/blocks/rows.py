"""Values and common elements of blocks: a tool call to show, bars, rows with a right end, durations, counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import force_setattr

from engine.codec import CodecError, decode_display
from engine.machine.messages import UNSENT_CALL, ToolCall, ToolResult, ToolStatus, is_own_call
from engine.machine.texts import (
    ALLOWED_BY,
    ALLOWED_EVERYWHERE,
    ALLOWED_HERE,
    ALLOWED_IN_PROJECT,
    ALLOWED_ONCE,
    denial_words,
)
from engine.records import ToolCallRecord
from phoenix_tui.markdown.code import plain_rows
from phoenix_tui.markdown.lines import (
    LOOKED_AT,
    MARGIN,
    PLAIN,
    QUIET,
    TEXT_COLUMN,
    Span,
    StyledLine,
    TextStyle,
    breaks,
    cut_middle,
    ellipsize,
    spans_width,
)
from phoenix_tui.text.agent_text import SUBMISSIONS
from tools.call_titles import SERVER_TOOL, arguments_of, tool_label
from tools.clean import clean, clean_line, reveal_line
from tools.contract import AgentsDisplay, DiffDisplay, Display, ImageDisplay, JsonValue, TerminalDisplay
from tools.terminal.values import TextRun
from tools.wording import one_line, pluralize

BAR = Span("│ ", QUIET)
INDENT = Span(" " * MARGIN)
_TENTHS_BELOW = 9.95
"""Seconds up to which tenths are shown."""


def column(width: int) -> int:
    """The cells a block takes of a screen of `width`, margin included."""
    return max(min(width, TEXT_COLUMN + MARGIN), 10)


def duration_text(seconds: float) -> str:
    """A duration as a row shows it: 0.4s, 12s, 2m 05s, 1h 02m."""
    if seconds < _TENTHS_BELOW:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02}m"


def draw_row(
    mark: Span,
    name: str,
    text: str,
    right: str,
    width: int,
    *,
    action: str = "",
    look: TextStyle = PLAIN,
    is_path: bool = False,
) -> StyledLine:
    """One row: glyph, bold name, text cut to the remaining room, and `right` flush with the column's end.

    Of a path the middle goes, as its end names the file.
    """
    room = column(width) - MARGIN
    spans = [INDENT, mark, Span(" ", PLAIN)]
    if name:
        spans.append(Span(ellipsize(name, max(room // 2, 4)), look._replace(bold=True)))
        spans.append(Span("  "))
    free = room + MARGIN - spans_width(spans) - (len(right) + 2 if right else 0)
    spans.append(Span((cut_middle if is_path else ellipsize)(text, max(free, 0)), look))
    if right and free >= 0:
        gap = column(width) - spans_width(spans) - len(right)
        spans.extend((Span(" " * gap), Span(right, QUIET)))
    return StyledLine(tuple(span._replace(action=action) for span in spans) if action else tuple(spans))


def bar_lines(texts: Iterable[str], width: int, look: TextStyle = QUIET) -> list[StyledLine]:
    """Lines of output under a bar, each cut to one row."""
    room = column(width) - MARGIN - 2
    return [
        StyledLine((INDENT, BAR, Span(ellipsize(text.expandtabs(4), room), look)), margin=MARGIN + 2) for text in texts
    ]


def bar_sentence(text: str, width: int, most: int) -> Iterator[StyledLine]:
    """One line of output under a bar, wrapped to `most` rows at most; the last of them is cut where there is more."""
    room = column(width) - MARGIN - 2
    shown = text[:LOOKED_AT].expandtabs(4)
    rows = breaks(shown, room)
    for place, (start, end, joint) in enumerate(rows[:most], start=1):
        piece = ellipsize(shown[start:], room) if place == most < len(rows) else shown[start:end]
        yield StyledLine((INDENT, BAR, Span(piece, QUIET)), joint, MARGIN + 2)


def bar_whole(text: str, width: int, look: TextStyle = PLAIN) -> Iterator[StyledLine]:
    """Output under a bar, wrapped, nothing cut."""
    for _, shown, joint in plain_rows(text, column(width) - MARGIN - 2, hard=True):
        yield StyledLine((INDENT, BAR, Span(shown, look)), joint, MARGIN + 2)


def quiet_note(mark: str, text: str, width: int, *, look: TextStyle = QUIET) -> Iterator[StyledLine]:
    """A note in one look: a mark, then text wrapped with a hanging indent."""
    start = lead = f"{mark} "
    for _, shown, joint in plain_rows(text, column(width) - MARGIN - len(lead)):
        yield StyledLine((INDENT, Span(start, look), Span(shown, look)), joint)
        start = " " * len(lead)


def output_lines(text: str) -> Sequence[str]:
    """The lines of an output without blank ones at its end."""
    return text.rstrip().split("\n") if text.strip() else ()


LIVE_TAIL: Final = 8_192
"""Characters of live output kept for the rows under a running call."""
LONGEST: Final = 256 * 1024
"""Characters of an output that are shown; tools give at most 128 KB."""
QUICK_SECONDS: Final = 1.0
"""A read that took no longer is folded with its neighbours."""
_SUMMARIES: Final = ("command", "path", "file_path", "pattern", "query", "url", "prompt", "task", "task_description")
UNSETTLED: Final = frozenset({ToolStatus.QUEUED, ToolStatus.AWAITING_APPROVAL, ToolStatus.RUNNING})
"""States of calls that have not ended."""
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
    pid: int = 0
    """First process of a running command; 0 where it is not known."""
    usage: str = ""
    """CPU and memory of a command that runs for some seconds."""
    allowed: str = ""
    """The yes of the user, of a mode or of a rule that answered its question."""

    @property
    def label(self) -> str:
        return tool_label(self.name)

    @property
    def denied(self) -> str:
        """Words about a call that the user denied; empty for any other."""
        return denial_words(self.text, self.name) if self.status is ToolStatus.ERROR else ""

    @property
    def is_own(self) -> bool:
        return is_own_call(self.id)

    @property
    def is_unsent(self) -> bool:
        """True for a line of the user that no model reads."""
        return self.id.startswith(UNSENT_CALL)

    def __post_init__(self) -> None:
        """Reveal the summary from any source: a row shows exactly the command."""
        force_setattr(self, "summary", reveal_line(self.summary))

    @property
    def output(self) -> str:
        match self.display:
            case TerminalDisplay(output=shown) | DiffDisplay(diff=shown):
                return clean(shown)
            case _:
                return self.text or self.tail

    @property
    def folds_with_others(self) -> bool:
        """True for a quick, successful read that may share one row."""
        return self.name in _FOLDABLE and self.status is ToolStatus.SUCCESS and self.duration <= QUICK_SECONDS

    @property
    def folds_in_focus(self) -> bool:
        """True for an ended call that the focus view names in one row: no diff, no sub-agents, nothing of the user."""
        shows_more = isinstance(self.display, DiffDisplay | AgentsDisplay | ImageDisplay)
        return self.status not in UNSETTLED and not (self.is_own or shows_more or self.name in SUBMISSIONS)


class Grant(NamedTuple):
    """A row about a yes: the call as it begins there, and the words for the end of the call's own row."""

    call: str
    words: str

    def names(self, view: ToolView) -> bool:
        """True for the call that the row is about; the middle or the end of a long one is left out there."""
        title = one_line(f"{view.label} {view.summary}")
        first, _, last = self.call.partition("…")
        return title.startswith(first) and title.endswith(last)


_GRANT: Final = re.compile(
    rf"(?P<call>.*?): (?P<how>{ALLOWED_ONCE}|{ALLOWED_BY}[^:]+"
    rf"|(?:{ALLOWED_HERE}|{ALLOWED_IN_PROJECT}|{ALLOWED_EVERYWHERE})(?=: ))(?:: .*)?",
    re.DOTALL,
)
_SHORT: Final = {
    ALLOWED_HERE: "allowed here",
    ALLOWED_IN_PROJECT: "allowed in this project",
    ALLOWED_EVERYWHERE: "allowed everywhere",
}


def read_grant(text: str) -> Grant | None:
    """The parts of a stored row about a yes; None for any other row."""
    found = _GRANT.fullmatch(text)
    return Grant(found["call"], _SHORT.get(found["how"], found["how"])) if found is not None else None


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
        names = [task for one in tasks if isinstance(one, dict) and isinstance(task := one.get("task"), str)]
        count = pluralize(len(tasks), "sub-agent")
        return reveal_line(f"{count}: {' · '.join(names)}") if names else count
    named = [value for key in _SUMMARIES if isinstance(value := arguments.get(key), str) and value]
    texts = named or [value for value in arguments.values() if isinstance(value, str)]
    return reveal_line("\n".join(line.rstrip(" ") for line in texts[0].strip(" \n").split("\n"))) if texts else ""


def view_queued_call(call: ToolCall) -> ToolView:
    return ToolView(call.id, clean_line(call.name), summary_of(call.input_json, call.name))


def view_stored_call(record: ToolCallRecord) -> ToolView:
    return ToolView(
        record.tool_use_id,
        clean_line(record.name),
        summary_of(record.input_json, record.name),
        record.status,
        text=clean(shorten(record.output_text)),
        display=read_display(record.display_json),
        duration=record.duration_ms / 1000,
    )


def display_of(result: ToolResult) -> Display | None:
    """The display of a call that has just ended; None where there is none or it cannot be read."""
    return AgentsDisplay(result.agents) if result.agents else read_display(result.display_json)


def read_display(display_json: str) -> Display | None:
    try:
        return decode_display(display_json)
    except CodecError:
        return None


def shorten(output: str, longest: int = LONGEST) -> str:
    """An output whose middle is left out where no tool gives as much: an imported one may have millions."""
    if len(output) <= longest:
        return output
    left_out = len(output) - longest
    return f"{output[: longest // 2]}\n… {left_out:,} characters are left out …\n{output[-longest // 2 :]}"


def append_output(view: ToolView, text: str) -> str:
    return (view.tail + clean(text[-4 * LIVE_TAIL :]))[-LIVE_TAIL:]
