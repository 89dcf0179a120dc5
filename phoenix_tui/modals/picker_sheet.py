"""Choose one of many: models, conversations, commands, modes, themes, search hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.markdown.lines import cut_middle
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.headings import heading, whole_facts
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import first_visible, move_choice
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean_line

MOST_ROWS: Final = 12
SIGN: Final = 2
"""Cells before the words, where the chosen row has its mark."""
SHARE_PERCENT: Final = 70
"""Per cent of the screen that a sheet takes at most (`Sheet`)."""
FRAME_ROWS: Final = 3
"""Border, heading and the line to narrow."""
WORDS_PERCENT: Final = 60
"""Per cent of a row that words take at most, where remarks need the rest."""
BETWEEN: Final = 2
"""Blanks between words and remark."""


class PickerRow(Struct, frozen=True):
    """One row: the returned key, its words, and a quiet remark at the right."""

    key: str
    words: str
    remark: str = ""
    more: str = ""
    """Text that the filter searches, but that is not shown."""


def is_reference(text: str) -> bool:
    """True when a text can be `provider/model`, and is no prose: words typed in haste choose no model."""
    provider, slash, model = text.strip().partition("/")
    return bool(provider and slash and model) and not any(letter.isspace() for letter in text.strip())


class PickerSheet(Sheet[str]):
    """Type to narrow, Up and Down to choose, Enter to take, Esc to leave. Gives the key of the row."""

    DEFAULT_CSS = """
    PickerSheet { & Static { height: auto; } & LineInput { margin: 0 0 0 2; background: $background; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.TYPED, typed_page_up="move(-10)", typed_page_down="move(10)")

    TAKES: ClassVar[str] = "Enter applies"
    """Action of Enter on the selected row."""
    rows_below: int = 0
    """Rows that a subclass shows below the list."""

    def __init__(
        self, heading: str, choices: Sequence[PickerRow], *, current: str = "", free: bool = False, takes: str = ""
    ) -> None:
        super().__init__()
        self._takes = takes or self.TAKES
        self._heading = heading
        self._choices = choices
        self._free = free
        self._found = list(choices)
        self._longest = max((_cells(one.words) for one in choices), default=1)
        self._remarks = max((_cells(one.remark) for one in choices), default=0)
        self._chosen = next((place for place, one in enumerate(choices) if one.key == current), 0)

    def compose(self) -> ComposeResult:
        """Heading, line to narrow, rows."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield LineInput(placeholder="type to filter")
            yield Static(id="rows", markup=False)

    def on_mount(self) -> None:
        """Draw and take the keys."""
        self.begin()

    def begin(self) -> None:
        """Draw and take the keys."""
        self.set_focus(self.query_one(LineInput))
        self._draw()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Find again."""
        self.narrow(event.text_area.text)

    def narrow(self, text: str) -> None:
        """Narrow to rows that hold every word of `text`."""
        words = text.lower().split()
        self._found = [
            one
            for one in self._choices
            if all(word in f"{one.words} {one.remark} {one.key} {one.more}".lower() for word in words)
        ]
        self._chosen = min(self._chosen, max(len(self._found) - 1, 0))
        self._draw()

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Take the chosen row, or the typed text where that is allowed."""
        event.stop()
        if self._found:
            self.dismiss(self._found[self._chosen].key)
        elif self._free and is_reference(event.text):
            self.dismiss(event.text)

    def action_move(self, by: int) -> None:
        """Choose another row."""
        if self._found:
            self._chosen = move_choice(self._chosen, by, len(self._found))
            self._draw()

    def _draw(self) -> None:
        place = f"{self._chosen + 1} / {len(self._found)}" if self._found else "0"
        self.query_one("#heading", Static).update(heading(self._heading, self._takes, self.measure, place))
        self.query_one("#rows", Static).update(self._rows())

    @property
    def _room(self) -> int:
        """Rows that the list may have in a sheet that leaves some of the screen free."""
        return self.size.height * SHARE_PERCENT // 100 - FRAME_ROWS - self.rows_below

    def _rows(self) -> Content:
        if not self._found:
            takes = self._free and is_reference(self.query_one(LineInput).text)
            wide = "Enter uses it as typed." if takes else "Type fewer letters to find more."
            return Content.styled(f"  No matches. {wide}", Tone.QUIET.value)
        rows = max(min(MOST_ROWS, self.size.height // 2, self._room), 2)
        first = first_visible(self._chosen, len(self._found), rows)
        lines = [
            self._row(one, place == self._chosen)
            for place, one in enumerate(self._found[first : first + rows], start=first)
        ]
        return Content("\n").join(lines)

    def _row(self, choice: PickerRow, chosen: bool) -> Content:
        width = self.measure
        room = width - SIGN
        if self._remarks:
            room = min(self._longest, max(width * WORDS_PERCENT // 100, room - BETWEEN - self._remarks))
        shown = clean_line(choice.words)
        shown = shown if " " in shown else cut_middle(shown, room)  # names differ at their ends, sentences do not
        words = Content(shown).truncate(room, ellipsis=True, pad=True)
        line = Content.assemble("› " if chosen else "  ", words)
        if self._remarks:
            remark = whole_facts(clean_line(choice.remark), width - line.cell_length - BETWEEN)
            line = Content.assemble(line, " " * BETWEEN, (remark, Tone.QUIET.value))
        line = line.truncate(width, ellipsis=True, pad=True)
        return Content.styled(line.plain, "reverse") if chosen else line


def _cells(text: str) -> int:
    return Content(clean_line(text)).cell_length
