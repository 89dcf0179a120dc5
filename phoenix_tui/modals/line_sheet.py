"""Ask for one line: a new title, a key."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from phoenix_tui.modals.base import Sheet
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.line_input import LineInput


class LineSheet(Sheet[str]):
    """Gives the line, or None where Esc was pressed."""

    def __init__(self, heading: str, text: str = "", *, secret: bool = False) -> None:
        super().__init__()
        self._heading = heading
        self._line = LineInput(placeholder="", secret=secret)
        self._text = text

    def compose(self) -> ComposeResult:
        """The heading over the line."""
        with Vertical(classes="sheet"):
            heading = Content.assemble((self._heading, "bold"), ("   Enter accepts", Tone.QUIET.value))
            yield Static(heading, markup=False)
            yield self._line

    def on_mount(self) -> None:
        """Take the keys."""
        self._line.fill(self._text)
        self.set_focus(self._line)

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        """Done."""
        event.stop()
        self.dismiss(event.text)
