"""A tool call as rows: the command, the duration, the outcome, and as much output as helps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, assert_never

from engine.machine.messages import ToolStatus
from phoenix_tui.markdown.lines import PLAIN, QUIET, Span, StyledLine, TextStyle, TextTone
from phoenix_tui.text.agent_text import SUBMISSIONS, succeeded
from phoenix_tui.text.shown_paths import shell_place
from phoenix_tui.widgets.blocks.agent_cell import back_rows, came_back, success_of
from phoenix_tui.widgets.blocks.diff import diff_block
from phoenix_tui.widgets.blocks.diff_colours import DiffColours
from phoenix_tui.widgets.blocks.rows import barred, barred_sentence, barred_whole, duration_text, output_lines, row
from phoenix_tui.widgets.blocks.terminal_rows import LEFT_OUT, coloured_rows, coloured_whole, running_rows, screen_rows
from phoenix_tui.widgets.blocks.tool_view import ToolView, shortened
from tools.clean import clean, clean_line
from tools.contract import AgentEnd, AgentsDisplay, DiffDisplay, Display, ImageDisplay, PlainDisplay, TerminalDisplay
from tools.wording import counted

TAIL_LINES: Final = 3
"""Lines under a running call."""
RUNS_ON: Final = Span("▸", QUIET)
"""Mark of a command that was sent to the background: its end is not known here."""
FAILURE_HEAD: Final = 2
"""Lines from the start of a failed call's output; one more comes from its end."""
SENTENCE_ROWS: Final = 3
"""Rows of the only line of a failed call's output."""
OF_PATHS: Final = frozenset({"read_file", "read_image", "write_file", "patch", "list_files"})
"""Tools that are described by a path, whose end names the file."""
OWN_HEAD: Final = 12
"""The same of a user's command: it is run for its output."""
WEB_SEARCH: Final = "web_search"
LONGEST_COUNT: Final = 20
"""Characters of a number of results."""
OWN_TAIL: Final = 20
"""Lines under a running command of the user."""
SILENT: Final = "(no output)"


class ToolBlock(NamedTuple):
    """A call as rows, and the uncoloured rest of the first of them."""

    lines: list[StyledLine]
    colours: DiffColours | None = None
    rows: Iterable[StyledLine] = ()
    """Further rows, as many as its output has."""


def tool_block(view: ToolView, width: int, *, is_open: bool, action: str = "", now: float = 0.0) -> ToolBlock:
    """One call; `now` is monotonic and matters only while it runs."""
    if isinstance(view.display, DiffDisplay) and view.status is ToolStatus.SUCCESS:
        return ToolBlock(*diff_block(view.display, width, is_open=is_open, action=action))
    if backs := came_back(view):
        return _agents_block(view, backs, width, is_open=is_open, action=action)
    output = "" if _hands_in(view) else output_of(view).rstrip()
    right = _right(view, _lines_of(view, output), is_open, now)
    mark = RUNS_ON if _job(view) else _mark(view.status)
    lines = [row(mark, view.label, _title(view), right, width, action=action, is_path=view.name in OF_PATHS)]
    if view.is_own and view.status is ToolStatus.RUNNING and _is_screen(view, output):
        return ToolBlock([*lines, *running_rows(view, width, OWN_TAIL), *screen_rows(view, width)])
    if view.is_own and output:
        return _own_block(view, lines, output, width, is_open=is_open)
    if is_open and (output or _is_silent(view)):
        return ToolBlock(lines, rows=barred_whole(output or SILENT, width, PLAIN if output else QUIET))
    if view.status is ToolStatus.RUNNING:
        return ToolBlock(lines + barred(output_lines(output)[-TAIL_LINES:], width))
    if view.status is ToolStatus.ERROR and not view.is_own:
        output = output.removeprefix(f"{view.name}: ")
        if "\n" not in output:
            return ToolBlock([*lines, *barred_sentence(output, width, SENTENCE_ROWS)])
    return ToolBlock(lines + barred(_excerpt(output_lines(output), _head(view)), width))


def _is_screen(view: ToolView, output: str) -> bool:
    """True for a running line with something to show in place of its output."""
    return bool(output) or view.cursor is not None or view.wants_screen


def _own_block(view: ToolView, lines: list[StyledLine], output: str, width: int, *, is_open: bool) -> ToolBlock:
    """A line of the user: its output is what it was run for, so it is shown with its colours."""
    runs = view.display.runs if isinstance(view.display, TerminalDisplay) else ()
    if is_open:
        return ToolBlock(lines, rows=coloured_whole(output, runs, width))
    return ToolBlock(lines + coloured_rows(output, runs, width, head=OWN_HEAD))


def _lines_of(view: ToolView, output: str) -> int:
    """Lines that it printed, also where only the ends are kept."""
    printed = view.display.lines if isinstance(view.display, TerminalDisplay) else 0
    return printed or output.count("\n") + bool(output)


def _is_silent(view: ToolView) -> bool:
    """True when it ended without output."""
    return view.status in {ToolStatus.SUCCESS, ToolStatus.ERROR} and isinstance(view.display, TerminalDisplay)


def _head(view: ToolView) -> int:
    """Lines from the start of its output that a closed row shows."""
    if view.is_own:
        return OWN_HEAD
    return FAILURE_HEAD if view.status is ToolStatus.ERROR or _is_cut(view) else 0


def _is_cut(view: ToolView) -> bool:
    """True for a stopped command that keeps its output up to then."""
    stopped = view.status in {ToolStatus.CANCELLED, ToolStatus.INTERRUPTED}
    return stopped and isinstance(view.display, TerminalDisplay)


def _agents_block(view: ToolView, backs: Sequence[AgentEnd], width: int, *, is_open: bool, action: str) -> ToolBlock:
    """A spawn call whose sub-agents have ended: one row each, all their text only where it is opened."""
    right = duration_text(view.duration) if view.duration > 0 else ""
    mark = _mark(view.status) if view.status is not ToolStatus.SUCCESS else success_of(backs)
    lines = [row(mark, view.label, succeeded(backs), right, width, action=action)]
    if is_open and (said := view.text.rstrip()):
        return ToolBlock(lines, rows=barred_whole(said, width))
    return ToolBlock(lines if is_open else lines + back_rows(backs, width))


def reads_line(views: Sequence[ToolView], width: int, action: str) -> StyledLine:
    """Quick reads in a run as one row with their names."""
    names = [view.summary for view in views]
    shown = ", ".join(names[:3]) + (f" +{len(names) - 3}" if len(names) > 3 else "")
    seconds = sum(view.duration for view in views)
    return row(_mark(ToolStatus.SUCCESS), views[0].label, shown, duration_text(seconds), width, action=action)


def output_of(view: ToolView) -> str:
    """Output of a call for the screen."""
    if view.status is ToolStatus.RUNNING or (not view.text and view.display is None):
        return view.tail
    return _display_text(view.display, view.text)


def _display_text(display: Display | None, text: str) -> str:
    match display:
        case None:
            return text
        case TerminalDisplay():
            return clean(shortened(display.output))
        case PlainDisplay():
            return clean(shortened(display.text))
        case DiffDisplay():
            return clean(shortened(display.diff))
        case ImageDisplay():
            return ""
        case AgentsDisplay():
            return text
        case _:
            assert_never(display)


def _title(view: ToolView) -> str:
    if isinstance(view.display, ImageDisplay):
        return f"{clean_line(view.display.name)}  {view.display.width}×{view.display.height}"
    return "" if _hands_in(view) else view.summary


def _hands_in(view: ToolView) -> bool:
    """True when it ends a sub-agent: its result is below as an answer."""
    return view.name in SUBMISSIONS and view.status is not ToolStatus.ERROR


def _mark(status: ToolStatus) -> Span:
    match status:
        case ToolStatus.QUEUED:
            return Span("·", QUIET)
        case ToolStatus.AWAITING_APPROVAL:
            return Span("◆", TextStyle(TextTone.NEEDS_YOU))
        case ToolStatus.RUNNING:
            return Span("▸", TextStyle(TextTone.WORK))
        case ToolStatus.SUCCESS:
            return Span("✓", TextStyle(TextTone.GOOD))
        case ToolStatus.ERROR:
            return Span("✗", TextStyle(TextTone.BAD))
        case ToolStatus.CANCELLED | ToolStatus.SKIPPED | ToolStatus.INTERRUPTED:
            return Span("■", QUIET)
        case _:
            assert_never(status)


def _right(view: ToolView, lines: int, is_open: bool, now: float) -> str:
    """The end of the row: how much is folded, how it ended, how long it took."""
    place = [_place(view)] if _place(view) else []
    if view.status is ToolStatus.RUNNING:
        return " · ".join([*place, duration_text(max(now - view.since, 0.0)) if view.since else "runs"])
    words = [*place, *_status_words(view, lines, is_open)]
    if view.ended_processes:
        words.append(f"{counted(view.ended_processes, 'process', 'processes')} ended")
    if view.duration > 0:
        words.append(duration_text(view.duration))
    return " · ".join(words)


def _place(view: ToolView) -> str:
    """Folder that a line of the user ran in, where it is not the conversation's."""
    folder = view.display.folder if isinstance(view.display, TerminalDisplay) else view.folder
    return shell_place(folder)


def _status_words(view: ToolView, lines: int, is_open: bool) -> list[str]:
    match view.status:
        case ToolStatus.QUEUED:
            return ["queued"]
        case ToolStatus.AWAITING_APPROVAL:
            return ["asks"]
        case ToolStatus.SUCCESS:
            hidden = _hidden_words(view, lines, is_open)
            if (found := _found(view)) and not is_open:
                return [found]
            return [*hidden, f"in background ({job})"] if (job := _job(view)) else hidden
        case ToolStatus.ERROR:
            return _failure_words(view, lines, is_open)
        case ToolStatus.CANCELLED:
            return [*(_hidden_words(view, lines, is_open) if _is_cut(view) else ()), "stopped"]
        case ToolStatus.SKIPPED:
            return ["not run"]
        case ToolStatus.INTERRUPTED:
            return [*(_hidden_words(view, lines, is_open) if _is_cut(view) else ()), "interrupted"]
        case ToolStatus.RUNNING:
            return []
        case _:
            assert_never(view.status)


def _found(view: ToolView) -> str:
    """Number of results of a search of the web, in place of that of its lines."""
    if view.name != WEB_SEARCH or not isinstance(view.display, PlainDisplay):
        return ""
    return clean_line(view.display.text.partition("\n")[0][:LONGEST_COUNT])


def _job(view: ToolView) -> str:
    """The background job that a command has become; empty for all else."""
    return clean_line(view.display.job) if isinstance(view.display, TerminalDisplay) else ""


def _failure_words(view: ToolView, lines: int, is_open: bool) -> list[str]:
    words = _hidden_words(view, lines, is_open)
    if isinstance(view.display, TerminalDisplay):
        if view.display.timed_out:
            words.append("timed out")
        elif view.display.exit_code is not None:
            words.append(f"exit {view.display.exit_code}")
    return words


def _hidden_words(view: ToolView, lines: int, is_open: bool) -> list[str]:
    """Number of lines that a closed row hides."""
    head = _head(view)
    hidden = lines - (head + 1 if head else 0)
    return [f"+{counted(hidden, 'line')}"] if hidden > 0 and not is_open else []


def _excerpt(output: Sequence[str], head: int) -> Sequence[str]:
    """The first `head` lines and the last one, a sign between them where lines are left out; none where `head` is 0."""
    if not head:
        return ()
    return output if len(output) <= head + 1 else [*output[:head], LEFT_OUT, output[-1]]
