"""The list of conversations: one widget that draws its visible lines, with as many columns as fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.text.labels import AGES_EVERY, DONE, STOPPED, UNREAD, ListGroup, Tone
from phoenix_tui.widgets.bases import Opened, Still, Ticker
from phoenix_tui.widgets.roster import TITLE_LENGTH, Line, ListModel, Live, RosterRow
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.records import ConversationSummary


PREFIX: Final = 3
"""Cells before the title: pointer, glyph, space."""
COLUMNS_FROM: Final = 50
"""Cells of width from which state, cost and the like have their own columns; the context level replaces a state without
information until there is room for both.
"""
LONGEST_BRIEF: Final = 6
"""Cells that a state may take from a title that needs them."""
CLOCK: Final = re.compile(r"\d+[smhd]")
SAYS_ALL: Final = frozenset({STOPPED, UNREAD, DONE})
"""Signs that make their word unnecessary, in states that need no answer."""
MOST_WIDER: Final = 26
"""Cells by which the folder may grow."""
LEAST_BESIDE: Final = 12
"""Cells of a title beside which the progress of a todo list has a place."""
LEAST_TITLE: Final = 24
"""Cells of a title that no column takes away."""


class Ink(StrEnum):
    """Meaning of a piece of a line."""

    TEXT = "text"
    TITLE = "title"
    QUIET = "quiet"
    TONE = "tone"
    """The colour of the row's state."""
    WARNING = "warning"
    YOU = "you"


def shorten(text: str, cells: int) -> str:
    """Fit the text into exactly `cells`, cut with an ellipsis; a wide character is never halved."""
    if cell_len(text) <= cells:
        return set_cell_size(text, cells)
    return f"{set_cell_size(text, cells - 1)}…" if cells > 0 else ""


def path_within(path: str, cells: int) -> str:
    """Fit a folder into exactly `cells`: names in its middle go, and its last one stays whole as long as it fits."""
    if cell_len(path) <= cells:
        return set_cell_size(path, cells)
    *before, last = path.split("/")
    ways = (f"{'/'.join(before[:kept])}/…/{last}" for kept in range(len(before) - 1, 0, -1))
    short = next((way for way in (*ways, f"…/{last}") if cell_len(way) <= cells), last)
    return shorten(short, cells)


def _quiet(_: RosterRow) -> Ink:
    return Ink.QUIET


class ListColumn(Struct, frozen=True):
    """A column: its heading, the text it shows of a row, its cells, and the order in which it comes in.

    A text is a field of `RosterRow`, which `compose` in `roster.py` fills from the stored summary. The columns are
    tested in `tests/phoenix_tui/conversations/test_roster.py`; `tests/snapshots/screens/conversations` has their looks.
    """

    head: str
    text: Callable[[RosterRow], str]
    cells: int
    rank: int
    """0 comes in first."""
    right: bool = False
    fit: Callable[[str, int], str] = shorten
    """Cuts the text to cells."""
    ink: Callable[[RosterRow], Ink] = _quiet


def _context_ink(row: RosterRow) -> Ink:
    return Ink.WARNING if row.near_full else Ink.QUIET


def _state_ink(row: RosterRow) -> Ink:
    return Ink.TONE if row.label.text else _context_ink(row)


def _state_or_context(row: RosterRow) -> str:
    return row.label.text or row.context


STATE: Final = ListColumn("state", lambda row: row.label.text, 13, 1, ink=_state_ink)
FOLDER: Final = ListColumn("folder", lambda row: row.folder, 14, 3, fit=path_within)
CONTEXT: Final = ListColumn("used", lambda row: row.context, 4, 4, right=True, ink=_context_ink)
COLUMNS: Final = (
    STATE,
    FOLDER,
    ListColumn("model", lambda row: row.model, 17, 5),
    CONTEXT,
    ListColumn("cost", lambda row: row.cost, 7, 2, right=True),
    ListColumn("age", lambda row: row.when, 3, 0, right=True),
)
"""Columns from left to right."""
Piece = tuple[str, Ink]


class Signs(Struct, frozen=True):
    """Signs of a row in the list."""

    pointer: str
    pointer_ink: Ink
    glyph: str


def pieces(row: RosterRow, signs: Signs, width: int) -> list[Piece]:
    start = [(signs.pointer, signs.pointer_ink), (f"{signs.glyph} ", Ink.TONE)]
    tail = _columns(row, width) if width >= COLUMNS_FROM else _words(row, width)
    room = max(_room(tail, width), 1)
    most = TITLE_LENGTH if width >= COLUMNS_FROM else room
    rest = max(room - most, 0)
    while len(tail) > 1 and tail[0][0].isspace() and cell_len(row.title) > room - rest:
        del tail[0]  # a long title extends over columns without values
        room = _room(tail, width)
    progress = f" {row.progress}" if row.progress and room - rest >= LEAST_BESIDE + len(row.progress) else ""
    cells = room - rest - len(progress)
    title = shorten(shorten(row.title, min(cells, most)), cells)
    beside = [(progress, Ink.QUIET)] if progress else []
    return [*start, (title, Ink.TITLE), *beside, *tail, (" " * rest, Ink.TEXT)]


def _room(tail: list[Piece], width: int) -> int:
    return width - PREFIX - sum(cell_len(text) for text, _ in tail)


@lru_cache(maxsize=8)
def choose_columns(width: int) -> tuple[ListColumn, ...]:
    """Choose as many columns as leave the title its least; unused room of the title goes to the folder."""
    room = width - PREFIX - LEAST_TITLE - 1
    taken: list[ListColumn] = []
    for column in sorted(COLUMNS, key=lambda each: each.rank):
        if column.cells + 1 > room:
            break
        taken.append(column)
        room -= column.cells + 1
    wider = max(min(room + LEAST_TITLE - TITLE_LENGTH, MOST_WIDER), 0)
    shown = {FOLDER: replace(FOLDER, cells=FOLDER.cells + wider)}
    if CONTEXT not in taken:
        shown[STATE] = replace(STATE, text=_state_or_context)
    return tuple(shown.get(column, column) for column in COLUMNS if column in taken)


def _columns(row: RosterRow, width: int) -> list[Piece]:
    made = [(_cell(column, column.text(row)), column.ink(row)) for column in choose_columns(width)]
    return [*made, (" ", Ink.TEXT)]


def _cell(column: ListColumn, text: str) -> str:
    cut = column.fit(text, column.cells)
    return f" {' ' * (column.cells - cell_len(cut.rstrip()))}{cut.rstrip()}" if column.right else f" {cut}"


def heads(width: int) -> str:
    """Headings of the columns at a width."""
    cells = "".join(_cell(column, column.head) for column in choose_columns(width))
    room = width - PREFIX - cell_len(cells) - 1
    rest = max(room - TITLE_LENGTH, 0)
    return f"{' ' * PREFIX}{shorten('title', room - rest)}{cells} {' ' * rest}"


def _words(row: RosterRow, width: int) -> list[Piece]:
    brief = _brief(row)
    ways = [f"{words} {row.when}".strip() for words in (row.label.text or row.context, brief)]
    fitting = (one for one in ways if PREFIX + cell_len(f"{row.title} {one} ") <= width)
    right = next(fitting, brief or row.when)
    ink = Ink.WARNING if row.near_full else Ink.TONE if row.label.text else Ink.QUIET
    return [(f" {right} ", ink)]


def _brief(row: RosterRow) -> str:
    """Short form of a state where the title needs the room: one word that the sign before it does not say."""
    if not row.label.text:
        return row.context if row.near_full else ""
    first, *more = row.label.text.split()
    word = more[-1] if more and CLOCK.fullmatch(more[-1]) else first
    return "" if row.label.glyph in SAYS_ALL or len(word) > LONGEST_BRIEF else word


TONE_OF: Final[dict[Ink, Tone]] = {Ink.QUIET: Tone.QUIET, Ink.WARNING: Tone.NEEDS_YOU, Ink.YOU: Tone.YOU}
"""Inks that are one colour in every row."""
EMPTY: Final[dict[ListGroup | None, tuple[str, ...]]] = {
    None: ("No conversations yet.",),
    ListGroup.ARCHIVED: ("The archive is empty.", "/archive moves a conversation here."),
    ListGroup.TRASH: ("The trash is empty.",),
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
        if isinstance(line, RosterRow):
            return self._row(line, under_cursor=self._focused and self._model.row == y)
        return self._quiet(f" {line}")

    def heads(self) -> Strip:
        return self._quiet(heads(self._width))

    def hint(self, y: int) -> Strip:
        words = NOTHING_FOUND if self._model.text else EMPTY[self._model.view]
        return self._quiet("" if self._model.order or not self._model.known or y >= len(words) else f" {words[y]}")

    def foot(self) -> Strip:
        model = self._model
        if model.filtering or model.text:
            text = f"/{model.text}{'▏' if model.filtering else ''}"
            return self._spread(text, model.count_found() if model.order else "", Tone.YOU)
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


TONE_CLASSES: Final[dict[Tone, str]] = {tone: f"list--{tone.name.lower().replace('_', '-')}" for tone in Tone}
SHOWS_ALL: Final = "Esc shows all"
UNMARKS: Final = "Esc unmarks"
ZOOMED: Final = "-list-zoomed"
"""Class of a list over the whole screen."""
EMPTY_LIST: Final = "-empty"
"""Class of a list without conversations."""
ERASERS: Final[dict[str, Callable[[str], str]]] = {
    "backspace": lambda text: text[:-1],
    "ctrl+h": lambda text: text[:-1],
    "ctrl+w": lambda text: text.rstrip().rpartition(" ")[0],
    "ctrl+u": lambda _: "",
}
"""Keys that take something from the filter."""


class ConversationList(Still, Widget):
    """Every conversation with its state; groups by need. Posts the choice; knows no engine."""

    can_focus = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {*TONE_CLASSES.values(), "list--current"}
    DEFAULT_CSS = """
    ConversationList {
        background: $background; color: $foreground;
        & .list--you { color: $accent; }
        & .list--work { color: $primary; }
        & .list--needs-you { color: $warning; }
        & .list--good { color: $success; }
        & .list--bad { color: $error; }
        & .list--quiet { color: $text-muted; }
        & .list--current { text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.LIST)
    HELP = "All conversations. Enter opens, p previews, / filters, space marks; F1 lists every key."

    class Opened(Message):
        """Posted to open this conversation."""

        def __init__(self, conversation_id: str) -> None:  # a dataclass takes five times as long to define
            super().__init__()
            self.conversation_id = conversation_id

    class Previewed(Message):
        """The zoomed list shows another conversation as chosen; empty: it is zoomed no more."""

        def __init__(self, conversation_id: str) -> None:
            super().__init__()
            self.conversation_id = conversation_id

    class Wanted(Message):
        """Posted for an action: `rename`, `archive`, `delete`, `pin`, `stop`, `fork`, `peek`, `restore`..."""

        def __init__(self, action: str, ids: tuple[str, ...]) -> None:
            super().__init__()
            self.action = action
            self.ids = ids
            """Ids of everything marked, else of the one under the cursor."""

    class EndedUnseen(Message):
        """A run ended in a conversation that is not on the screen."""

        def __init__(self, conversation_id: str) -> None:
            super().__init__()
            self.conversation_id = conversation_id

    def __init__(
        self,
        *,
        plain: bool = False,
        id: str | None = None,
        view: ListGroup | None = None,
    ) -> None:
        super().__init__(id=id)
        self._plain = plain
        self.model = ListModel(view)
        self._lines: list[Line] = []
        """Visible lines, as last drawn."""
        self._stands = (0, "", 0)
        """Start of the window at that time, the text of its foot, and the row of the cursor."""
        self.ticker = Ticker(self, 1.0, lambda: self._look(everything=False))
        self.ages = Ticker(self, AGES_EVERY, lambda: self._look(everything=False))
        """Timer for the ages of idle conversations; wakes once a minute, and paints the rows whose text changes."""
        self._esc_hint = ""
        self._previewed = ("", 0.0)
        """Conversation that a zoomed list shows as chosen, and the time of its last change."""

    @property
    def takes_text(self) -> bool:
        return self.model.filtering

    def show(self, summaries: Sequence[ConversationSummary], live: Mapping[str, Live], current: str) -> None:
        moved = current != self.model.current or not self.model.known
        self.model.fill(summaries, live, current)
        self.model.arrange(self.model.chosen if self.has_focus else current, at_top=not self.has_focus)
        self._hide_if_empty()
        self._look(everything=moved)
        self._keep_time()

    def _hide_if_empty(self) -> None:
        """Take no column beside a conversation while there is nothing to list, unless the keys are here."""
        self.set_class(not (self.model.has_any or self.has_focus), EMPTY_LIST)

    def sign(self, folder: Path, sign: str) -> None:
        if self.model.signs.get(folder, "") != sign:
            self.model.signs[folder] = sign
            self._look(everything=False)

    def _look(self, *, everything: bool = True) -> None:
        """Draw the visible part; a list of many rows in which a clock moves costs one row."""
        if self.size.height and self.model.height != self._room:
            self.model.resize(self._room)  # its resize may still be pending: a frame may cover many keys
        if (words := list_hint(self.model)) != self._esc_hint:
            self._esc_hint = words
            self.post_message(Opened(words))
        self._preview()
        before, self._lines = self._lines, self.model.visible()
        stood, self._stands = self._stands, (self.model.top, self.model.count(), self.model.row)
        if everything or len(before) != len(self._lines) or stood[:2] != self._stands[:2]:
            self.refresh()
            return
        changed = {row for row, line in enumerate(self._lines) if line != before[row]}
        if stood != self._stands:
            changed |= {stood[2], self._stands[2]} & set(range(len(before)))
        if changed:
            self.refresh(*(Region(0, row + self._heads, self.size.width, 1) for row in changed))

    def _preview(self) -> None:
        shown = self.model.chosen_with_time if self.has_class(ZOOMED) else ("", 0.0)
        if shown != self._previewed:
            self._previewed = shown
            self.post_message(self.Previewed(shown[0]))

    @property
    def _heads(self) -> int:
        """Rows above the first line: the headings, where there are columns."""
        return int(self.size.width >= COLUMNS_FROM and bool(self.model.order))

    @property
    def _room(self) -> int:
        return self.size.height - 1 - self._heads

    def _keep_time(self) -> None:
        seen = self.display and self.is_on_screen
        self.ticker.run(seen and self.model.moves)
        self.ages.run(seen and bool(self.model.order) and not self.model.moves)

    def render_line(self, y: int) -> Strip:
        width, focused = self.size.width, self.has_focus
        painter = ListPainter(self.model, self.rich_style, self._style, width, plain=self._plain, focused=focused)
        if y == self.size.height - 1:
            return painter.foot()
        if y < self._heads:
            return painter.heads()
        row = y - self._heads
        return painter.line(self._lines[row], row) if row < len(self._lines) else painter.hint(row)

    def _style(self, tone: Tone | None) -> Style:
        return self.get_component_rich_style("list--current" if tone is None else TONE_CLASSES[tone])

    def on_focus(self) -> None:
        self.model.choose(self.model.current)
        self._look()

    def on_blur(self) -> None:
        self.leave()
        self.remove_class(ZOOMED)
        self._hide_if_empty()
        self._preview()
        self.post_message(Opened(""))

    def leave(self) -> bool:
        """Esc: end the filter, then the marks; False when there was neither."""
        had = bool(list_hint(self.model))
        if self.model.filtering or self.model.text:
            self._find("", going_on=False)
        else:
            self.model.marked.clear()
        self._look()
        return had

    def on_resize(self) -> None:
        self._look()
        self._keep_time()

    def on_click(self, event: events.Click) -> None:
        """Open the clicked row; in archive and trash it is only chosen."""
        row = event.y - self._heads
        if 0 <= row < len(self._lines) and (conversation_id := self.model.id_at(self.model.top + row)):
            self.model.choose(conversation_id)
            self._look()
            if self.model.view is None:
                self.post_message(self.Opened(conversation_id))

    @on(events.MouseScrollDown)
    @on(events.MouseScrollUp)
    def roll(self, event: events.MouseScrollDown | events.MouseScrollUp) -> None:
        self.model.roll(1 if isinstance(event, events.MouseScrollDown) else -1)
        self._look()

    async def on_key(self, event: events.Key) -> None:
        """Handle letters of a filter while one is written.

        Otherwise its own keys run at once: a binding runs later, behind letters of a filter typed in haste, and would
        meet another row than the one it was meant for.
        """
        if self.model.filtering and event.key in ERASERS:
            self._find(ERASERS[event.key](self.model.text))
        elif self.model.filtering and event.is_printable and event.character:
            self._find(self.model.text + event.character)
        elif (bound := self.screen.active_bindings.get(event.key)) is not None and bound.node is self:
            await self.run_action(bound.binding.action)
        else:
            return
        event.stop()
        event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._find(self.model.text + clean_line(event.text[:200]).strip())

    def _find(self, text: str, *, going_on: bool = True) -> None:
        self.model.filtering, self.model.text = going_on, text
        self.model.arrange()
        if going_on:
            self.model.choose("")
        self._look()

    def action_row(self, by: int, early: bool = False) -> None:
        """Move the cursor by some conversations; keys that come ahead of others wait for those typed before."""
        if early:
            self.call_later(self.action_row, by)
            return
        self.model.step(by)
        self._look(everything=False)

    def action_zoom(self) -> None:
        self.toggle_class(ZOOMED)
        self._look()

    def action_filter(self) -> None:
        self._find(self.model.text)

    def action_mark(self) -> None:
        self.model.mark()
        self._look()

    def action_open(self) -> None:
        if self.model.chosen:
            self.post_message(self.Opened(self.model.chosen))

    def action_want(self, action: str) -> None:
        """Ask for something to be done to everything marked, or to the chosen one."""
        self.post_message(self.Wanted(action, self.model.targets))


def list_hint(model: ListModel) -> str:
    """Action of Esc on filter and marks; empty where there are none."""
    return SHOWS_ALL if model.filtering or model.text else UNMARKS if model.marked else ""
