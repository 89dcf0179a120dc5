"""The editing keys of a shell's line for a text area, as in GNU Readline: kills, yanks, words, undo and redo."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from textual.widgets import TextArea

from phoenix_tui.widgets.pasting import PasteStore

if TYPE_CHECKING:
    _Base = TextArea
else:
    _Base = object  # Textual inherits CSS along the first Widget base alone, as in `still.Still`

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
        self.call_later(self.readline.run, name)

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
        """Do one of the named edits."""
        match name:
            case "undo":
                self._area.action_undo()
            case "redo":
                self._area.action_redo()
            case "left":
                self._area.action_cursor_left()
            case "yank":
                self._yank()
            case "yank_older":
                self._yank_older()
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
                self._kill((cursor[0], 0) if cursor[1] else self._left_of(cursor), cursor)
            case "kill_to_end":
                end = len(self._line(cursor[0]))
                self._kill(cursor, (cursor[0], end) if cursor[1] < end else self._right_of(cursor))
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

    def _left_of(self, place: Place) -> Place:
        row, column = place
        return (row, column - 1) if column else (row - 1, len(self._line(row - 1))) if row else place

    def _right_of(self, place: Place) -> Place:
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
        start, end = self._whole(start, end)
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

    def _whole(self, start: Place, end: Place) -> tuple[Place, Place]:
        """The range with every mark that it cuts through in it."""
        for left, right in self._bulk.marks(self._line(start[0])):
            start = (start[0], left) if left < start[1] < right else start
        for left, right in self._bulk.marks(self._line(end[0])):
            end = (end[0], right) if left < end[1] < right else end
        return start, end

    def _yank(self) -> None:
        if self._ring:
            self._put(len(self._ring) - 1, *sorted((self._area.selection.start, self._area.selection.end)))

    def _yank_older(self) -> None:
        if self._yanked is not None and self._yanked[1] == self._area.cursor_location:
            start, end, which = self._yanked
            self._put((which - 1) % len(self._ring), start, end)

    def _put(self, which: int, start: Place, end: Place) -> None:
        self._yanked = start, replace_at(self._area, self._ring[which], start, end), which
        self._killed = None
