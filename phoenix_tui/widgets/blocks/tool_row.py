"""A tool call as rows: the command, the outcome, and as much output as helps; sub-agents and terminals likewise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, assert_never

from engine.machine.messages import ToolStatus
from engine.machine.states import AgentStatus
from phoenix_tui.keys.active_keys import key
from phoenix_tui.keys.key_bytes import NAME
from phoenix_tui.markdown.code import plain_rows
from phoenix_tui.markdown.lines import (
    MARGIN,
    PLAIN,
    QUIET,
    Span,
    StyledLine,
    TextStyle,
    TextTone,
    cells,
    cut_middle,
    ellipsize,
    spans_width,
    wrap,
)
from phoenix_tui.text.agent_text import SUBMISSIONS, count_successes, end_words, is_good
from phoenix_tui.text.labels import DENIED as DENIED_SIGN
from phoenix_tui.text.labels import shell_place
from phoenix_tui.widgets.blocks.diff import DiffColours, diff_block
from phoenix_tui.widgets.blocks.rows import (
    BAR,
    INDENT,
    ToolView,
    bar_lines,
    bar_sentence,
    bar_whole,
    column,
    draw_row,
    duration_text,
    output_lines,
    shorten,
)
from tools.clean import clean, clean_line
from tools.contract import AgentEnd, AgentsDisplay, DiffDisplay, Display, ImageDisplay, PlainDisplay, TerminalDisplay
from tools.terminal.values import TextRun
from tools.wording import pluralize

SPAWN_TASK: Final = "spawn_task"
_STARTED: Final = r"^(\S+) started$"
_COMPLETION: Final = r"\[SYSTEM\] Child task (\S+) has (completed successfully|failed: (.*))\.$"
"""The texts of engine/machine/agent_texts.py, which are byte-stable; compiled with the first of them."""
NAME_SHARE: Final = 45
"""Share of names in a hundred cells of a row; larger where the words beside them leave room."""
WIDE: Final = 60
"""Cells of a row from which it says how much was used."""
MARKS: Final = {
    AgentStatus.SUCCESS.value: Span("✓ ", TextStyle(TextTone.GOOD)),
    AgentStatus.CANCELLED.value: Span("■ ", QUIET),
}
"""Marks before a row; every other end is a failure."""
FAILED: Final = Span("✗ ", TextStyle(TextTone.BAD))


def came_back(view: ToolView) -> Sequence[AgentEnd]:
    """The sub-agents of a call that has ended, in its order; none where it was no such call or failed itself."""
    return view.display.agents if isinstance(view.display, AgentsDisplay) else ()


def agents_of(view: ToolView) -> Sequence[str]:
    """The ids of the sub-agents a call put to work, as far as its result names them."""
    started = re.match(_STARTED, view.text.strip()) if view.name == SPAWN_TASK else None
    return [started[1]] if started is not None else [one.id for one in came_back(view)]


def success_of(ends: Sequence[AgentEnd]) -> Span:
    """Good where all succeeded, bad where none did: a failure is never green."""
    good = sum(map(is_good, ends))
    if good == len(ends):
        return Span("✓", TextStyle(TextTone.GOOD))
    return Span("◇", QUIET) if good else Span("✗", TextStyle(TextTone.BAD))


def back_rows(ends: Sequence[AgentEnd], width: int) -> list[StyledLine]:
    room = column(width) - MARGIN - 4
    used = [_count_use(one) if room >= WIDE else "" for one in ends]
    right = max((len(text) + 2 for text in used if text), default=0)
    names = max((cells(clean_line(one.task)) for one in ends), default=0)
    words = max((cells(end_words(one.reason, one.text)) for one in ends), default=0)
    name_room = min(names, max((room - right) * NAME_SHARE // 100, room - right - words - 2))
    return [_row(one, text, name_room, width, right) for one, text in zip(ends, used, strict=True)]


def _row(one: AgentEnd, used: str, name_room: int, width: int, right: int) -> StyledLine:
    start = (Span(" " * (MARGIN + 2)), MARKS.get(one.status, FAILED), Span(ellipsize(clean_line(one.task), name_room)))
    gap = " " * max(name_room + MARGIN + 4 - spans_width(start), 0) + "  "
    room = max(column(width) - spans_width(start) - len(gap) - right, 0)
    words = Span(ellipsize(end_words(one.reason, one.text), room), QUIET)
    blank = " " * (room - spans_width((words,)) + right - len(used)) if used else ""
    spans = (*start, Span(gap), words, Span(f"{blank}{used}", QUIET))
    action = open_action(one.id)
    return StyledLine(tuple(span._replace(action=action) for span in spans), margin=MARGIN + 2)


def _count_use(one: AgentEnd) -> str:
    parts = [pluralize(one.turns, "turn")] if one.turns else []
    parts += [duration_text(one.seconds)] if one.seconds > 0 else []
    return " · ".join(parts)


def open_action(agent_id: str) -> str:
    return f"screen.command({f'agents {agent_id}'!r})"


def completion_words(text: str) -> str:
    """Outcome of a background sub-agent, in one line; empty for any other text."""
    match = re.match(_COMPLETION, text.partition("\n")[0])
    if match is None:
        return ""
    _, _, said = text.partition(" from child:\n")
    return end_words(match[3] or "", said)


LEFT_OUT: Final = "⋯"
CURSOR: Final = TextStyle(program="7")


def running_rows(view: ToolView, width: int, most: int) -> list[StyledLine]:
    by_row, room = _by_row(view.runs), column(width) - MARGIN - 2
    lines = list(output_lines(view.tail))
    row, place = view.cursor or (-1, 0)
    lines += [""] * (row + 1 - len(lines))
    rows = [_spans(ellipsize(line, room), 0, by_row.get(number, ())) for number, line in enumerate(lines)]
    if row >= 0 and place < room:
        rows[row] = _with_cursor(rows[row], place)
    return [_bar_spans(spans) for spans in rows[-most:]]


def screen_rows(view: ToolView, width: int) -> list[StyledLine]:
    """Hint for a program that needs the whole terminal, or reads keys as if it had it; none for others."""
    if not (view.wants_screen or view.reads_keys):
        return []
    needs = "needs your terminal · " if view.wants_screen else ""
    yours = "yours" if needs else "your terminal"
    words = f"{needs}{key('send')} gives it {yours} · {NAME} returns"
    style = TextStyle(TextTone.NEEDS_YOU) if needs else QUIET
    return [_bar_spans([Span(ellipsize(words, column(width) - MARGIN - 2), style)])]


def colour_rows(text: str, runs: Sequence[TextRun], width: int, *, head: int) -> list[StyledLine]:
    lines, by_row, room = output_lines(text), _by_row(runs), column(width) - MARGIN - 2
    numbers = list(range(len(lines)))
    if len(lines) > head + 1:
        numbers = [*numbers[:head], -1, numbers[-1]]
    return [
        _bar_spans(
            _spans(ellipsize(lines[number], room), 0, by_row.get(number, ())) if number >= 0 else [Span(LEFT_OUT)]
        )
        for number in numbers
    ]


def colour_whole(text: str, runs: Sequence[TextRun], width: int) -> Iterator[StyledLine]:
    by_row, place = _by_row(runs), 0
    for number, shown, joint in plain_rows(text, column(width) - MARGIN - 2, hard=True):
        place = 0 if joint is None else place
        yield _bar_spans(_spans(shown, place, by_row.get(number, ())), joint)
        place += len(shown)


def _with_cursor(spans: Sequence[Span], place: int) -> list[Span]:
    """The spans of a row with the character at a place in exchanged colours."""
    text = "".join(span.text for span in spans).ljust(place + 1)
    before, _ = _cut(spans, place)
    missing = place - sum(len(span.text) for span in before)
    _, behind = _cut(spans, place + 1)
    return [*before, Span(" " * missing), Span(text[place], CURSOR), *behind]


def _cut(spans: Sequence[Span], place: int) -> tuple[list[Span], list[Span]]:
    before: list[Span] = []
    behind: list[Span] = []
    for span in spans:
        before.append(span._replace(text=span.text[: max(place, 0)]))
        behind.append(span._replace(text=span.text[max(place, 0) :]))
        place -= len(span.text)
    return before, behind


def _bar_spans(spans: Sequence[Span], joint: str | None = None) -> StyledLine:
    return StyledLine((INDENT, BAR, *spans), joint, MARGIN + 2)


def _by_row(runs: Sequence[TextRun]) -> Mapping[int, Sequence[TextRun]]:
    by_row: dict[int, list[TextRun]] = {}
    for run in runs:
        by_row.setdefault(run.row, []).append(run)
    return by_row


def _spans(text: str, begins: int, runs: Sequence[TextRun]) -> list[Span]:
    """`text`, which begins at a character of its line, in the looks of that line."""
    spans: list[Span] = []
    place = 0
    for run in runs:
        start, end = max(run.start - begins, place), min(run.end - begins, len(text))
        if start < end:
            spans.append(Span(text[place:start]))
            spans.append(Span(text[start:end], TextStyle(program=run.look)))
            place = end
    return [span for span in (*spans, Span(text[place:], PLAIN)) if span.text]


TAIL_LINES: Final = 3
"""Lines under a running call."""
RUNS_ON: Final = Span("▸", QUIET)
"""Mark of a command that was sent to the background: its end is not known here."""
DENIED: Final = Span(DENIED_SIGN.sign, QUIET)
"""Mark of a call that the user denied: no failure."""
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
        return ToolBlock(*diff_block(view.display, width, is_open=is_open, action=action, right=view.allowed))
    if backs := came_back(view):
        return _agents_block(view, backs, width, is_open=is_open, action=action)
    output = "" if _hands_in(view) else output_of(view).rstrip()
    terminal = view.display if isinstance(view.display, TerminalDisplay) else None
    lines_printed = (terminal.lines if terminal is not None else 0) or output.count("\n") + bool(output)
    right = _right(view, lines_printed, is_open, now)
    mark = RUNS_ON if _job(view) else DENIED if view.denied else _mark(view.status)
    mark, label = (_own_mark(view), "") if view.is_own else (mark, view.label)
    lines = [draw_row(mark, label, _title(view), right, width, action=action, is_path=view.name in OF_PATHS)]
    is_running, has_screen = view.status is ToolStatus.RUNNING, view.cursor is not None or view.wants_screen
    if view.is_own and is_running and (output or has_screen):
        return ToolBlock([*lines, *running_rows(view, width, OWN_TAIL), *screen_rows(view, width)])
    if view.is_own and output:
        # A line of the user: its output is what it was run for, so it is shown with its colours.
        runs = view.display.runs if isinstance(view.display, TerminalDisplay) else ()
        if is_open:
            return ToolBlock(lines, rows=colour_whole(output, runs, width))
        return ToolBlock(lines + colour_rows(output, runs, width, head=OWN_HEAD))
    has_ended = view.status in {ToolStatus.SUCCESS, ToolStatus.ERROR}
    if is_open and (output or (has_ended and terminal is not None)):
        return ToolBlock(lines, rows=bar_whole(output or SILENT, width, PLAIN if output else QUIET))
    if is_running:
        return ToolBlock(lines + bar_lines(output_lines(output)[-TAIL_LINES:], width))
    if view.status is ToolStatus.ERROR and not view.is_own:
        output = view.denied or output.removeprefix(f"{view.name}: ")
        if "\n" not in output:
            return ToolBlock([*lines, *bar_sentence(output, width, SENTENCE_ROWS)])
    return ToolBlock(lines + bar_lines(_excerpt(output_lines(output), _head(view)), width))


def _own_mark(view: ToolView) -> Span:
    """Sign of a line of the user as it was typed; its colour is yours unless it failed or was stopped."""
    usual = _mark(view.status).look
    look = TextStyle(TextTone.YOU, bold=True) if usual.tone in {TextTone.GOOD, TextTone.WORK} else usual
    return Span("!!" if view.is_unsent else "!", look)


def _head(view: ToolView) -> int:
    if view.is_own:
        return OWN_HEAD
    return FAILURE_HEAD if view.status is ToolStatus.ERROR or _is_cut(view) else 0


def _is_cut(view: ToolView) -> bool:
    """True for a stopped command that keeps its output up to then."""
    stopped = view.status in {ToolStatus.CANCELLED, ToolStatus.INTERRUPTED}
    return stopped and isinstance(view.display, TerminalDisplay)


def _agents_block(view: ToolView, backs: Sequence[AgentEnd], width: int, *, is_open: bool, action: str) -> ToolBlock:
    """A spawn call whose sub-agents have ended: one row each, all their text only where it is opened."""
    took = duration_text(view.duration) if view.duration > 0 else ""
    right = " · ".join(part for part in (view.allowed, took) if part)
    mark = _mark(view.status) if view.status is not ToolStatus.SUCCESS else success_of(backs)
    lines = [draw_row(mark, view.label, count_successes(backs), right, width, action=action)]
    if is_open and (said := view.text.rstrip()):
        return ToolBlock(lines, rows=bar_whole(said, width))
    return ToolBlock(lines if is_open else lines + back_rows(backs, width))


def reads_line(views: Sequence[ToolView], width: int, action: str) -> StyledLine:
    names = [view.summary for view in views]
    shown = ", ".join(names[:3]) + (f" +{len(names) - 3}" if len(names) > 3 else "")
    seconds = sum(view.duration for view in views)
    return draw_row(_mark(ToolStatus.SUCCESS), views[0].label, shown, duration_text(seconds), width, action=action)


BETWEEN: Final = " · "
LONGEST_NAMED: Final = 60
"""Cells of a command in the row of the focus view."""


def focus_lines(views: Sequence[ToolView], width: int, action: str) -> list[StyledLine]:
    """Ended calls in one row, each with its mark and its command; it wraps rather than leave one out."""
    spans = list[Span]()
    for view in views:
        words = view.summary if view.name == "bash" else f"{view.label} {_title(view)}".rstrip()
        cut = cut_middle if view.name in OF_PATHS else ellipsize
        spans += [_mark(view.status), Span(f" {cut(words, LONGEST_NAMED)}", QUIET), Span(BETWEEN, QUIET)]
    rows = wrap([span._replace(action=action) for span in spans[:-1]], column(width) - MARGIN)
    return [StyledLine((INDENT, *row), joint) for row, joint in rows]


def output_of(view: ToolView) -> str:
    if view.status is ToolStatus.RUNNING or (not view.text and view.display is None):
        return view.tail
    return _display_text(view.display, view.text)


def _display_text(display: Display | None, text: str) -> str:
    match display:
        case None:
            return text
        case TerminalDisplay():
            return clean(shorten(display.output))
        case PlainDisplay():
            return clean(shorten(display.text))
        case DiffDisplay():
            return clean(shorten(display.diff))
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
    place = ["not sent"] if view.is_unsent else []
    place += [part for part in (_place(view), view.allowed) if part]
    if view.status is ToolStatus.RUNNING:
        place += [view.usage] if view.usage else []
        return " · ".join([*place, duration_text(max(now - view.since, 0.0)) if view.since else "runs"])
    words = [*place, *_status_words(view, lines, is_open)]
    if view.ended_processes and view.status is not ToolStatus.CANCELLED:  # the row about the stop names them
        words.append(f"{pluralize(view.ended_processes, 'process', 'processes')} ended")
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
            hidden = _count_hidden(view, lines, is_open)
            if (found := _count_found(view)) and not is_open:
                return [found]
            return [*hidden, f"in background ({job})"] if (job := _job(view)) else hidden
        case ToolStatus.ERROR:
            return _failure_words(view, lines, is_open)
        case ToolStatus.CANCELLED:
            return [*(_count_hidden(view, lines, is_open) if _is_cut(view) else ()), "stopped"]
        case ToolStatus.SKIPPED:
            return ["not run"]
        case ToolStatus.INTERRUPTED:
            return [*(_count_hidden(view, lines, is_open) if _is_cut(view) else ()), "interrupted"]
        case ToolStatus.RUNNING:
            return []
        case _:
            assert_never(view.status)


def _count_found(view: ToolView) -> str:
    """Number of results of a search of the web, in place of that of its lines."""
    if view.name != WEB_SEARCH or not isinstance(view.display, PlainDisplay):
        return ""
    return clean_line(view.display.text.partition("\n")[0][:LONGEST_COUNT])


def _job(view: ToolView) -> str:
    """The background job that a command has become; empty for all else."""
    return clean_line(view.display.job) if isinstance(view.display, TerminalDisplay) else ""


def _failure_words(view: ToolView, lines: int, is_open: bool) -> list[str]:
    words = _count_hidden(view, lines, is_open) if not view.denied else []
    if isinstance(view.display, TerminalDisplay):
        if view.display.timed_out:
            words.append("timed out")
        elif view.display.exit_code is not None:
            words.append(f"exit {view.display.exit_code}")
    return words


def _count_hidden(view: ToolView, lines: int, is_open: bool) -> list[str]:
    head = _head(view)
    hidden = lines - (head + 1 if head else 0)
    return [f"+{pluralize(hidden, 'line')}"] if hidden > 0 and not is_open else []


def _excerpt(output: Sequence[str], head: int) -> Sequence[str]:
    """The first `head` lines and the last one, a sign between them where lines are left out; none where `head` is 0."""
    if not head:
        return ()
    return output if len(output) <= head + 1 else [*output[:head], LEFT_OUT, output[-1]]
