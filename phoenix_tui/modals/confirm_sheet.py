"""A yes-or-no question of Phoenix itself, such as quitting while something runs."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import ASKING, Tone
from tools.clean import clean


class ConfirmSheet(Sheet[bool]):
    """Gives True for y, False for n; Enter says neither."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "say(True)", "Yes", id="confirm.yes"),
        Binding("n", "say(False)", "No", id="confirm.no"),
        Binding("ctrl+q", "say(True)", "Yes", priority=True),
    ]

    def __init__(self, question: str, yes: str, no: str) -> None:
        super().__init__()
        self._words = (question, yes, no)

    def compose(self) -> ComposeResult:
        """The question over its two answers."""
        question, yes, no = self._words
        letter = f"bold {Tone.NEEDS_YOU.value}"
        with Vertical(classes="sheet"):
            yield Static(
                Content.assemble((f"{ASKING.sign} ", ASKING.tone.value), (clean(question), "bold")), markup=False
            )
            yield Static(Content.assemble(("  y ", letter), f"{yes}   ", ("n ", letter), no), markup=False)

    def action_say(self, answer: bool) -> None:
        """Answer."""
        self.dismiss(answer)
