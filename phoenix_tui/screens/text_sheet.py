"""Text to read over the workspace: cost, doctor."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from phoenix_tui.labels import Tone
from phoenix_tui.screens.base import Sheet


class TextSheet(Sheet[None]):
    """Scrolls; Esc, q, ? and F1 close it."""

    DEFAULT_CSS = """
    TextSheet { & Static { height: auto; } & VerticalScroll { scrollbar-size-vertical: 1; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,question_mark,f1,enter", "close", "Close", priority=True),
        Binding("j", "scroll(1)", "Down"),
        Binding("k", "scroll(-1)", "Up"),
    ]

    def __init__(self, heading: str, text: Content) -> None:
        super().__init__()
        self._content = Content.assemble((heading, "bold"), ("   Esc closes\n\n", Tone.QUIET.value), text)

    def compose(self) -> ComposeResult:
        """The text in a scroll."""
        with VerticalScroll(classes="sheet"):
            yield Static(self._content, markup=False)

    def action_scroll(self, by: int) -> None:
        """Move by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)
