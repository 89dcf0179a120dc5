"""The task board of a conversation: its rows, what is known about each, and the messages that belong to none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from engine.executor.requests import ENGINE_ERRORS
from engine.records.tracked_tasks import TrackedTask
from engine.updates import ConversationChanged, TasksChanged, Unsubscribe, Update
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.tasks import BoardModel, describe_switch, matching, remove_confirmed, track_now
from phoenix_tui.keys.active_keys import CLOSES, fitting
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.task_sheet import (
    DELETED,
    DETAIL_ROWS,
    POINTER,
    BoardRow,
    TaskActionsSheet,
    TaskSheet,
    board_rows,
    detail,
    heading,
    in_sight,
)
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.task_text import TODO_SIGNS, describe_untracked, empty_board, format_todo_heading, shorten
from phoenix_tui.widgets.bases import first_visible, move_choice, run_latest
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.widgets.todo_panel import TONES
from tools.displays import TodoList

NO_TASK: Final = "no task"
"""Filter that shows messages without a task."""
AHEAD: Final = 10
"""Rows before the last one read at which the next page is wanted."""
LONGEST_QUERY: Final = 40
"""Characters of a filter in the heading."""


class BoardList:
    """Values of the list; its owner draws them."""

    def __init__(self, board: BoardModel, *, query: str = "", newest: bool = False) -> None:
        self.query = query
        self.newest = newest
        """True: by time of creation, the newest first; else in the order of the board."""
        self.rows: Sequence[BoardRow] = ()
        self.chosen = 0
        self._board = board

    @property
    def is_loose(self) -> bool:
        """True while messages without a task are shown."""
        return self.query.strip().lower() == NO_TASK

    @property
    def row(self) -> BoardRow | None:
        """The chosen row."""
        return self.rows[self.chosen] if self.chosen < len(self.rows) else None

    @property
    def task(self) -> TrackedTask | None:
        """The chosen task with its messages; None for a message without a task."""
        row = self.row
        return None if row is None or row.task is None else self._board.task(row.key) or row.task

    @property
    def wants_more(self) -> bool:
        """True when the choice comes near the end of the pages read so far."""
        paged = self.newest and not self.query.strip()
        return paged and self._board.has_more and self.chosen + AHEAD >= len(self.rows)

    @property
    def place(self) -> str:
        """Place of the choice, and how the rows are chosen and sorted."""
        total = len(self.rows)
        if self.newest and not self.query.strip() and self._board.has_more:
            total = len(self._board.view.tasks)
        at = f"{self.chosen + 1} / {total}" if self.rows else ""
        filtered = f"filter: {shorten(self.query, LONGEST_QUERY)}" if self.query.strip() else ""
        return " · ".join(filter(None, (at, filtered, "newest first" if self.newest else "")))

    def move(self, by: int) -> None:
        """Choose another row."""
        self.chosen = move_choice(self.chosen, by, len(self.rows))

    def restart(self, *, query: str | None = None, newest: bool | None = None) -> None:
        """Filter or sort in another way, from the first row on."""
        self.query = self.query if query is None else query
        self.newest = self.newest if newest is None else newest
        self.rows, self.chosen = (), 0
        self.renew()

    def renew(self) -> None:
        """Make the rows again; the chosen one stays chosen where it is still there."""
        before = self.row
        self.rows = self._find_rows()
        keys = [row.key for row in self.rows]
        if before is not None and before.key in keys:
            self.chosen = keys.index(before.key)
        else:
            self.chosen = min(self.chosen, max(len(self.rows) - 1, 0))

    def _find_rows(self) -> list[BoardRow]:
        board, view, query = self._board, self._board.view, self.query.strip()
        if self.is_loose:
            return [BoardRow(f"#{seq}", seq=seq) for seq in board.untasked]
        tasks = list(board.newest if self.newest and not query else view.tasks)
        if query:
            tasks = matching(tasks, query)
            newest = self.newest
            tasks.sort(key=lambda task: (task.created_at if newest else task.order, task.id), reverse=newest)
        is_end = not (self.newest and board.has_more and not query)
        planning = matching((view.planning,), query) if view.planning is not None and is_end else ()
        return [BoardRow(task.id, task) for task in (*tasks, *planning)]


SHARE: Final = 10
"""The items take this part of the screen's rows at most."""
LEAST: Final = 2
"""Items below the heading; where there is no room for as many, the current one is beside it."""


def todo_rows(todos: TodoList, width: int, height: int, indent: int, *, plain: bool = False) -> list[Content]:
    """Heading and items around the current one, for a screen of this size; empty without items."""
    if not todos.items:
        return []
    room = height // SHARE
    head = Content.styled(format_todo_heading(todos), "bold")
    current = todos.current
    if room < LEAST:
        words = Content.styled(f"   {shorten(current.words)}" if current is not None else "", Tone.QUIET.value)
        return [Content.assemble(head, words).truncate(width, ellipsis=True)]
    at = todos.items.index(current) if current is not None else len(todos.items)
    first = max(min(at - 1, len(todos.items) - room), 0)  # one before the current item, or before the end
    lines = list(enumerate(todos.items, 1))[first : first + room]
    if len(todos.items) > room:
        place = f"   {first + 1} to {first + len(lines)} of {len(todos.items)}"
        head = Content.assemble(head, (place, Tone.QUIET.value))
    rows = [head.truncate(width, ellipsis=True)]
    for number, item in lines:
        line = f"{number:>{len(str(len(todos.items)))}}. {TODO_SIGNS[item.status].mark(plain)} {item.content}"
        text = Content.styled(shorten(line), TONES[item.status]).truncate(max(width - indent, 1), ellipsis=True)
        rows.append(Content.assemble(" " * indent, text))
    return rows


SHARE_PERCENT: Final = 85
CHROME: Final = 5
"""Rows of the sheet beside rows, details, problem and remark: rule, heading, keys, two margins."""
WITH_DETAIL: Final = 18
"""Rows of the screen from which the chosen task has its details below the list."""
PROBLEM_ROWS: Final = 2
LEAST_ROWS: Final = 3
"""Rows of the list on the lowest screen; the todo list takes none of them."""
SHOWS_ALL: Final = "Esc shows all"
NO_MATCH: Final = "No task matches. Esc shows all."
NO_MESSAGE: Final = "Every message belongs to a task. Esc shows the tasks."
OPENS: Final = ("sheet_take", "opens")
CHANGES: Final = (("task_status", "status"), ("task_edit", "edits"), ("task_remove", "deletes"))
VIEWS: Final = (("task_filter", "filters"), ("task_sort", "sorts"), ("task_loose", "no task"))
TRACKING: Final = (("task_track", "tracking on/off"), ("task_now", "tracks now"))
"""The last ones of all go first where there is little room."""
LOOSE_KEYS: Final = (("sheet_take", "jumps to it"), ("task_loose", "shows the tasks"))


class TasksSheet(TaskActionsSheet):
    """Gives the seq of a message to go to, as `#12`; follows the board while it is open."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = """
    TasksSheet {
        & > .sheet { max-height: 85%; }
        & Static { height: auto; }
        & #todos { margin: 1 0 0 0; }
        & LineInput { margin: 0 0 0 2; background: $background; display: none; }
        & #rows { margin: 1 0 0 0; }
        & #detail { margin: 1 0 0 2; }
        & #remark { margin: 0 0 0 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.TYPED, typed_page_up="move(-10)", typed_page_down="move(10)"),
        *bindings(Scope.ROWS, "sheet_up", "sheet_down", "sheet_take", "sheet_close"),
        *bindings(Scope.TASKS),
    ]

    def __init__(
        self, front: FrontEnd, board: BoardModel, *, plain: bool = False, query: str = "", newest: bool = False
    ) -> None:
        super().__init__(front, board)
        self._list = BoardList(board, query=query, newest=newest)
        self._plain = plain
        self.first: TrackedTask | None = None
        """A task to open at once."""
        self._opened: TaskSheet | None = None
        """The open sheet of one task."""
        self._unsubscribe: Unsubscribe | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="keys", markup=False)
            yield Static(id="problem", markup=False)
            yield Static(id="todos", markup=False)
            yield LineInput(placeholder="type to filter")
            yield Static(id="rows", markup=False)
            yield Static(id="detail", markup=False)
            yield Static(id="remark", markup=False)

    async def on_mount(self) -> None:
        self.show()
        if self.first is not None:
            self._open(self.first)
        self._unsubscribe = await self.board.conversation.subscribe(self._follow)

    def on_unmount(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()

    def _follow(self, update: Update) -> None:
        if isinstance(update, TasksChanged):
            run_latest(self, self._read, "read")
        elif isinstance(update, ConversationChanged):
            self._draw()  # its todo list may be another one

    async def _read(self) -> None:
        try:
            await self.board.read()
        except ENGINE_ERRORS as error:
            self.said = shorten(str(error))
        if self.is_attached:
            self.show()

    @property
    def target(self) -> TrackedTask | None:
        """The chosen task."""
        return self._list.task

    def show(self) -> None:
        """Show the board as it was read last, here and in the sheet of one task."""
        self._list.renew()
        self._draw()
        if self._opened is not None and self._opened.is_attached:
            self._opened.show()

    def _draw(self) -> None:
        width, now, chosen = self.measure, time.time(), self._list
        is_typing = self.query_one(LineInput).display
        status, task = self.board.view.status, chosen.task
        problem = Content.styled(shorten(status.problem), Tone.NEEDS_YOU.value)
        remark = Content.styled(self.said or describe_untracked(status), Tone.QUIET.value)
        has_detail = self.size.height >= WITH_DETAIL and task is not None
        below = is_typing + (DETAIL_ROWS if has_detail else -1)
        below += self._fill("#problem", problem.wrap(width)[:PROBLEM_ROWS] if problem.plain else [])
        below += self._fill("#remark", [remark.truncate(width - POINTER, ellipsis=True)] if remark.plain else [])
        self._fill("#detail", detail(task, width - POINTER, now) if has_detail else [])
        self._fill("#heading", [heading(status, chosen.place, width)])
        self._fill("#keys", [Content.styled(fitting(width, *self._keys()), Tone.QUIET.value)])
        room = self.size.height * SHARE_PERCENT // 100 - CHROME - below
        room = max(room - self._fill_todos(room - LEAST_ROWS, width), LEAST_ROWS)
        rows = board_rows(chosen.rows, chosen.chosen, width, room, now, self.board.words, plain=self._plain)
        self._fill("#rows", rows or self._nothing(width))
        self.show_esc_hint(SHOWS_ALL if chosen.query or is_typing else CLOSES)
        self._want_words(room)

    def _fill_todos(self, room: int, width: int) -> int:
        """Set the agent's todo list above the rows, as far as there is room; returns its rows with the margin."""
        todos = self.board.conversation.todos.now
        rows = todo_rows(todos, width, self.size.height, POINTER, plain=self._plain)[: max(room - 1, 0)]
        return self._fill("#todos", rows) + bool(rows)

    def _fill(self, name: str, rows: Sequence[Content]) -> int:
        """Set a part of the sheet, hidden while it is empty; returns its number of rows."""
        part = self.query_one(name, Static)
        part.update(Content("\n").join(rows))
        part.display = bool(rows)
        return len(rows)

    def _keys(self) -> Sequence[tuple[str, str]]:
        tracking = TRACKING[: 1 + self.board.view.status.enabled]
        if self._list.is_loose:
            return LOOSE_KEYS
        if self._list.task is None:
            return (*tracking, VIEWS[-1])
        return OPENS, *(() if self._list.task.is_planning else CHANGES), *VIEWS, *tracking

    def _nothing(self, width: int) -> list[Content]:
        sentences = empty_board(self.board.view.status)
        if self._list.query.strip():
            sentences = (NO_MESSAGE if self._list.is_loose else NO_MATCH,)
        text = Content.styled("\n".join(sentences), Tone.QUIET.value)
        return [Content.assemble(" " * POINTER, line) for line in text.wrap(max(width - POINTER, 1))]

    def _want_words(self, room: int) -> None:
        """Read the words of the messages in sight."""
        if not self._list.is_loose:
            return
        rows = in_sight(self._list.rows, self._list.chosen, room)
        missing = [row.seq for row in rows if self.board.words(row.seq) is None]
        if missing:
            run_latest(self, partial(self._load, missing), "words")

    async def _load(self, seqs: Sequence[int]) -> None:
        try:
            await self.board.load_words(seqs)
        except ENGINE_ERRORS as error:
            self.said = shorten(str(error))
            self._fill("#remark", [Content.styled(self.said, Tone.QUIET.value)])
        else:
            self._draw()

    @on(events.Click, "#rows")
    def point(self, event: events.Click) -> None:
        """A click chooses a row, one on the chosen row opens it."""
        shown_rows = self.query_one("#rows", Static).size.height
        place = first_visible(self._list.chosen, len(self._list.rows), shown_rows) + event.y
        if place == self._list.chosen:
            self.action_take()
        elif place < len(self._list.rows):
            self.action_move(place - self._list.chosen)

    def action_move(self, by: int) -> None:
        """Choose another row; near the end of the pages read so far, read on."""
        self.said = ""
        self._list.move(by)
        self._draw()
        if self._list.wants_more:
            self.run_worker(self._more(), group="more")

    async def _more(self) -> None:
        try:
            await self.board.more()
        except ENGINE_ERRORS as error:
            self.said = shorten(str(error))
        self.show()

    def action_take(self) -> None:
        """Open the chosen task, or go to the chosen message."""
        row, task = self._list.row, self._list.task
        if task is not None:
            self._open(task)
        elif row is not None:
            self.dismiss(row.key)

    def _open(self, task: TrackedTask) -> None:
        """Show one task in place of the board."""
        self.query_one(".sheet").display = False
        self._opened = TaskSheet(self.front, self.board, task.id, plain=self._plain)
        self.app.push_screen(self._opened, self._take_closed)

    def _take_closed(self, message: str | None) -> None:
        sheet, self._opened = self._opened, None
        if message and message != DELETED:
            self.dismiss(message)
            return
        self.query_one(".sheet").display = True
        line = self.query_one(LineInput)
        self.set_focus(line if line.display else None)
        self.show()
        if message == DELETED and sheet is not None and sheet.target is not None:
            self.carry_out(remove_confirmed(self.board, sheet.target, self.way_back))

    def action_sort(self) -> None:
        """Show the newest first, or the order of the board."""
        self.carry_out(self._sort())

    async def _sort(self) -> str:
        if not self._list.newest:
            await self.board.first_page()
        self._list.restart(newest=not self._list.newest)
        return ""

    def action_track(self) -> None:
        """Switch tracking of this conversation on or off."""
        self.carry_out(self._switch())

    async def _switch(self) -> str:
        wanted = not self.board.view.status.enabled
        return describe_switch(await self.board.tasks.set_tracking(self.board.id, wanted))

    def action_now(self) -> None:
        self.carry_out(self._track_now())

    async def _track_now(self) -> str:
        await track_now(self.front, self.board)
        return ""

    def action_filter(self) -> None:
        """Write into the filter; the letters behind this key are the line's already."""
        line = self.query_one(LineInput)
        line.display = True
        line.fill("" if self._list.is_loose else self._list.query)
        self.set_focus(line)
        self._filter(line.text)

    def action_loose(self) -> None:
        """Show messages without a task, or the tasks again."""
        self._filter("" if self._list.is_loose else NO_TASK)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if event.text_area.display:
            self._filter(event.text_area.text)

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        event.stop()
        self.action_take()

    def _filter(self, query: str) -> None:
        if query != self._list.query:
            self._list.restart(query=query)
        self._draw()

    def action_close(self) -> None:
        """End the filter, else close the sheet."""
        line = self.query_one(LineInput)
        if not (self._list.query or line.display):
            self.dismiss(None)
            return
        line.display = False
        self.set_focus(None)
        self._filter("")
