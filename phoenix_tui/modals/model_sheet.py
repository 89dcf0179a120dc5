"""The models on offer: Enter uses one here, letters make it the default, choose its effort, or mark it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.content import Content
from textual.widgets import TextArea

from phoenix_tui.features.model_rows import KEY, ModelRow, narrowed
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import bindings
from phoenix_tui.keys.scopes import Scope
from phoenix_tui.modals.picker_sheet import is_reference
from phoenix_tui.modals.rows_sheet import LEAST_WORDS, RowsSheet, SheetRow
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean_line

SHARE_PERCENT: Final = 55
"""Per cent of a row that names take at most."""


class ModelSheet(RowsSheet):
    """Gives an action and a reference with a blank between: use, default, effort; or `key` and a provider."""

    DEFAULT_CSS = "ModelSheet { & LineInput { display: none; } }"
    EMPTY: ClassVar[str] = "No matches. Enter uses PROVIDER/MODEL as typed."
    AUTO_FOCUS: ClassVar[str | None] = ""
    """The line to narrow takes the letters once it is opened."""
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS, "sheet_up", "sheet_down", "sheet_take", "sheet_close"),
        *bindings(Scope.MODELS),
    ]

    def __init__(self, rows: Sequence[ModelRow], mark: Callable[[str], Sequence[ModelRow]]) -> None:
        self._mark = mark
        self._models = {}
        super().__init__("Model", self._take_in(rows), _keys())

    def on_mount(self) -> None:
        """Draw; letters are keys until the filter is opened."""
        self.set_focus(None)
        self._draw()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Narrow to rows that hold every word."""
        self._query, self._chosen = event.text_area.text.lower(), 0
        self._narrow()

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Take the chosen row, or the typed reference where there is none."""
        event.stop()
        if self._found:
            self.action_take()
        elif is_reference(event.text):
            self.dismiss(f"use {event.text.strip()}")

    def action_filter(self) -> None:
        """Open the line that narrows."""
        line = self.query_one(LineInput)
        line.display = True
        self.set_focus(line)

    def action_close(self) -> None:
        """End the filter, else close the sheet."""
        line = self.query_one(LineInput)
        if not line.display:
            self.dismiss(None)
            return
        line.fill("")
        line.display = False
        self.set_focus(None)

    def action_take(self) -> None:
        """Use it in this conversation, or store a key of its provider."""
        if self.chosen is not None:
            key = self.chosen.key
            self.dismiss(key if key.startswith(KEY) else f"use {key}")

    def action_want(self, action: str) -> None:
        """Make it the default, or choose its effort, too."""
        if self.chosen is not None and not self.chosen.key.startswith(KEY):
            self.dismiss(f"{action} {self.chosen.key}")

    def action_mark(self) -> None:
        """Mark it as a favourite, or take the mark away."""
        if self.chosen is not None and not self.chosen.key.startswith(KEY):
            section, key = self.chosen.section, self.chosen.key
            self._entries = self._take_in(self._mark(key))
            self._narrow()
            same = [place for place, one in enumerate(self._found) if one.key == key]
            kept = [place for place in same if self._found[place].section == section]
            self._chosen = (kept or same or [0])[0]
            self._draw()

    def remark(self, entry: SheetRow | None) -> str:
        """Note about the chosen model."""
        return clean_line(entry.remark) if entry is not None else ""

    def _take_in(self, rows: Sequence[ModelRow]) -> list[SheetRow]:
        entries = [SheetRow(one.section, one.key, one.words, one.facts, one.note) for one in rows]
        self._models = dict(zip(map(id, rows), entries, strict=True))
        self._rows_of = rows
        self._longest = max((len(one.words) for one in rows), default=LEAST_WORDS)
        return entries

    def _narrow(self) -> None:
        self._found = [self._models[id(one)] for one in narrowed(self._rows_of, self._query)]
        self._draw()

    def _words_width(self) -> int:
        return max(min(self._longest, self.measure * SHARE_PERCENT // 100), LEAST_WORDS)

    def _rows(self) -> Content:
        """Rows around the chosen one: a list of a thousand is drawn in no time."""
        if not self._found:
            return Content.styled(f"  {self.EMPTY}", Tone.QUIET.value)
        room = self._room
        first = max(0, min(self._chosen - room // 2, len(self._found) - room))
        lines: list[Content] = []
        chosen_line, width = 0, self._words_width()
        for place, entry in enumerate(self._found[first : first + room], start=first):
            begins = place == first or self._found[place - 1].section != entry.section
            if begins and not self._query:
                lines.append(Content.styled(clean_line(entry.section), f"bold {Tone.YOU.value}"))
            chosen_line = len(lines) if place == self._chosen else chosen_line
            lines.append(self._line(entry, width, chosen=place == self._chosen))
        top = max(0, min(chosen_line - room + 2, len(lines) - room)) if chosen_line >= room else 0
        return Content("\n").join(lines[top : top + room])

    def _line(self, entry: SheetRow, width: int, *, chosen: bool) -> Content:
        words = Content(clean_line(entry.words)).truncate(width, ellipsis=True, pad=True)
        facts = (clean_line(entry.meaning), Tone.QUIET.value)
        line = Content.assemble("› " if chosen else "  ", words, "  ", facts)
        if entry.remark == "in use":
            line = Content.assemble(line, "  ", (entry.remark, Tone.QUIET.value))
        line = line.truncate(self.measure, ellipsis=True, pad=True)
        return Content.styled(line.plain, "reverse") if chosen else line


def _keys() -> str:
    return hint(
        ("sheet_take", "here"),
        ("model_default", "default"),
        ("model_effort", "effort"),
        ("model_mark", "favourite"),
        ("model_filter", "filters"),
    )
