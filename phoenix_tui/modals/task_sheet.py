"""One task of the board: its text, milestones, preferences and messages, each with a way to it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.api.errors import ENGINE_ERRORS
from engine.records.tracked_tasks import TrackedTask
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.task_board import BoardModel
from phoenix_tui.features.tasks import confirm_removal
from phoenix_tui.keys.active_keys import fitting
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.task_actions import TaskActionsSheet
from phoenix_tui.modals.task_rows import POINTER, TaskLine, content_rows, task_contents, task_heading
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.task_text import shown, title
from phoenix_tui.widgets.bases import run_latest

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
        """Heading, keys, text, contents and a remark."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="keys", markup=False)
            yield Static(id="text", markup=False)
            yield Static(id="contents", markup=False)
            yield Static(id="remark", markup=False)

    def on_mount(self) -> None:
        """Begin at the first message."""
        self.show()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

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
            self.said = shown(str(error))

    def action_remove(self) -> None:
        """Ask, then leave the deletion to the board, where its result can be read and undone."""
        if (task := self.changeable) is not None:
            self.run_worker(self._remove(task), group="change")

    async def _remove(self, task: TrackedTask) -> None:
        if await confirm_removal(self.front, task) and self.is_attached:
            self.dismiss(DELETED)

    def action_move(self, by: int) -> None:
        """Choose another line."""
        self.said = ""
        places = self._places
        if self._chosen is not None:
            at = places.index(self._chosen) + by
            self._chosen = places[max(0, min(at, len(places) - 1))]
            self._draw()

    def action_take(self) -> None:
        """Go to the chosen message."""
        line = self._lines[self._chosen] if self._chosen is not None else None
        if line is not None and line.seq:
            self.dismiss(f"#{line.seq}")
