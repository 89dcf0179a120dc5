"""Painting of the list of conversations: its rows, its foot, and the text of an empty one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.list_model import Line, ListModel
from phoenix_tui.widgets.list_rows import Ink, Signs, pieces
from phoenix_tui.widgets.roster import Group, RosterRow

TONE_OF: Final[dict[Ink, Tone]] = {Ink.QUIET: Tone.QUIET, Ink.WARNING: Tone.NEEDS_YOU, Ink.YOU: Tone.YOU}
"""Inks that are one colour in every row."""
EMPTY: Final[dict[Group | None, tuple[str, ...]]] = {
    None: ("No conversations yet.",),
    Group.ARCHIVED: ("The archive is empty.", "/archive moves a conversation here."),
    Group.TRASH: ("The trash is empty.",),
}
HINT: Final = "? keys"
NOTHING_FOUND: Final = ("No matches.", "Type fewer letters.")


class ListPainter:
    """Painter of one line; takes colours from its widget and everything else from the model."""

    def __init__(
        self,
        model: ListModel,
        text: Style,
        style: Callable[[Tone | None], Style],
        width: int,
        *,
        plain: bool,
        focused: bool,
    ) -> None:
        self._model = model
        self._text = text
        self._style = style
        self._width = width
        self._plain = plain
        self._focused = focused

    def line(self, line: Line, y: int) -> Strip:
        """A heading or a conversation."""
        if isinstance(line, RosterRow):
            return self._row(line, under_cursor=self._focused and self._model.row == y)
        return self._quiet(f" {line}")

    def hint(self, y: int) -> Strip:
        """Row below the last line: the text of an empty list, else nothing."""
        words = NOTHING_FOUND if self._model.text else EMPTY[self._model.view]
        return self._quiet("" if self._model.order or not self._model.known or y >= len(words) else f" {words[y]}")

    def foot(self) -> Strip:
        """The last row: the filter, the marks, or how many there are."""
        model = self._model
        if model.filtering or model.text:
            text = f"/{model.text}{'▏' if model.filtering else ''}"
            return self._spread(text, model.found() if model.order else "", Tone.YOU)
        if model.marked:
            return self._spread(
                f"{len(model.marked)} marked", HINT if self._focused and not model.view else "", Tone.YOU
            )
        if not (self._focused and model.order) or model.view:
            return self._spread(model.count(), "", Tone.QUIET)
        fits = cell_len(model.count() + HINT) + 3 <= self._width
        return self._spread(model.count() if fits else model.count().replace(" conversations", ""), HINT, Tone.QUIET)

    def _quiet(self, text: str) -> Strip:
        return Strip([Segment(set_cell_size(text, self._width), self._style(Tone.QUIET))], self._width)

    def _spread(self, left: str, right: str, tone: Tone) -> Strip:
        """One text at the left, of which the end is kept, and one at the right."""
        room = max(self._width - cell_len(right) - 3, 1)
        while cell_len(left) > room:
            left = f"…{left[2:]}"
        start = set_cell_size(f" {left}", max(self._width - cell_len(right) - 1, 0))
        segments = [Segment(start, self._style(tone)), Segment(f"{right} ", self._style(Tone.QUIET))]
        return Strip(segments).adjust_cell_length(self._width)

    def _row(self, row: RosterRow, *, under_cursor: bool) -> Strip:
        text = self._text
        title = self._style(None) if row.unread or row.id == self._model.current else text
        styles = {ink: self._style(tone) for ink, tone in TONE_OF.items()}
        styles |= {Ink.TEXT: text, Ink.TITLE: title, Ink.TONE: self._style(row.label.glyph.tone)}
        line = pieces(row, self._signs(row), self._width)
        strip = Strip([Segment(words, styles[ink]) for words, ink in line]).adjust_cell_length(self._width)
        return Strip([Segment(strip.text, title + Style(reverse=True))], self._width) if under_cursor else strip

    def _signs(self, row: RosterRow) -> Signs:
        model, glyph = self._model, row.label.glyph.mark(self._plain)
        if row.id in model.marked:
            return Signs("+", Ink.YOU, glyph)
        if self._focused and not model.view and (slot := model.slots().get(row.id)):
            return Signs(str(slot), Ink.QUIET, glyph)
        shown = row.id == model.current and not self._focused
        return Signs((">" if self._plain else "›") if shown else " ", Ink.TEXT, glyph)
