"""The models on offer: Enter uses one here; letters make it the default, choose its effort or mark it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.features.model import mark
from phoenix_tui.features.model_change import change_text
from phoenix_tui.features.model_list import ModelList
from phoenix_tui.keys.active_keys import fitting
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.modals.model_lines import ModelLines, cut_end, detail
from phoenix_tui.modals.picker_sheet import is_reference
from phoenix_tui.models.offers import ProviderState
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import run_latest
from phoenix_tui.widgets.line_input import LineInput

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

    def __init__(self, front: FrontEnd, models: ModelList) -> None:
        super().__init__()
        self._front = front
        self._models = models
        self._is_asking = False
        self._said = ""

    def compose(self) -> ComposeResult:
        """Heading, filter, rows, details."""
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

    def on_resize(self) -> None:
        """Rows are as wide as the screen."""
        self._draw()

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
        """Choose another row."""
        self._said = ""
        self._models.move(by)
        self._draw()

    def action_page(self, by: int) -> None:
        """A screenful on."""
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
        self.query_one("#rows", Static).update(self._rows())
        self.query_one("#detail", Static).update(Content("\n".join(self._details(max(measure - 2, 1)))))

    def _keys(self) -> tuple[tuple[str, str] | str, ...]:
        """Keys that count now."""
        row = self._models.row
        if row is not None and row.offer is not None:
            return (CLOSED.get(row.offer.state, CLOSED[ProviderState.UNREACHABLE]), *KEYS[-2:])
        return TYPING if self.query_one(LineInput).has_focus else KEYS

    def _rows(self) -> Content:
        models = self._models
        if models.found:
            lines = ModelLines(self.measure, models.now, models.preferred.favourites)
            return lines.window(models.found, models.chosen, self._room)
        words = f"{NOTHING}{AS_TYPED if is_reference(models.query) else WIDER}"
        return Content.styled(f"  {words}", Tone.QUIET.value)

    def _details(self, cells: int) -> list[str]:
        row = self._models.row
        lines = [cut_end(detail(row, self._models.now), cells)]
        if self._detail_lines == 1:
            return lines
        info = row.info if row is not None and row.key != self._models.now else None
        words = self._said or (change_text(info, self._context_tokens) if info is not None else "")
        wrapped = [line.plain for line in Content(words).wrap(cells)] if words else []
        return [*lines, *wrapped, "", ""][: self._detail_lines]
