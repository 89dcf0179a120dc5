"""Sheets of rows to find one in: palette, settings, and the choice of one of many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from msgspec import Struct
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from phoenix_tui.features.front_end import PageRow
from phoenix_tui.features.service_interfaces import Setting
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.markdown.lines import cut_middle
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.fuzzy import BASE_SCATTERED, places, rank
from phoenix_tui.text.labels import Tone, short_path
from phoenix_tui.widgets.bases import first_visible, first_visible_line, move_choice
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.workspace.environment import ThemeControl
from tools.clean import clean_line

BETWEEN: Final = " · "
"""Separator of two keys of a hint, or of two facts."""
LEAST_FACT: Final = 12
"""Cells of a fact that tell something; fewer are left out."""


def heading(name: str, keys: str, width: int, place: str = "") -> Content:
    """Name, place in the list and keys; the last keys go where they do not fit, none is cut."""
    facts = f"   {place}" if place else ""
    room = width - Content(f"{name}{facts}").cell_length - 3
    parts = keys.split(BETWEEN) if keys else []
    while parts and Content(BETWEEN.join(parts)).cell_length > room:
        parts.pop()
    shown = f"{facts}   {BETWEEN.join(parts)}" if parts else facts
    return Content.assemble((name, "bold"), (shown, Tone.QUIET.value)).truncate(max(width, 1), ellipsis=True)


def whole_facts(text: str, room: int) -> str:
    """Facts without the last one where hardly any of it could be seen."""
    if cell_len(text) <= room:
        return text
    kept = text[:room].rfind(BETWEEN)
    return text[:kept] if kept > 0 and room - cell_len(text[:kept]) < LEAST_FACT + len(BETWEEN) else text


SIGN: Final = 2
"""Cells of the sign before a row."""
LEAST_WORDS: Final = 12
MOST_WORDS: Final = 34
GAP: Final = 2
COMMAND: Final = "/"
IN_MEANING: Final = 10
"""Rank of a word found in the meaning only: behind every match of the words."""
NO_MATCHES: Final = "No matches. Type fewer letters to find more."
CHROME: Final = 4
"""Rows of a sheet that are neither entries nor remark: rule, heading, input, margin."""


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
    TYPED: ClassVar[bool] = True
    """True when letters filter the rows; else they are keys."""

    def __init__(
        self,
        heading: str,
        entries: Sequence[PageRow],
        hint: str,
        *,
        current: str = "",
        empty: str = NO_MATCHES,
        every: Sequence[PageRow] = (),
        shows_every: bool = False,
    ) -> None:
        """Begin at the row `current`; `empty` is the text in place of rows. A query finds rows of `every`, if there are
        any; they are shown from the start with `shows_every`, or where `current` is one of them alone.
        """
        super().__init__()
        self._empty = empty
        self._heading = heading
        self._hint = hint
        self._entries: Sequence[PageRow] = entries
        self._every = every or entries
        names = [Content(clean_line(one.words)).cell_length for one in self._every if one.argument]
        self._argument_from = max(names, default=0) + GAP
        self._query: str = ""
        keys = {one.key for one in self._every} - {one.key for one in entries}
        self.shows_every = shows_every or current in keys
        """True while all rows are shown."""
        self._found: Sequence[PageRow] = self._page
        self._chosen = next((place for place, one in enumerate(self._found) if one.key == current), 0)

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            if self.TYPED:
                yield LineInput(placeholder="type to filter")
            yield Static(id="rows", markup=False)
            yield Static(id="remark", markup=False)

    def on_mount(self) -> None:
        self.begin()

    def begin(self) -> None:
        if self.TYPED:
            self.set_focus(self.query_one(LineInput))
        self._draw()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self.narrow(event.text_area.text.lower())

    def narrow(self, query: str) -> None:
        """Find again; the best is chosen."""
        if query != self._query:
            self._query, self._chosen = query, 0
            self._found = find(self._every, query) if query else self._page
            self._draw()

    def action_switch(self) -> None:
        """Show all rows, or the first ones again; a query finds among all anyway."""
        self.shows_every = not self.shows_every
        if not self._query:
            self._found, self._chosen = self._page, 0
        self._draw()

    @property
    def _page(self) -> Sequence[PageRow]:
        return self._every if self.shows_every else self._entries

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        event.stop()
        self.take_row()

    def take_row(self) -> None:
        """Take the chosen row."""
        if self.chosen is not None:
            self.dismiss(self.chosen.key)

    @property
    def chosen(self) -> PageRow | None:
        """The row under the cursor."""
        return self._found[self._chosen] if self._found else None

    def action_move(self, by: int) -> None:
        if self._found:
            self._chosen = move_choice(self._chosen, by, len(self._found))
            self._draw()

    def action_page(self, by: int) -> None:
        self.action_move(by * max(self._room - 1, 1))

    def remark(self, entry: PageRow | None) -> str:
        """Text below the rows about the selected one."""
        return ""

    @property
    def title_now(self) -> str:
        """Title of the rows that are shown."""
        return self._heading

    @property
    def keys_now(self) -> str:
        """Keys for the heading."""
        return self._hint

    @property
    def _room(self) -> int:
        remark = len(Content(self.remark(self.chosen)).wrap(max(self.measure - SIGN, 1)))
        return max(self.size.height * 85 // 100 - CHROME - remark, 3)

    def _draw(self) -> None:
        place = f"{self._chosen + 1} / {len(self._found)}" if self._found else "0" if self._entries else ""
        self.query_one("#heading", Static).update(heading(self.title_now, self.keys_now, self.measure, place))
        self.query_one("#rows", Static).update(self._rows())
        remark = self.query_one("#remark", Static)
        remark.update(Content(self.remark(self.chosen)))
        remark.display = bool(self.remark(self.chosen))

    def _rows(self) -> Content:
        if not self._found:
            rows = Content(self._empty).wrap(max(self.measure - SIGN, 1))
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
        top = first_visible_line(first, last, len(lines), room)
        shown = lines[top : top + room]
        if top + len(shown) - 1 in headings:
            shown[-1] = Content("")  # a heading without a row below it
        return Content("\n").join(shown)

    def _format_name(self, entry: PageRow) -> Content:
        """Name of an entry, and its argument in the common column."""
        name = clean_line(entry.words)
        words = Content(name)
        for word in self._query.split():
            for place in places(word, name):
                words = words.stylize(f"bold {Tone.YOU.value}", place, place + 1)
        if not entry.argument:
            return words
        apart = " " * (self._argument_from - words.cell_length)
        return Content.assemble(words, apart, (clean_line(entry.argument), Tone.QUIET.value))

    def _words_width(self) -> int:
        longest = max(self._format_name(one).cell_length for one in self._found)
        if not any(one.meaning or one.remark for one in self._found):
            return max(min(longest, self.measure - SIGN - GAP), LEAST_WORDS)
        return max(min(longest, MOST_WORDS, (self.measure - SIGN) * 45 // 100), LEAST_WORDS)

    def _row(self, entry: PageRow, words_width: int, *, chosen: bool) -> list[Content]:
        width = max(self.measure - SIGN, 1)
        meaning = Content.styled(clean_line(entry.meaning), Tone.QUIET.value)
        left = max(width // 3, width - words_width - meaning.cell_length - 2 * GAP)
        remark = Content.styled(clean_line(entry.remark), Tone.QUIET.value).truncate(left, ellipsis=True)
        words = self._format_name(entry).truncate(words_width, ellipsis=True, pad=True)
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


def find(entries: Sequence[PageRow], query: str) -> list[PageRow]:
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


def _rank(word: str, entry: PageRow) -> int | None:
    found = rank(word, clean_line(entry.words))
    if found is not None:
        return found[0]
    return IN_MEANING if word in f"{entry.argument} {entry.meaning} {entry.remark}".lower() else None


MOST_ROWS: Final = 12
SHARE_PERCENT: Final = 70
"""Per cent of the screen that a sheet takes at most (`Sheet`)."""
FRAME_ROWS: Final = 3
"""Border, heading and the line to narrow."""
WORDS_PERCENT: Final = 60
"""Per cent of a row that words take at most, where remarks need the rest."""
REMARK_GAP: Final = 2
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

    def __init__(self, heading: str, choices: Sequence[PickerRow], *, current: str = "", takes: str = "") -> None:
        super().__init__()
        self._takes = takes or self.TAKES
        self._heading = self.title = heading
        self._choices = choices
        self._found = list(choices)
        self._longest = max((_cells(one.words) for one in choices), default=1)
        self._remarks = max((_cells(one.remark) for one in choices), default=0)
        self._chosen = next((place for place, one in enumerate(choices) if one.key == current), 0)

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield LineInput(placeholder="type to filter")
            yield Static(id="rows", markup=False)

    def on_mount(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.set_focus(self.query_one(LineInput))
        self._draw()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
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
        """Take the chosen row."""
        event.stop()
        if self._found:
            self.dismiss(self._found[self._chosen].key)

    def action_move(self, by: int) -> None:
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
            return Content.styled("  No matches. Type fewer letters to find more.", Tone.QUIET.value)
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
            room = min(self._longest, max(width * WORDS_PERCENT // 100, room - REMARK_GAP - self._remarks))
        shown = clean_line(choice.words)
        shown = shown if " " in shown else cut_middle(shown, room)  # names differ at their ends, sentences do not
        words = Content(shown).truncate(room, ellipsis=True, pad=True)
        line = Content.assemble("› " if chosen else "  ", words)
        if self._remarks:
            remark = whole_facts(clean_line(choice.remark), width - line.cell_length - REMARK_GAP)
            line = Content.assemble(line, " " * REMARK_GAP, (remark, Tone.QUIET.value))
        line = line.truncate(width, ellipsis=True, pad=True)
        return Content.styled(line.plain, "reverse") if chosen else line


def _cells(text: str) -> int:
    return Content(clean_line(text)).cell_length


RESET: Final = "-"
"""Prefix of a setting that is to be removed from the file."""


class SettingsSheet(RowsSheet):
    """Gives the name of the setting to change, with a `-` before it to reset it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.SETTINGS)

    def __init__(self, settings: Sequence[Setting], current: str = "", *, every: bool = False) -> None:
        self._by_name = {one.name: one for one in settings}
        rows = {
            one.name: PageRow("", one.name, one.name, one.words or one.value, source(one) if one.is_changed else "")
            for one in settings
        }
        usual = [rows[one.name] for one in settings if one.is_usual]
        super().__init__("Settings", usual, "", current=current, every=list(rows.values()), shows_every=every)

    @property
    def keys_now(self) -> str:
        """Keys for the heading."""
        page = ("setting_all", "shows fewer" if self.shows_every else f"shows all {len(self._by_name)}")
        return hint("Enter changes", page, ("setting_reset", "resets"))

    def remark(self, entry: PageRow | None) -> str:
        """Meaning and allowed values of the selected setting, and when a change applies."""
        if entry is None:
            return ""
        one = self._by_name[entry.key]
        return f"{one.meaning}: {one.allowed} · {short_path(Path(one.source))} · {when(one)}"

    def action_reset(self) -> None:
        """Reset to the value without the user's file."""
        if self.chosen is not None:
            self.dismiss(f"{RESET}{self.chosen.key}")


def when(setting: Setting) -> str:
    """Time from which a change applies."""
    return "applies at once" if setting.live else "applies from the next start"


def source(setting: Setting) -> str:
    """Source of a value, short: a file by its name, a flag, a variable."""
    return setting.source.rpartition("/")[2]


class ThemeSheet(PickerSheet):
    """Shows each theme while it is under the cursor; Esc brings the old one back."""

    def __init__(self, names: Sequence[str], current: str, colours: ThemeControl) -> None:
        super().__init__("Colours", [PickerRow(name, name) for name in names], current=current)
        self._before = current
        self._colours = colours

    def action_move(self, by: int) -> None:
        """Choose another, and look at it."""
        super().action_move(by)
        self._look()

    def narrow(self, text: str) -> None:
        """Narrow, and look at the first."""
        super().narrow(text)
        self._look()

    def action_close(self) -> None:
        self._colours.choose(self._before)
        self.dismiss(None)

    def _look(self) -> None:
        if self._found:
            self._colours.choose(self._found[self._chosen].key)
