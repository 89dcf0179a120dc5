"""One line of text to fill in: a reason, a rule, a new title."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from phoenix_tui.widgets.readline import edit_at_once
from tools.clean import clean_line

MOST_DOTS: Final = 40


class LineInput(TextArea):
    """Enter gives the line; whatever is pasted becomes one line."""

    DEFAULT_CSS = """
    LineInput {
        height: 1; border: none; padding: 0; background: $surface; scrollbar-size: 0 0;
        &:focus { border: none; background: $surface; }
        & .text-area--placeholder { color: $text-muted; }
        & .text-area--selection { background: $screen-selection-background; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Done", priority=True),
        Binding("ctrl+j", "submit", "Done", priority=True),
        Binding("alt+backspace", "delete_word_left", "Delete a word"),
        Binding("alt+d", "delete_word_right", "Delete a word"),
    ]
    HELP = "Type one line. Enter accepts, Esc closes."

    class Submitted(Message):
        """Enter was pressed."""

        def __init__(self, line: LineInput, text: str) -> None:
            super().__init__()
            self.line = line
            self.text = text

        @property
        def control(self) -> LineInput:
            return self.line

    def __init__(self, text: str = "", *, placeholder: str = "", secret: bool = False, id: str | None = None) -> None:
        super().__init__(text, compact=True, soft_wrap=False, tab_behavior="focus", placeholder=placeholder, id=id)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.secret = secret
        """True when the text is a key: neither its characters nor its length beyond 40 are shown."""

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        return Text("•" * min(len(line), MOST_DOTS)) if self.secret else line

    def fill(self, text: str) -> None:
        self.load_text(clean_line(text))
        self.move_cursor(self.document.end)

    def action_submit(self) -> None:
        """Give the line away, behind the letters that were typed before Enter."""
        self.call_later(lambda: self.post_message(self.Submitted(self, self.text.strip())))

    def on_unmount(self) -> None:
        """Remove watchers of the theme: Textual itself removes them only with the next change of theme."""
        watchers: dict[str, list[tuple[object, object]]] = getattr(self.app, "__watchers", {})
        for watching in watchers.values():
            watching[:] = [one for one in watching if one[0] is not self]

    async def _on_key(self, event: events.Key) -> None:
        edit_at_once(self, event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert(clean_line(event.text[:100_000]).strip())
