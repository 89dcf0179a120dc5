"""Marks of long pastes in a text area: one thing each, opened with Enter or a click, deleted whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rich.style import Style
from rich.text import Text
from textual import events

from phoenix_tui.widgets import composer_messages as messages
from phoenix_tui.widgets.pasting import Shelf

if TYPE_CHECKING:
    from textual.app import App
    from textual.widgets import TextArea as _Base
else:
    _Base = object  # Textual inherits CSS along the first Widget base alone, as in `still.Still`


class PasteMarks(_Base):
    """The cursor stands before a mark or behind it, never in it; before it, it stands on it."""

    shelf: Shelf
    _column_before = 0
    _written_at: tuple[int, int] | None = None
    """Where the cursor stood after the last change: who writes before a mark wants to send, not to open it."""

    @property
    def mark_here(self) -> str:
        """The mark that the cursor was moved onto; empty where there is none."""
        row, column = self.cursor_location
        if self.cursor_location == self._written_at:
            return ""
        return self.shelf.at(self.document.get_line(row), column)

    def get_line(self, line_index: int) -> Text:
        """The line with its marks in the colour of what is mine."""
        line = super().get_line(line_index)
        if marks := self.shelf.marks(line.plain):
            app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual leaves it open
            style = Style(color=app.theme_variables.get("accent"), bold=True)
            for start, end in marks:
                line.stylize(style, start, end)
        return line

    def change_mark(self, mark: str, text: str) -> None:
        """Let a mark stand for another text; a short one takes its place."""
        for row in range(self.document.line_count):
            start = self.document.get_line(row).find(mark)
            if start >= 0:
                behind = self.replace(self.shelf.change(mark, text), (row, start), (row, start + len(mark)))
                self.move_cursor(behind.end_location)
                return

    def leave_mark(self) -> None:
        """Out of a mark: to its end for who came from its start, else to its start."""
        row, column = self.cursor_location
        for start, end in self.shelf.marks(self.document.get_line(row)):
            if start < column < end and self.selection.is_empty:
                self.move_cursor((row, end if self._column_before <= start else start))
        self._column_before = self.cursor_location[1]

    def note_change(self) -> None:
        """Something was written, or taken away."""
        self._written_at = self.cursor_location

    def on_text_area_selection_changed(self) -> None:
        """The cursor moved, by a key or by the mouse."""
        self.leave_mark()

    def on_click(self, event: events.Click) -> None:
        """A click on a mark opens it."""
        row, column = self.get_target_document_location(event)
        if mark := self.shelf.at(self.document.get_line(row), column):
            self.screen.post_message(messages.PasteOpened(mark))

    def action_delete_left(self) -> None:
        """Backspace behind a mark deletes all of it."""
        row, column = self.cursor_location
        start = next((start for start, end in self.shelf.marks(self.document.get_line(row)) if end == column), None)
        if start is not None and self.selection.is_empty:
            self.delete((row, start), (row, column))
        else:
            super().action_delete_left()

    def action_delete_right(self) -> None:
        """Delete on a mark deletes all of it."""
        row, column = self.cursor_location
        end = next((end for start, end in self.shelf.marks(self.document.get_line(row)) if start == column), None)
        if end is not None and self.selection.is_empty:
            self.delete((row, column), (row, end))
        else:
            super().action_delete_right()
