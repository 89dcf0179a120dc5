"""Rows of the task board and of one task. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from textual.content import Content

from engine.records.tracked_tasks import TrackedTask, TrackingStatus
from phoenix_tui.text.labels import Tone, age
from phoenix_tui.text.task_text import MARKS, PLANNING, STATUS_WORDS, facts, preference, shown, summary, title
from phoenix_tui.widgets.bases import first_visible

POINTER: Final = 2
"""Cells of the sign before a row."""
GAP: Final = "  "
STATUS_WIDTH: Final = max(len(word) for word in STATUS_WORDS.values())
STATUS_FROM: Final = 60
"""Columns from which a row has the word of its status beside the mark."""
DETAIL_ROWS: Final = 6
TITLE_ROWS: Final = 2
MILESTONES: Final = 2
"""Newest milestones below the list."""


class BoardRow(Struct, frozen=True):
    """A row of the list: a task, the planning section, or a message without a task."""

    key: str
    task: TrackedTask | None = None
    seq: int = 0
    """Seq of a message without a task."""


class TaskLine(Struct, frozen=True):
    """A row about one task: a heading, or something that can be chosen."""

    text: str
    seq: int = 0
    """Seq of a message; 0 for another text."""
    heading: bool = False


def heading(status: TrackingStatus, place: str, width: int) -> Content:
    """Name of the board, counts of messages, tracking on or off, and the place in the list."""
    words = f" {summary(status).replace('tracking ', '')}" if width < STATUS_FROM else f"   {summary(status)}"
    head = Content.assemble(("Tasks", "bold"), (words, Tone.QUIET.value))
    at = Content.styled(f"   {place}" if place else "", Tone.QUIET.value)
    whole = Content.assemble(head, at) if head.cell_length + at.cell_length <= width else head
    return whole.truncate(width, ellipsis=True)


def board_rows(
    rows: Sequence[BoardRow],
    chosen: int,
    width: int,
    room: int,
    now: float,
    words: Callable[[int], str | None],
    *,
    plain: bool,
) -> list[Content]:
    """Rows in the room there is, the chosen one among them."""
    first = first_visible(chosen, len(rows), room)
    most = max((row.task.order for row in rows if row.task is not None), default=0)
    digits = len(str(max(most, *(row.seq for row in rows), 1)))
    shown_rows = enumerate(rows[first : first + room], start=first)
    return [
        _chosen(_row(row, width - POINTER, digits, now, words, plain=plain), chosen=place == chosen)
        for place, row in shown_rows
    ]


def in_sight(rows: Sequence[BoardRow], chosen: int, room: int) -> Sequence[BoardRow]:
    """The rows that `board_rows` shows."""
    first = first_visible(chosen, len(rows), room)
    return rows[first : first + room]


def _row(
    row: BoardRow, width: int, digits: int, now: float, words: Callable[[int], str | None], *, plain: bool
) -> Content:
    task = row.task
    if task is None:
        text = words(row.seq)
        return Content(f"#{row.seq:<{digits}}  {text if text is not None else '…'}").truncate(width, ellipsis=True)
    since = "" if task.is_planning else f"{GAP}{age(now - task.created_at):>4}"
    room = max(width - len(since), 1)
    if task.is_planning:
        return Content(title(task)).truncate(room, ellipsis=True, pad=True)
    mark = MARKS[task.status]
    status = f" {STATUS_WORDS[task.status]:<{STATUS_WIDTH}}" if width + POINTER >= STATUS_FROM else ""
    line = Content.assemble(
        (f"{mark.mark(plain)}{status}", mark.tone.value), f"{GAP}{task.order:>{digits}}{GAP}", title(task)
    )
    return Content.assemble(line.truncate(room, ellipsis=True, pad=True), (since, Tone.QUIET.value))


def _chosen(row: Content, *, chosen: bool) -> Content:
    return Content.styled(f"› {row.plain}", "reverse") if chosen else Content.assemble(" " * POINTER, row)


def detail(task: TrackedTask | None, width: int, now: float) -> list[Content]:
    """The chosen task in always the same number of rows: text, facts, newest milestones, newest preference."""
    lines: list[Content] = []
    if task is not None:
        lines = _cut(Content(title(task)), width, TITLE_ROWS)
        lines.append(Content.styled(facts(task, now), Tone.QUIET.value).truncate(width, ellipsis=True))
        lines += [_milestone(text, width) for text in task.progresses[-MILESTONES:]]
        room = DETAIL_ROWS - len(lines)
        lines += [
            Content.styled(preference(text), Tone.QUIET.value).truncate(width, ellipsis=True)
            for text in task.preferences[-room:]
            if room > 0
        ]
    return [*lines, *[Content("")] * (DETAIL_ROWS - len(lines))][:DETAIL_ROWS]


def _milestone(text: str, width: int) -> Content:
    return Content.assemble(("│ ", Tone.QUIET.value), shown(text)).truncate(width, ellipsis=True)


def _cut(text: Content, width: int, most: int) -> list[Content]:
    """The text wrapped to at most so many rows."""
    lines = text.wrap(max(width, 1)) or [Content("")]
    if len(lines) > most:
        lines[most - 1] = Content(f"{lines[most - 1].plain.rstrip()} …").truncate(width, ellipsis=True)
    return lines[:most]


def task_heading(task: TrackedTask, now: float, width: int, *, plain: bool) -> Content:
    """Number, status and ages of a task."""
    if task.is_planning:
        head = Content.assemble((PLANNING, "bold"))
    else:
        mark = MARKS[task.status]
        head = Content.assemble((f"Task {task.order}", "bold"), GAP, (mark.mark(plain), mark.tone.value))
    return Content.assemble(head, (f" {facts(task, now)}", Tone.QUIET.value)).truncate(width, ellipsis=True)


def task_contents(task: TrackedTask, words: Callable[[int], str | None]) -> list[TaskLine]:
    """Milestones, preferences and messages of a task below their headings."""
    lines: list[TaskLine] = []
    if task.progresses:
        lines += [TaskLine("Milestones", heading=True), *(TaskLine(shown(text)) for text in task.progresses)]
    if task.preferences:
        lines += [TaskLine("Preferences", heading=True), *(TaskLine(shown(text)) for text in task.preferences)]
    if task.message_seqs:
        digits = len(str(task.message_seqs[-1]))
        lines.append(TaskLine("Messages", heading=True))
        lines += [TaskLine(f"#{seq:<{digits}}  {words(seq) or '…'}", seq) for seq in task.message_seqs]
    return lines


def content_rows(lines: Sequence[TaskLine], chosen: int, width: int, room: int) -> list[Content]:
    """Lines in the room there is, the chosen one among them; each has one row, the chosen one up to three."""
    rows: list[Content] = []
    first = last = 0
    for place, line in enumerate(lines):
        if line.heading:
            rows.append(Content.styled(line.text, f"bold {Tone.YOU.value}"))
            continue
        if place == chosen:
            first = len(rows)
            wrapped = _cut(Content(line.text), width - POINTER, 3)
            rows += [
                Content.styled(f"{' ' if nth else '›'} {part.plain}", "reverse") for nth, part in enumerate(wrapped)
            ]
            last = len(rows)
        else:
            rows.append(Content.assemble(" " * POINTER, Content(line.text).truncate(width - POINTER, ellipsis=True)))
    top = max(0, min(max(last - room, first - room // 2), len(rows) - room))
    return rows[top : top + room]
