"""Marks of long pastes in a text area: one thing each, opened with Enter or a click, deleted whole."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.widgets import TextArea

from phoenix_tui.widgets.pasting import PasteStore
from phoenix_tui.widgets.readline import Place, replace_at


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
        """The mark at a place of the text; empty where there is none."""
        return self._store.at(self._line(place[0]), place[1])

    def show_in(self, line: Text, colour: str | None) -> None:
        """Colour the marks of a line."""
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
        """Note the cursor after a change of the text."""
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
