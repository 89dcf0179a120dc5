"""A hit of a search in its conversation: stay, go to another hit, or go back to the results."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.transcript.view import TranscriptView


class HitSheet(Sheet[str]):
    """Gives `stay`, `next`, `previous`, or None for back."""

    DEFAULT_CSS = """
    HitSheet { & > .sheet { max-height: 3; } & Static { height: 1; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.HIT),
        *bindings(
            Scope.TYPED, "typed_page_up", "typed_page_down", typed_page_up="scroll(-1)", typed_page_down="scroll(1)"
        ),
    ]

    esc_hint = "Esc returns to the results"

    def __init__(self, transcript: TranscriptView, place: int, count: int) -> None:
        super().__init__()
        self._transcript = transcript
        self._words = f"{place + 1} of {count}"

    def compose(self) -> ComposeResult:
        """One line."""
        with Vertical(classes="sheet"):
            yield Static(id="heading", markup=False)

    def on_resize(self) -> None:
        """The line is as wide as the screen."""
        keys = hint(("hit_stay", "stays here"), ("hit_previous hit_next", "other hits"))
        line = Content.assemble(("Hit ", "bold"), (self._words, "bold"), "   ", (keys, Tone.QUIET.value))
        self.query_one("#heading", Static).update(line.truncate(self.measure, ellipsis=True))

    def action_answer(self, answer: str) -> None:
        """Give the answer."""
        self.dismiss(answer)

    def action_scroll(self, by: int) -> None:
        """Read around the hit."""
        self._transcript.scroller.page(by)
