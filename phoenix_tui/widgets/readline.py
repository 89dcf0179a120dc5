"""The text of a text area and its editing keys, as in GNU Readline: kills, yanks, words, undo, marks of pastes."""

from __future__ import annotations

import re
from collections.abc import Coroutine
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from rich.style import Style
from rich.text import Text
from textual import events
from textual.actions import parse
from textual.binding import Binding
from textual.widgets import TextArea

from phoenix_tui.widgets.answer_keys import Answering
from phoenix_tui.widgets.pasting import PasteStore

if TYPE_CHECKING:
    from phoenix_tui.features.composing import PromptHistory


if TYPE_CHECKING:
    _Base = TextArea
else:
    _Base = object  # Textual inherits CSS along the first Widget base alone, as in `bases.Still`

KILLS_KEPT: Final = 30
_WORD: Final = re.compile(r"\w+")
_BIG_WORD: Final = re.compile(r"\S+")

Place = tuple[int, int]
"""Row and column."""


def replace_at(area: TextArea, text: str, start: Place, end: Place) -> Place:
    """Replace a range, put the cursor behind it and return that place."""
    behind = area.replace(text, start, end).end_location
    area.move_cursor(behind)
    return behind


class ShellKeys(_Base):
    """A text area that has these keys."""

    readline: Readline

    def action_edit(self, name: str) -> None:
        """One of them, behind the keys that still wait in this widget's queue."""
        self.call_later(self._edit, name)

    async def _edit(self, name: str) -> None:
        if name == "line_end" and not self.text:
            await self.run_action("screen.view('bottom')")
        else:
            self.readline.run(name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Refuse `left` in an empty text: the key is free for an action of the screen."""
        return super().check_action(action, parameters) if self.text or parameters != ("left",) else False


class Readline:
    """Kills go into a ring; kills in a row join; Ctrl+Y gives the newest back, Alt+Y then an older one."""

    def __init__(self, area: TextArea, bulk: PasteStore) -> None:
        self._area = area
        self._bulk = bulk
        self._ring: list[str] = []
        self._killed: tuple[Place, str] | None = None
        """Cursor and line after the last kill: the next kill there joins it."""
        self._yanked: tuple[Place, Place, int] | None = None
        """Span of the last yank, and its index in the ring."""

    def run(self, name: str) -> None:
        match name:
            case "undo":
                self._area.action_undo()
            case "redo":
                self._area.action_redo()
            case "left":
                self._area.action_cursor_left()
            case "yank":
                if self._ring:
                    self._put(len(self._ring) - 1, *sorted((self._area.selection.start, self._area.selection.end)))
            case "yank_older":
                if self._yanked is not None and self._yanked[1] == self._area.cursor_location:
                    start, end, which = self._yanked
                    self._put((which - 1) % len(self._ring), start, end)
            case _:
                self._move_or_kill(name)

    def _move_or_kill(self, name: str) -> None:
        cursor = self._area.cursor_location
        match name:
            case "line_start":
                self._area.move_cursor((cursor[0], 0))
            case "line_end":
                self._area.move_cursor((cursor[0], len(self._line(cursor[0]))))
            case "word_left":
                self._area.move_cursor(self._before(_WORD))
            case "word_right":
                self._area.move_cursor(self._behind(_WORD))
            case "kill_to_start":
                self._kill((cursor[0], 0) if cursor[1] else self._find_left_of(cursor), cursor)
            case "kill_to_end":
                end = len(self._line(cursor[0]))
                self._kill(cursor, (cursor[0], end) if cursor[1] < end else self._find_right_of(cursor))
            case "kill_big_word":
                self._kill(self._before(_BIG_WORD), cursor)
            case "kill_word_left":
                self._kill(self._before(_WORD), cursor)
            case "kill_word_right":
                self._kill(cursor, self._behind(_WORD))
            case _:
                raise ValueError(name)

    def _line(self, row: int) -> str:
        return self._area.document.get_line(row)

    def _find_left_of(self, place: Place) -> Place:
        row, column = place
        return (row, column - 1) if column else (row - 1, len(self._line(row - 1))) if row else place

    def _find_right_of(self, place: Place) -> Place:
        row, column = place
        if column < len(self._line(row)):
            return row, column + 1
        return (row + 1, 0) if row + 1 < self._area.document.line_count else place

    def _before(self, word: re.Pattern[str]) -> Place:
        """The start of the word at the cursor's left; over line ends where there is none."""
        row, column = self._area.cursor_location
        while True:
            found = list(word.finditer(self._line(row)[:column]))
            if found:
                return row, found[-1].start()
            if row == 0:
                return 0, 0
            if column:
                return row, 0
            row, column = row - 1, len(self._line(row - 1))

    def _behind(self, word: re.Pattern[str]) -> Place:
        """The end of the word at the cursor's right; over line ends where there is none."""
        row, column = self._area.cursor_location
        while True:
            found = word.search(self._line(row), column)
            if found:
                return row, found.end()
            if row + 1 >= self._area.document.line_count:
                return row, len(self._line(row))
            row, column = row + 1, 0

    def _kill(self, start: Place, end: Place) -> None:
        if self._area.selected_text:
            start, end = sorted((self._area.selection.start, self._area.selection.end))
        for left, right in self._bulk.marks(self._line(start[0])):
            start = (start[0], left) if left < start[1] < right else start
        for left, right in self._bulk.marks(self._line(end[0])):
            end = (end[0], right) if left < end[1] < right else end
        text = self._area.get_text_range(start, end)
        if not text:
            return
        before = self._area.cursor_location, self._line(self._area.cursor_location[0])
        joins = bool(self._ring) and self._killed == before
        backwards = end == before[0]
        self._area.delete(start, end)
        self._area.move_cursor(start)
        if joins:
            self._ring[-1] = text + self._ring[-1] if backwards else self._ring[-1] + text
        else:
            self._ring = [*self._ring, text][-KILLS_KEPT:]
        self._killed = start, self._line(start[0])

    def _put(self, which: int, start: Place, end: Place) -> None:
        self._yanked = start, replace_at(self._area, self._ring[which], start, end), which
        self._killed = None


class DraftText:
    """Reads and replaces the whole text of one text area."""

    def __init__(self, area: TextArea, bulk: PasteStore, answering: Answering) -> None:
        self._area = area
        self._bulk = bulk
        self._answering = answering
        self.prompts: PromptHistory | None = None
        """Older prompts of this folder; None until the services are open."""

    @property
    def content(self) -> str:
        return self._bulk.unfold(self._area.text)

    def put(self, text: str) -> None:
        self._answering.begin(by_hand=False)
        replace_at(self._area, self._bulk.fold(text), (0, 0), self._area.document.end)

    def walk(self, by: int) -> None:
        prompts = self.prompts
        text = None if prompts is None else prompts.older(self.content) if by < 0 else prompts.newer()
        if text is not None:
            self.put(text)

    def leave_prompts(self) -> None:
        if self.prompts is not None:
            self.prompts.leave()


EDITS: Final = ("cursor_", "delete_", "select_")
"""Prefixes of the actions that move the cursor of a text area, remove text or select it."""


@cache
def _edits(kind: type[TextArea]) -> dict[str, str]:
    """Actions by key, of the class and its bases; the app itself runs priority bindings."""
    return {
        key.strip(): each.action
        for one in reversed(kind.__mro__)
        for each in vars(one).get("BINDINGS", ())
        if isinstance(each, Binding) and not each.priority and each.action.startswith(EDITS)
        for key in each.key.split(",")
    }


def edit_at_once(area: TextArea, event: events.Key) -> bool:
    """Carry out an editing key now; False where it is none."""
    action = _edits(type(area)).get(event.key)
    if action is None:
        return False
    event.stop()
    event.prevent_default()
    _, name, arguments = parse(action)
    edit: object = getattr(area, f"action_{name}")(*arguments)
    if isinstance(edit, Coroutine):  # Ctrl+K: it waits for nothing, and so ends with its first step
        with suppress(StopIteration):
            cast("Coroutine[None, None, None]", edit).send(None)
    return True


class PasteMarks:
    """Keeps the cursor before or behind a mark, never inside; a mark is selected when the cursor is before it."""

    def __init__(self, area: TextArea, store: PasteStore) -> None:
        self._area = area
        self._store = store
        self._column_before = 0
        self._written_at: Place | None = None
        """Cursor after the last change: Enter after writing before a mark sends, and does not open it."""

    @property
    def here(self) -> str:
        """The mark that the cursor was moved onto; empty where there is none."""
        cursor = self._area.cursor_location
        return "" if cursor == self._written_at else self.at(cursor)

    def at(self, place: Place) -> str:
        return self._store.at(self._line(place[0]), place[1])

    def show_in(self, line: Text, colour: str | None) -> None:
        for start, end in self._store.marks(line.plain):
            line.stylize(Style(color=colour, bold=True), start, end)

    def change(self, mark: str, text: str) -> None:
        """Give a mark another text; a short one replaces it."""
        for row in range(self._area.document.line_count):
            start = self._line(row).find(mark)
            if start >= 0:
                replace_at(self._area, self._store.change(mark, text), (row, start), (row, start + len(mark)))
                return

    def step_out(self) -> None:
        """Move out of a mark: to its end when coming from its start, else to its start."""
        row, column = self._area.cursor_location
        for start, end in self._store.marks(self._line(row)):
            if start < column < end and self._area.selection.is_empty:
                self._area.move_cursor((row, end if self._column_before <= start else start))
        self._column_before = self._area.cursor_location[1]

    def note_change(self) -> None:
        self._written_at = self._area.cursor_location

    def delete(self, by: int) -> bool:
        """Delete all of the mark that ends (-1) or begins (1) at the cursor; False where there is none."""
        row, column = self._area.cursor_location
        ends = ((end, start) if by < 0 else (start, end) for start, end in self._store.marks(self._line(row)))
        other = next((other for edge, other in ends if edge == column), None)
        if other is None or not self._area.selection.is_empty:
            return False
        self._area.delete((row, min(column, other)), (row, max(column, other)))
        return True

    def _line(self, row: int) -> str:
        return self._area.document.get_line(row)
