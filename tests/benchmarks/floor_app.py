"""The floor of a start: an empty Textual app with the same kinds of widgets as Phoenix's workspace, and no engine."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.scroll_view import ScrollView
from textual.widgets import OptionList, Static, TextArea

READY = "floor stands"


class FloorApp(App[None]):
    """A list, a title, a transcript, a composer and a status line."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    OptionList { width: 29; } #title { height: 1; } ScrollView { height: 1fr; }
    TextArea { height: 1; border: none; } #status { height: 1; }
    """

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield OptionList()
            with Vertical():
                yield Static("title", id="title")
                yield ScrollView()
                yield TextArea(placeholder=READY)
        yield Static("status", id="status")

    def on_mount(self) -> None:
        self.animation_level = "none"
        self.query_one(TextArea).cursor_blink = False
        self.screen.set_focus(self.query_one(TextArea))


if __name__ == "__main__":
    FloorApp().run()
