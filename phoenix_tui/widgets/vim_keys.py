"""Vim's keys in a text area, with vim's undo: applies the steps of `vim.press`. Loaded only where the user wants it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace
from textual import events
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from phoenix_tui.widgets.composer_messages import ModeChanged
from phoenix_tui.widgets.pasting import PasteStore
from phoenix_tui.widgets.readline import DraftText
from phoenix_tui.widgets.vim import Draft, Mode, VimRequest, VimState, VimStep, press
from phoenix_tui.widgets.vim_motions import line_end, line_start


class VimChanges:
    """Groups the edits of a text area, which keeps them in smaller pieces."""

    def __init__(self, area: TextArea) -> None:
        self._area = area
        self._depths: list[int] = []
        """Number of pieces that could be undone when each change began."""
        self._undone: list[int] = []
        """Number of pieces that each undo took back."""

    def begin(self) -> None:
        self._area.history.checkpoint()
        self._depths.append(self._depth())

    def forget(self) -> None:
        """Forget the changes of another text: earlier ones are undone piece by piece."""
        self._depths.clear()

    def undo(self) -> None:
        depth = self._depth()
        while self._depths and self._depths[-1] >= depth:
            self._depths.pop()  # it changed nothing, or was undone in another way
        wanted = self._depths.pop() if self._depths else max(depth - 1, 0)
        if not self._area.history.redo_stack:
            self._undone.clear()
        self._undone.append(depth - wanted)
        for _ in range(depth - wanted):
            self._area.action_undo()

    def redo(self) -> None:
        if not self._area.history.redo_stack:
            return
        self._depths.append(self._depth())
        for _ in range(self._undone.pop() if self._undone else 1):
            self._area.action_redo()

    def _depth(self) -> int:
        return len(self._area.history.undo_stack)


def find_written(before: Draft, text: str) -> str | None:
    """Text inserted at one place of a draft; None when more has changed than that."""
    head, tail = before.text[: before.at], before.text[before.at :]
    longer = len(text) >= len(before.text)
    inside = longer and text.startswith(head) and text.endswith(tail)
    return text[before.at : len(text) - len(tail)] if inside else None


TO_NORMAL: Final = "to normal"
DROPS: Final = "cancels the command"
NAMED: Final = {"left": "h", "right": "l", "backspace": "h", "delete": "x"}
"""Keys without a letter and the letter that does the same."""


class VimKeys:
    """Keeps the mode. In INSERT every key is the text area's."""

    def __init__(self, area: TextArea, bulk: PasteStore, draft: DraftText) -> None:
        self._area = area
        self._bulk = bulk
        self._whole = draft
        self.state = VimState()
        self._before: Draft | None = None
        """The text and the place where INSERT was begun by a command; None where it was not."""
        self._written = ""
        """Text written there last."""
        self._changes = VimChanges(area)

    @property
    def mode(self) -> Mode:
        return self.state.mode

    @property
    def takes_escape(self) -> bool:
        """True when Esc leaves a mode or an unfinished command."""
        return self.mode is not Mode.NORMAL or self.state.is_waiting

    @property
    def esc_hint(self) -> str:
        """Action of Esc here before any other; empty for none."""
        if self.mode is not Mode.NORMAL:
            return TO_NORMAL
        return DROPS if self.state.is_waiting else ""

    @property
    def words(self) -> str:
        return f"{self.mode.value} {self.state.keys}" if self.state.is_waiting else self.mode.value

    def take(self, event: events.Key) -> bool:
        key = NAMED.get(event.key) or (event.character if event.is_printable else None)
        if self.mode is Mode.INSERT or key is None:
            return False
        self._do(press(self.state, key, self._draft()))
        return True

    def escape(self) -> bool:
        """Esc: from INSERT and VISUAL to NORMAL, and out of an unfinished command; False where there is none."""
        if not self.takes_escape:
            return False
        mode = self.mode
        row, column = self._area.cursor_location
        self._enter(self.state.rest())
        if self._before is not None:
            # A change in which the cursor moved elsewhere is not repeated.
            text, self._before = find_written(self._before, self._draft().text), None
            if text is None:
                self.state = replace(self.state, change="")
            else:
                self._written = text
        self._area.move_cursor((row, max(column - (mode is Mode.INSERT), 0)))
        return True

    def redo(self) -> bool:
        if self.mode is Mode.INSERT:
            return False
        self._changes.redo()
        self._enter(self.state.rest())
        self._onto_sign()
        return True

    def begin(self) -> None:
        self._changes.forget()
        self._before = None
        self._enter(self.state.rest(Mode.INSERT))

    def _do(self, step: VimStep) -> None:
        begins = step.state.mode is Mode.INSERT and self.mode is not Mode.INSERT
        if step.edit is not None or begins:
            self._changes.begin()
        if step.edit is not None:
            self._area.replace(step.edit.text, self._place(step.edit.start), self._place(step.edit.end))
        self._enter(step.state)
        if step.state.mode in {Mode.VISUAL, Mode.LINES}:
            # Show the range of an operator; the cursor is on the last sign.
            anchor = step.state.anchor
            at = step.at
            text = self._draft().text
            if step.state.mode is Mode.LINES:
                first, last = sorted((anchor, at))
                ends = line_start(text, first), max(line_end(text, last) - 1, 0)
                anchor, at = ends if anchor <= at else ends[::-1]
            self._area.selection = Selection(self._place(anchor + (anchor > at)), self._place(at))
        else:
            self._area.move_cursor(self._place(step.at))
        if begins:
            self._before = self._draft()
        self._carry_out(step.request)

    def _carry_out(self, request: VimRequest) -> None:
        match request:
            case "undo":
                self._changes.undo()
            case "repeat":
                again = self._written
                for key in self.state.change:
                    self._do(press(self.state, key, self._draft()))
                if self.mode is Mode.INSERT:
                    self._area.insert(again)
                    self.escape()
            case "older":
                self._whole.walk(-1)
            case "newer":
                self._whole.walk(1)
            case "":
                return
        self._onto_sign()

    def _onto_sign(self) -> None:
        """Move the cursor of NORMAL from the end of a line onto its last sign."""
        row, column = self._area.cursor_location
        last = len(self._area.document.get_line(row)) - 1
        if column > last >= 0:
            self._area.move_cursor((row, last))

    def _enter(self, state: VimState) -> None:
        before, self.state = self.state, state
        if (before.mode, before.is_waiting, before.keys) != (state.mode, state.is_waiting, state.keys):
            self._area.post_message(ModeChanged())

    def _draft(self) -> Draft:
        document = self._area.document
        text = "\n".join(document.get_line(each) for each in range(document.line_count))
        marks = [(self._offset((row, left)), self._offset((row, right))) for row, left, right in self._find_marks()]
        return Draft(text, self._offset(self._area.cursor_location), marks)

    def _find_marks(self) -> list[tuple[int, int, int]]:
        document = self._area.document
        lines = range(document.line_count)
        return [(row, left, right) for row in lines for left, right in self._bulk.marks(document.get_line(row))]

    def _offset(self, place: tuple[int, int]) -> int:
        row, column = place
        return sum(len(self._area.document.get_line(each)) + 1 for each in range(row)) + column

    def _place(self, offset: int) -> tuple[int, int]:
        row = 0
        while row + 1 < self._area.document.line_count and offset > len(self._area.document.get_line(row)):
            offset -= len(self._area.document.get_line(row)) + 1
            row += 1
        return row, min(offset, len(self._area.document.get_line(row)))
