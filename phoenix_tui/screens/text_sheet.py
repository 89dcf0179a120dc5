"""Text to read over the workspace: help, context, cost, jobs, doctor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from phoenix_tui.commands.catalogue import COMMANDS
from phoenix_tui.keymap import Scope, help_rows
from phoenix_tui.labels import Tone
from phoenix_tui.screens.base import Sheet

ALSO: Final = (
    ("@ names a file", "its path goes into the message"),
    ("! runs a command", "the model reads its output with your next message"),
    ("!! runs a command", "only you see its output"),
)

KEY_COLUMN: Final = 18
"""Cells for keys and commands; a longer one pushes its meaning to the right."""


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


def help_text(keymap: Mapping[str, str]) -> Content:
    """Every key and every command, from the very tables that bind them."""
    rows = help_rows(keymap)
    widest = min(max(len(keys) for _, keys, _ in rows), KEY_COLUMN)
    parts: list[tuple[str, str]] = []
    for scope in Scope:
        parts.append((f"{scope.value}\n", f"bold {Tone.YOU.value}"))
        for where, keys, meaning in rows:
            if where is scope:
                parts += [(f"  {keys:<{widest}}  ", ""), (f"{meaning}\n", Tone.QUIET.value)]
    parts.append(("Commands\n", f"bold {Tone.YOU.value}"))
    for command in COMMANDS:
        parts += [(f"  {command.usage:<{widest}}  ", ""), (f"{command.meaning}\n", Tone.QUIET.value)]
    parts.append(("Also\n", f"bold {Tone.YOU.value}"))
    for sign, meaning in ALSO:
        parts += [(f"  {sign:<{widest}}  ", ""), (f"{meaning}\n", Tone.QUIET.value)]
    return Content.assemble(*parts).rstrip()
