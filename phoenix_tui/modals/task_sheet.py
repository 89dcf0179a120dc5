"""One task of the board: its rows, milestones and messages, and its changes by the user."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, Final

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.executor.requests import ENGINE_ERRORS
from engine.records.tracked_tasks import TrackedTask, TrackingStatus
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.tasks import (
    BY_COMMAND,
    BoardModel,
    choose_status,
    confirm_removal,
    edit_task,
    remove_task,
    undo_removal,
)
from phoenix_tui.keys.active_keys import fitting, key
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone, age
from phoenix_tui.text.task_text import MARKS, PLANNING, STATUS_WORDS, facts, preference, shorten, summary, title
from phoenix_tui.widgets.bases import first_visible, first_visible_line, mark_chosen, run_latest

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
        mark_chosen(_row(row, width - POINTER, digits, now, words, plain=plain), chosen=place == chosen)
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


def detail(task: TrackedTask | None, width: int, now: float) -> list[Content]:
    """The chosen task in always the same number of rows: text, facts, newest milestones, newest preference."""
    lines: list[Content] = []
    if task is not None:
        lines = _cut(Content(title(task)), width, TITLE_ROWS)
        lines.append(Content.styled(facts(task, now), Tone.QUIET.value).truncate(width, ellipsis=True))
        for text in task.progresses[-MILESTONES:]:
            lines.append(Content.assemble(("│ ", Tone.QUIET.value), shorten(text)).truncate(width, ellipsis=True))
        room = DETAIL_ROWS - len(lines)
        lines += [
            Content.styled(preference(text), Tone.QUIET.value).truncate(width, ellipsis=True)
            for text in task.preferences[-room:]
            if room > 0
        ]
    return [*lines, *[Content("")] * (DETAIL_ROWS - len(lines))][:DETAIL_ROWS]


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
        lines += [TaskLine("Milestones", heading=True), *(TaskLine(shorten(text)) for text in task.progresses)]
    if task.preferences:
        lines += [TaskLine("Preferences", heading=True), *(TaskLine(shorten(text)) for text in task.preferences)]
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
            rows += [mark_chosen(part, chosen=True, sign=" " if nth else "›") for nth, part in enumerate(wrapped)]
            last = len(rows)
        else:
            rows.append(mark_chosen(Content(line.text).truncate(width - POINTER, ellipsis=True), chosen=False))
    top = first_visible_line(first, last, len(rows), room)
    return rows[top : top + room]


class TaskActionsSheet(Sheet[str]):
    """Stays open over changes; `said` is the result of the last one."""

    def __init__(self, front: FrontEnd, board: BoardModel) -> None:
        super().__init__()
        self.front = front
        self.board = board
        self.said = ""

    @property
    @abstractmethod
    def target(self) -> TrackedTask | None:
        """The task in view, which may be the planning section."""

    @abstractmethod
    def show(self) -> None:
        """Show the board as it was read last."""

    def action_status(self) -> None:
        if (task := self.changeable) is not None:
            self.carry_out(choose_status(self.front, self.board, task))

    def action_edit(self) -> None:
        if (task := self.changeable) is not None:
            self.carry_out(edit_task(self.front, self.board, task))

    def action_remove(self) -> None:
        if (task := self.changeable) is not None:
            self.carry_out(remove_task(self.front, self.board, task, self.way_back))

    def action_undo(self) -> None:
        self.carry_out(undo_removal(self.board))

    @property
    def way_back(self) -> str:
        """Keys that undo a deletion, in words; the command where there are none."""
        keys = key("task_undo")
        return f"{keys} restores it" if keys else BY_COMMAND

    @property
    def changeable(self) -> TrackedTask | None:
        """The task; None for the planning section, which has neither text nor status."""
        task = self.target
        return None if task is None or task.is_planning else task

    def carry_out(self, work: Awaitable[str]) -> None:
        """Do it in a worker; then show the board as it is, with the result or the reason of a failure."""
        self.run_worker(self._carry_out(work), group="change")

    async def _carry_out(self, work: Awaitable[str]) -> None:
        try:
            said = await work
        except ENGINE_ERRORS as error:
            said = str(error)
        try:
            await self.board.read()
        except ENGINE_ERRORS as error:
            said = said or str(error)
        self.said = shorten(said)
        if self.is_attached:
            self.show()


SHARE_PERCENT: Final = 85
CHROME: Final = 4
"""Rows of the sheet beside text, contents and remark: rule, heading, keys, margin."""
AROUND: Final = 30
"""Messages around the chosen one whose words are read."""
MOST_TITLE: Final = 8
"""Rows of the text of a task."""
KEYS: Final = (("task_status", "status"), ("task_edit", "edits"), ("task_remove", "deletes"))
JUMPS: Final = ("sheet_take", "jumps to the message")
DELETED: Final = "delete"
"""Result of the sheet of a task that is to be deleted."""
NOTHING: Final = "No milestones, preferences or messages yet."


class TaskSheet(TaskActionsSheet):
    """Gives the seq of a message to go to, as `#12`, or DELETED; its owner calls `show` when the board has changed."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = """
    TaskSheet {
        & > .sheet { max-height: 85%; }
        & Static { height: auto; }
        & #text { margin: 0 0 0 2; }
        & #contents { margin: 1 0 0 0; }
        & #remark { margin: 0 0 0 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS),
        *bindings(Scope.TASKS, "task_status", "task_edit", "task_remove"),
    ]

    def __init__(self, front: FrontEnd, board: BoardModel, task_id: str, *, plain: bool = False) -> None:
        super().__init__(front, board)
        self._task_id = task_id
        self._plain = plain
        self._chosen: int | None = None
        """Place among the lines; None until there is one."""
        self._lines: Sequence[TaskLine] = ()

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="keys", markup=False)
            yield Static(id="text", markup=False)
            yield Static(id="contents", markup=False)
            yield Static(id="remark", markup=False)

    def on_mount(self) -> None:
        self.show()

    @property
    def target(self) -> TrackedTask | None:
        """The task as the board has it now."""
        return self.board.task(self._task_id)

    def show(self) -> None:
        """Show the task as the board has it now; one that is gone closes the sheet."""
        task = self.target
        if task is None:
            if self.is_current:
                self.dismiss(None)
            return
        self._lines = task_contents(task, self.board.words)
        places = self._places
        if self._chosen not in places:
            messages = [place for place in places if self._lines[place].seq]
            self._chosen = next(iter(messages or places), None)
        self._draw()

    @property
    def _places(self) -> list[int]:
        """Lines that can be chosen."""
        return [place for place, line in enumerate(self._lines) if not line.heading]

    def _draw(self) -> None:
        task, width = self.target, self.measure
        if task is None:
            return
        self.query_one("#heading", Static).update(task_heading(task, time.time(), width, plain=self._plain))
        keys = () if task.is_planning else KEYS
        jumps = (JUMPS,) if task.message_seqs else ()
        self.query_one("#keys", Static).update(Content.styled(fitting(width, *jumps, *keys), Tone.QUIET.value))
        text = [] if task.is_planning else Content(title(task)).wrap(max(width - POINTER, 1))[:MOST_TITLE]
        self.query_one("#text", Static).update(Content("\n").join(text))
        remark = self.query_one("#remark", Static)
        remark.update(Content.styled(self.said, Tone.QUIET.value))
        remark.display = bool(self.said)
        room = max(self.size.height * SHARE_PERCENT // 100 - CHROME - len(text) - bool(self.said), 3)
        chosen = self._chosen if self._chosen is not None else -1
        rows = content_rows(self._lines, chosen, width, room) or [Content.styled(f"  {NOTHING}", Tone.QUIET.value)]
        self.query_one("#contents", Static).update(Content("\n").join(rows))
        self._want_words()

    def _want_words(self) -> None:
        """Read the words of the messages around the chosen line."""
        at = self._chosen or 0
        near = self._lines[max(at - AROUND, 0) : at + AROUND]
        missing = [line.seq for line in near if line.seq and self.board.words(line.seq) is None]
        if missing:
            run_latest(self, partial(self._load_words, missing), "words")

    async def _load_words(self, seqs: Sequence[int]) -> None:
        try:
            if await self.board.load_words(seqs):
                self.show()
        except ENGINE_ERRORS as error:
            self.said = shorten(str(error))

    def action_remove(self) -> None:
        """Ask, then leave the deletion to the board, where its result can be read and undone."""
        if (task := self.changeable) is not None:
            self.run_worker(self._remove(task), group="change")

    async def _remove(self, task: TrackedTask) -> None:
        if await confirm_removal(self.front, task) and self.is_attached:
            self.dismiss(DELETED)

    def action_move(self, by: int) -> None:
        self.said = ""
        places = self._places
        if self._chosen is not None:
            at = places.index(self._chosen) + by
            self._chosen = places[max(0, min(at, len(places) - 1))]
            self._draw()

    def action_take(self) -> None:
        line = self._lines[self._chosen] if self._chosen is not None else None
        if line is not None and line.seq:
            self.dismiss(f"#{line.seq}")
