"""A sheet of rows to find one in: palette, help and settings are made of it."""

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
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.headings import heading
from phoenix_tui.text.fuzzy import BASE_SCATTERED, places, rank
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import move_choice
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean_line

SIGN: Final = 2
"""Cells of the sign before a row."""
LEAST_WORDS: Final = 12
MOST_WORDS: Final = 34
GAP: Final = 2
COMMAND: Final = "/"
IN_MEANING: Final = 10
"""Rank of a word found in the meaning only: behind every match of the words."""
CHROME: Final = 4
"""Rows of a sheet that are neither entries nor remark: rule, heading, input, margin."""


class SheetRow(Struct, frozen=True):
    """One row: its words, their meaning, and a remark at the right; `section` heads its group."""

    section: str
    key: str
    words: str
    meaning: str
    remark: str = ""
    argument: str = ""
    """Argument in a separate column."""


class RowsSheet(Sheet[str]):
    """Type to find, Up and Down to choose, Enter to take, Esc to leave. Gives the key of the row."""

    DEFAULT_CSS = """
    RowsSheet {
        & > .sheet { height: auto; max-height: 85%; }
        & Static { height: auto; }
        & LineInput { margin: 0 0 0 2; background: $background; }
        & #remark { color: $text-muted; margin: 0 0 0 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.TYPED)
    WRAPS: ClassVar[bool] = False
    """True to wrap a long meaning; else it is cut."""
    EMPTY: ClassVar[str] = "No matches. Type fewer letters to find more."
    """Text in place of rows."""
    TYPED: ClassVar[bool] = True
    """True when letters filter the rows; else they are keys."""

    def __init__(self, heading: str, entries: Sequence[SheetRow], hint: str, *, current: str = "") -> None:
        super().__init__()
        self._heading = heading
        self._hint = hint
        self._entries = entries
        names = [Content(clean_line(one.words)).cell_length for one in entries if one.argument]
        self._argument_from = max(names, default=0) + GAP
        self._query: str = ""
        self._found: Sequence[SheetRow] = entries
        self._chosen = next((place for place, one in enumerate(entries) if one.key == current), 0)

    def compose(self) -> ComposeResult:
        """Heading, filter line, rows, and details of the selected one."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            if self.TYPED:
                yield LineInput(placeholder="type to filter")
            yield Static(id="rows", markup=False)
            yield Static(id="remark", markup=False)

    def on_mount(self) -> None:
        """Draw and take the keys."""
        self.begin()

    def begin(self) -> None:
        """Draw and take the keys."""
        if self.TYPED:
            self.set_focus(self.query_one(LineInput))
        self._draw()

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Find again; the best is chosen."""
        query = event.text_area.text.lower()
        if query != self._query:
            self._query, self._chosen = query, 0
            self._found = find(self._entries, query)
            self._draw()

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Enter."""
        event.stop()
        self.take_row()

    def take_row(self) -> None:
        """Take the chosen row."""
        if self.chosen is not None:
            self.dismiss(self.chosen.key)

    @property
    def chosen(self) -> SheetRow | None:
        """The row under the cursor."""
        return self._found[self._chosen] if self._found else None

    def action_move(self, by: int) -> None:
        """Choose another row."""
        if self._found:
            self._chosen = move_choice(self._chosen, by, len(self._found))
            self._draw()

    def action_page(self, by: int) -> None:
        """A screenful on."""
        self.action_move(by * max(self._room - 1, 1))

    def remark(self, entry: SheetRow | None) -> str:
        """Text below the rows about the selected one."""
        return ""

    @property
    def _room(self) -> int:
        remark = len(Content(self.remark(self.chosen)).wrap(max(self.measure - SIGN, 1)))
        return max(self.size.height * 85 // 100 - CHROME - remark, 3)

    def _draw(self) -> None:
        place = f"{self._chosen + 1} / {len(self._found)}" if self._found else "0"
        self.query_one("#heading", Static).update(heading(self._heading, self._hint, self.measure, place))
        self.query_one("#rows", Static).update(self._rows())
        remark = self.query_one("#remark", Static)
        remark.update(Content(self.remark(self.chosen)))
        remark.display = bool(self.remark(self.chosen))

    def _rows(self) -> Content:
        if not self._found:
            rows = Content(self.EMPTY).wrap(max(self.measure - SIGN, 1))
            return Content.styled("\n".join(f"{' ' * SIGN}{row.plain}" for row in rows), Tone.QUIET.value)
        lines: list[Content] = []
        headings: set[int] = set()
        first = last = 0
        words_width = self._words_width()
        for place, entry in enumerate(self._found):
            begins = not self._query and (place == 0 or self._found[place - 1].section != entry.section)
            if begins and entry.section:
                headings.add(len(lines))
                lines.append(Content.styled(clean_line(entry.section), f"bold {Tone.YOU.value}"))
            if place == self._chosen:
                first = len(lines) - (1 if begins and entry.section else 0)
            lines += self._row(entry, words_width, chosen=place == self._chosen)
            if place == self._chosen:
                last = len(lines)
        room = self._room
        top = max(0, min(max(last - room, first - room // 2), len(lines) - room))
        shown = lines[top : top + room]
        if top + len(shown) - 1 in headings:
            shown[-1] = Content("")  # a heading without a row below it
        return Content("\n").join(shown)

    def _named(self, entry: SheetRow) -> Content:
        """Name of an entry, and its argument in the common column."""
        words = self._marked(clean_line(entry.words))
        if not entry.argument:
            return words
        apart = " " * (self._argument_from - words.cell_length)
        return Content.assemble(words, apart, (clean_line(entry.argument), Tone.QUIET.value))

    def _words_width(self) -> int:
        longest = max(self._named(one).cell_length for one in self._found)
        return max(min(longest, MOST_WORDS, (self.measure - SIGN) * 45 // 100), LEAST_WORDS)

    def _row(self, entry: SheetRow, words_width: int, *, chosen: bool) -> list[Content]:
        width = max(self.measure - SIGN, 1)
        meaning = Content.styled(clean_line(entry.meaning), Tone.QUIET.value)
        left = max(width // 3, width - words_width - meaning.cell_length - 2 * GAP)
        remark = Content.styled(clean_line(entry.remark), Tone.QUIET.value).truncate(left, ellipsis=True)
        words = self._named(entry).truncate(words_width, ellipsis=True, pad=True)
        room = max(width - words_width - GAP - (remark.cell_length + GAP if remark.cell_length else 0), 1)
        parts = (meaning.wrap(room) if self.WRAPS else [meaning.truncate(room, ellipsis=True)]) or [Content("")]
        lines: list[Content] = []
        for place, part in enumerate(parts):
            lead = words if place == 0 else Content(" " * words_width)
            end = remark if place == 0 else Content("")
            pad = " " * (room - part.cell_length + GAP) if end.cell_length else ""
            sign = "›" if chosen and place == 0 else " "
            lines.append(Content.assemble(f"{sign} ", lead, " " * GAP, part, pad, end))
        if not chosen:
            return lines
        return [Content(line.plain).truncate(width + GAP, pad=True).stylize("reverse") for line in lines]

    def _marked(self, words: str) -> Content:
        content = Content(words)
        for word in self._query.split():
            for place in places(word, words):
                content = content.stylize(f"bold {Tone.YOU.value}", place, place + 1)
        return content


def find(entries: Sequence[SheetRow], query: str) -> list[SheetRow]:
    """Entries that hold every word of the query, in their words or their meaning; best first."""
    words = query.split()
    ranked: list[tuple[int, int, int]] = []
    for place, entry in enumerate(entries):
        found = [one for word in words if (one := _rank(word, entry)) is not None]
        if len(found) == len(words):
            worst = max(found, default=0)
            name = entry.words.removeprefix(COMMAND)  # the slash does not count in a comparison of lengths
            ranked.append((worst, len(name) if words and worst < IN_MEANING else 0, place))
    ranked.sort()
    if ranked and ranked[0][0] < BASE_SCATTERED:  # scattered letters only without a contiguous match
        ranked = [one for one in ranked if not BASE_SCATTERED <= one[0] < IN_MEANING]
    return [entries[place] for *_, place in ranked]


def _rank(word: str, entry: SheetRow) -> int | None:
    found = rank(word, clean_line(entry.words))
    if found is not None:
        return found[0]
    return IN_MEANING if word in f"{entry.argument} {entry.meaning} {entry.remark}".lower() else None
