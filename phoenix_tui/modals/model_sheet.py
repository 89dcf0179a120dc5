"""The models on offer: Enter uses one here; letters make it the default, choose its effort or mark it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.model import ModelRow, OfferedModels, change_text, mark
from phoenix_tui.keys.active_keys import fitting
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.markdown.lines import cut_middle
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.rows_sheet import is_reference
from phoenix_tui.models.offers import ProviderState
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.model_text import columns_within, price_text, width_of, window_text
from phoenix_tui.widgets.bases import run_latest
from phoenix_tui.widgets.line_input import LineInput
from tools.clean import clean_line

SIGN: Final = 2
"""Cells before a name."""
IN_USE: Final = " · in use"
MARK: Final = " *"
NOT_LISTED: Final = "  not in a list"
HEADING: Final = f"bold {Tone.YOU.value}"


class ModelLines:
    """Draws rows for one width; a list of any length costs what is seen of it."""

    def __init__(self, cells: int, now: str, favourites: Sequence[str]) -> None:
        self._cells = cells
        self._now = now
        self._favourites = frozenset(favourites)
        self._columns = columns_within(cells - SIGN)
        self._name_cells = max(cells - SIGN - width_of(self._columns), 1)

    def window(self, rows: Sequence[ModelRow], chosen: int, room: int) -> Content:
        """At most `room` lines around the chosen row; the first one heads the rows below it and names the columns."""
        first = max(0, min(chosen - room // 2, len(rows) - room + 1))
        while True:
            lines, last = self._lines_from(rows, first, chosen, room)
            if chosen <= last or first >= chosen:
                return Content("\n").join(lines)
            first += 1

    def _lines_from(self, rows: Sequence[ModelRow], first: int, chosen: int, room: int) -> tuple[list[Content], int]:
        """Lines from a row on, and the place of the last row among them."""
        lines = [self._heading(rows[first].section, heads=rows[first].offer is None)]
        last = first - 1
        for place in range(first, len(rows)):
            begins = place > first and rows[place].section != rows[place - 1].section
            if len(lines) + 1 + begins > max(room, 2):
                break
            if begins:
                lines.append(self._heading(rows[place].section))
            lines.append(self._row(rows[place], chosen=place == chosen))
            last = place
        return lines, last

    def _heading(self, section: str, *, heads: bool = False) -> Content:
        words = clean_line(section)
        if not heads:
            return Content.styled(cut_middle(words, self._cells), HEADING)
        room = min(SIGN + self._name_cells, self._cells)
        named = Content.styled(cut_middle(words, room), HEADING)
        gap = " " * max(room - named.cell_length, 0)
        titles = "".join(" " * column.gap + column.head.center(column.cells) for column in self._columns)
        return Content.assemble(named, gap, (titles.rstrip(), Tone.QUIET.value))

    def _row(self, row: ModelRow, *, chosen: bool) -> Content:
        sign = "› " if chosen else "  "
        if row.offer is not None:
            line = Content.assemble(sign, (cut_end(clean_line(row.name), self._cells - SIGN), Tone.QUIET.value))
        else:
            name, facts = self._name(row), NOT_LISTED
            if row.info is not None:
                cells = (" " * one.gap + one.text(row.info).center(one.cells) for one in self._columns)
                facts = "".join(cells).rstrip()
            gap = " " * max(self._name_cells - cell_len(name), 0)
            line = Content.assemble(
                sign, (name, "bold" if row.key == self._now else ""), gap, (facts, Tone.QUIET.value)
            )
        if not chosen:
            return line.truncate(self._cells)
        return Content(line.plain).truncate(self._cells, pad=True).stylize("reverse")

    def _name(self, row: ModelRow) -> str:
        name, mark = clean_line(row.name), MARK * (row.key in self._favourites)
        used = IN_USE * (row.key == self._now)
        if cell_len(f"{name}{mark}{used}") <= self._name_cells:
            return f"{name}{mark}{used}"
        return f"{cut_middle(name, max(self._name_cells - len(mark), 1))}{mark}"


def detail(row: ModelRow | None, now: str) -> str:
    """All that is known about a model, what the columns leave out first; the state of a provider without models."""
    if row is None:
        return ""
    if row.offer is not None:
        words = f": {row.offer.words}" if row.offer.words else ""
        return clean_line(f"{row.offer.name} · {row.offer.state.value}{words}")
    parts = [row.key] + ["in use"] * (row.key == now)
    if (info := row.info) is not None:
        price = price_text(info)
        parts += filter(None, (info.note, "on this machine" if info.local else ""))
        parts += [f"answers to {info.max_output:,}"] if info.max_output else []
        parts += [
            f"window {window_text(info)}",
            price if price == "free" else f"${price}" if price else "price unknown",
        ]
    return clean_line(" · ".join(parts))


def cut_end(text: str, cells: int) -> str:
    """The text within so many cells, its end cut off."""
    return Content(text).truncate(max(cells, 0), ellipsis=True).plain


HERE: Final = ("sheet_take", "here")
KEYS: Final = (
    HERE,
    ("model_default", "default"),
    ("model_effort", "effort"),
    ("model_mark", "favourite"),
    ("model_filter", "filters"),
    ("model_refresh", "asks again"),
)
"""The last ones go first where there is little room."""
TYPING: Final = (HERE, ("model_rows", "to the rows"), "Esc shows all")
CLOSED: Final = {
    ProviderState.NO_KEY: ("sheet_take", "stores a key"),
    ProviderState.UNREACHABLE: ("sheet_take", "asks again"),
}
"""Keys at providers without models."""
SHARE_PERCENT: Final = 85
"""Per cent of the screen that the sheet takes at most."""
CHROME: Final = 5
"""Lines beside rows and details: rule, heading, filter, margin, and one of the screen behind."""
CHANGE_LINES: Final = 2
"""Lines of what a change costs."""
LEAST_ROOM: Final = 3
NOTHING: Final = "No model has these words. "
AS_TYPED: Final = "Enter uses it as typed."
WIDER: Final = "PROVIDER/MODEL is used as typed."


class ModelSheet(Sheet[str]):
    """Gives an action and a reference with a blank between: use, default, effort; or `key` and a provider."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = """
    ModelSheet {
        & > .sheet { max-height: 85%; }
        & Static { height: auto; }
        & LineInput { margin: 0 0 0 2; background: $background; display: none; }
        & #detail { color: $text-muted; margin: 0 0 0 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.TYPED),
        *bindings(Scope.ROWS, "sheet_up", "sheet_down", "sheet_take", "sheet_close"),
        *bindings(Scope.MODELS),
    ]

    def __init__(self, front: FrontEnd, models: OfferedModels) -> None:
        super().__init__()
        self._front = front
        self._models = models
        self._is_asking = False
        self._said = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield LineInput(placeholder="type to filter")
            yield Static(id="rows", markup=False)
            yield Static(id="detail", markup=False)

    def on_mount(self) -> None:
        """Show what is known, then ask the providers."""
        if self._models.query:
            self.query_one(LineInput).fill(self._models.query)
            self.action_filter()
        self._draw()
        self._refresh(again=False)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Narrow to rows with every word."""
        event.stop()
        if event.text_area.text != self._models.query:
            self._said = ""
            self._models.narrow(event.text_area.text)
            self._draw()

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Take the chosen row, or the typed reference where none is found."""
        event.stop()
        typed = event.text.strip()
        if not self._models.found and is_reference(typed):
            self.dismiss(f"use {typed}")
        else:
            self.action_take()

    def action_move(self, by: int) -> None:
        self._said = ""
        self._models.move(by)
        self._draw()

    def action_page(self, by: int) -> None:
        self.action_move(by * max(self._room - 2, 1))

    def action_filter(self) -> None:
        """Open the line that narrows; from the line: back to the rows, which stay narrowed."""
        line = self.query_one(LineInput)
        if line.has_focus:
            self.set_focus(None)
        else:
            line.display = True
            self.set_focus(line)
        self._draw()

    def action_close(self) -> None:
        """End the filter, else close the sheet."""
        line = self.query_one(LineInput)
        if not line.display:
            self.dismiss(None)
            return
        self.set_focus(None)
        line.display = False
        line.fill("")
        self._models.narrow("")
        self._draw()

    def action_take(self) -> None:
        """Use it in this conversation; store a key of its provider, or ask that again."""
        row = self._models.row
        if row is None:
            return
        if row.offer is None:
            self.dismiss(f"use {row.key}")
        elif row.offer.state is ProviderState.NO_KEY:
            self.dismiss(f"key {row.offer.name}")
        else:
            self._refresh(again=True)

    def action_want(self, action: str) -> None:
        """Use it here, and make it the default or choose its effort."""
        if (row := self._models.row) is not None and row.offer is None:
            self.dismiss(f"{action} {row.key}")

    def action_mark(self) -> None:
        """Mark it as a favourite, or take the mark away."""
        if (row := self._models.row) is not None and row.offer is None:
            self.run_worker(self._mark(row.key), group="mark", exclusive=False)

    def action_refresh(self) -> None:
        """Ask every provider again, those too whose list is kept for a day."""
        self._refresh(again=True)

    async def _mark(self, reference: str) -> None:
        _, self._said = await mark(self._front, reference)
        self._models.renew()
        self._draw()

    def _refresh(self, *, again: bool) -> None:
        run_latest(self, partial(self._ask, again=again), "ask")

    async def _ask(self, *, again: bool) -> None:
        self._is_asking = True
        self._draw()
        try:
            async for _ in self._models.refresh(again=again):
                self._draw()
        finally:
            self._is_asking = False
        self._draw()

    @property
    def _room(self) -> int:
        return max(self.size.height * SHARE_PERCENT // 100 - CHROME - self._detail_lines, LEAST_ROOM)

    @property
    def _detail_lines(self) -> int:
        """Lines below the rows: as many for each row, so that no row jumps."""
        return 1 + CHANGE_LINES if self._context_tokens or self._said else 1

    @property
    def _context_tokens(self) -> int:
        """Tokens of the conversation in view."""
        conversation = self._front.conversation
        return conversation.record.context_tokens if conversation is not None else 0

    def _draw(self) -> None:
        if not self.is_attached or not self.query("#detail"):
            return
        found, measure = self._models.found, self.measure
        place = f"{self._models.chosen + 1} / {len(found):,}" if found else "0"
        head = f"   {place}{' · asking …' if self._is_asking else ''}   "
        keys = fitting(measure - len("Model") - len(head), *self._keys())
        heading = Content.assemble(("Model", "bold"), (f"{head}{keys}", Tone.QUIET.value))
        self.query_one("#heading", Static).update(heading.truncate(measure, ellipsis=True))
        if found:
            lines = ModelLines(measure, self._models.now, self._models.preferred.favourites)
            rows = lines.window(found, self._models.chosen, self._room)
        else:
            words = f"{NOTHING}{AS_TYPED if is_reference(self._models.query) else WIDER}"
            rows = Content.styled(f"  {words}", Tone.QUIET.value)
        self.query_one("#rows", Static).update(rows)
        self.query_one("#detail", Static).update(Content("\n".join(self._details(max(measure - 2, 1)))))

    def _keys(self) -> tuple[tuple[str, str] | str, ...]:
        """Keys that count now."""
        row = self._models.row
        if row is not None and row.offer is not None:
            return (CLOSED.get(row.offer.state, CLOSED[ProviderState.UNREACHABLE]), *KEYS[-2:])
        return TYPING if self.query_one(LineInput).has_focus else KEYS

    def _details(self, cells: int) -> list[str]:
        row = self._models.row
        lines = [cut_end(detail(row, self._models.now), cells)]
        if self._detail_lines == 1:
            return lines
        info = row.info if row is not None and row.key != self._models.now else None
        words = self._said or (change_text(info, self._context_tokens) if info is not None else "")
        wrapped = [line.plain for line in Content(words).wrap(cells)] if words else []
        return [*lines, *wrapped, "", ""][: self._detail_lines]
