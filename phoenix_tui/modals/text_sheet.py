"""Text to read over the workspace: cost, doctor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.modals.base import Sheet

SCROLLBAR: Final = 2
"""Cells of scrollbar, and of room before it."""


class TextSheet(Sheet[None]):
    """Scrolls; Esc, q, ? and F1 close it."""

    DEFAULT_CSS = """
    TextSheet { & Static { height: auto; } & VerticalScroll { scrollbar-size-vertical: 1; } }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.READING)

    def __init__(self, heading: str, text: Content, hang: int = 0, *, at_end: bool = False) -> None:
        super().__init__()
        self._heading = Content.assemble((heading, "bold"), "\n")
        self._text = text
        self._hang = hang
        self._at_end = at_end
        """True to begin at its end."""

    def compose(self) -> ComposeResult:
        """The text in a scroll."""
        with VerticalScroll(classes="sheet"):
            yield Static(self._heading, markup=False)
            yield Static(id="text", markup=False)

    def fill(self, text: Content) -> None:
        """Show another text."""
        self._text = text
        self.on_resize()

    def on_resize(self) -> None:
        """Wrap the text; a wrapped row continues below its own text, `hang` cells in."""
        self.query_one("#text", Static).update(Content("\n").join(self.rows(max(self.measure - SCROLLBAR, 1))))
        if self._at_end:
            self.call_after_refresh(self.query_one(VerticalScroll).scroll_end, animate=False)

    def rows(self, width: int) -> Sequence[Content]:
        """The text wrapped to `width` cells."""
        hang = min(self._hang, width // 2)
        return [row for line in self._text.split("\n", allow_blank=True) for row in _hung(line, width, hang)]

    def action_scroll(self, by: int) -> None:
        """Move by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)


def _hung(line: Content, width: int, hang: int) -> list[Content]:
    first, *more = line.wrap(width) or [Content("")]
    if not more:
        return [first]
    rest = line[len(first.plain) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    return [first, *(Content.assemble(" " * hang, part) for part in rest.wrap(width - hang))]
