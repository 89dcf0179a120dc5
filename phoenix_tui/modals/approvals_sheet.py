"""Every approval that waits, in one sheet: read whole and answered without going to its conversation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.api.engine import EngineApi
from phoenix_tui.features.approvals import Pending, pending
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.answering import MOST_ROWS, AnsweringSheet
from phoenix_tui.text.labels import ASKING, Tone, age
from phoenix_tui.text.request_text import one_line
from phoenix_tui.widgets.bases import first_visible, move_choice
from phoenix_tui.widgets.notices import Notifier
from tools.call_titles import call_title
from tools.clean import clean_line
from tools.wording import counted


class ApprovalsSheet(AnsweringSheet):
    """Oldest first; gives the conversation to go to."""

    DEFAULT_CSS = """
    ApprovalsSheet {
        & > .sheet { max-height: 90%; }
        & #heading, & #rows, & #elsewhere { height: auto; }
        & #elsewhere { color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.ROWS, sheet_take="go", sheet_page_up="read(-10)", sheet_page_down="read(10)"),
    ]

    def __init__(
        self, engine: EngineApi, toasts: Notifier, *, plain: bool = False, elsewhere: Sequence[str] = ()
    ) -> None:
        super().__init__(engine, toasts, plain=plain)
        self._elsewhere = elsewhere
        self._waiting: list[Pending] = []
        self._chosen = 0

    def waiting(self) -> Sequence[Pending]:
        """All of them."""
        return self._waiting

    def compose(self) -> ComposeResult:
        """Heading, rows, the whole question."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)
            yield Static(id="rows", markup=False)
            yield Static(id="elsewhere", markup=False)
            yield self.question

    def begin(self) -> None:
        """Show the other waiting processes, and their times."""
        self.query_one("#elsewhere").display = bool(self._elsewhere)
        self.query_one("#elsewhere", Static).update("\n".join(f"  {clean_line(one)}" for one in self._elsewhere))
        self.set_interval(1.0, self._draw)
        self.look()

    def on_resize(self) -> None:
        """Redraw: rows are as wide as the screen, the text as tall as the rest."""
        self._show()

    def look(self) -> None:
        """Read the waiting questions; the chosen one stays chosen while it waits."""
        chosen = self._waiting[self._chosen].question if self._waiting else None
        self._waiting = pending(self._engine)
        if not self._waiting:
            self.leave()
            self.dismiss(None)
            return
        places = [place for place, one in enumerate(self._waiting) if one.question == chosen]
        self._chosen = places[0] if places else min(self._chosen, len(self._waiting) - 1)
        self._show()

    def _show(self) -> None:
        listed = min(len(self._waiting), MOST_ROWS) + len(self._elsewhere)
        self.ask(self._waiting[self._chosen] if self._waiting else None, listed)
        self._draw()

    def _draw(self) -> None:
        count = len(self._waiting)
        words = f"{counted(count, 'approval')} {'wait' if count > 1 else 'waits'}"
        keys = hint(("deny_all", "denies all") if count > 1 else "", ("sheet_take", "opens"))
        heading = Content.assemble((words, "bold"), (f"   {keys}", Tone.QUIET.value))
        self.query_one("#heading", Static).update(heading.truncate(self.measure, ellipsis=True))
        first = first_visible(self._chosen, count, MOST_ROWS)
        shown = self._waiting[first : first + MOST_ROWS]
        self.query_one("#rows", Static).update(
            Content("\n").join(self._row(one, first + place) for place, one in enumerate(shown))
        )

    def _row(self, one: Pending, place: int) -> Content:
        """Author, text and age of a question; the selected row is reversed."""
        chosen, width = place == self._chosen, self.measure
        waits = f" {age(time.monotonic() - one.question.asked)}"
        call, request = one.question.call, one.question.request
        what = one_line(call_title(call.name, call.input_json, request.command or request.summary, "  "))
        row = Content.assemble(
            "› " if chosen else "  ",
            (f"{ASKING.mark(self._plain)} ", ASKING.tone.value),
            (one.title, "bold"),
            (f"  {what}", "" if chosen else Tone.QUIET.value),
        ).truncate(width - len(waits), ellipsis=True, pad=True)
        row = Content.assemble(row, (waits, Tone.QUIET.value))
        return Content.styled(row.plain, "reverse") if chosen else row

    def action_move(self, by: int) -> None:
        """Choose another one."""
        place = move_choice(self._chosen, by, len(self._waiting))
        if place != self._chosen:
            self._chosen = place
            self._show()

    def action_go(self) -> None:
        """Send the answers chosen here, else go to the conversation of the selected one."""
        if self.question.take_all():
            return
        self.dismiss(self._waiting[self._chosen].conversation.id)
