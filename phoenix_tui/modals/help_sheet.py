"""Every key and command, from the very tables that bind them; type to find one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.binding import Binding, BindingType

from phoenix_tui.features.catalogue import COMMANDS
from phoenix_tui.keys.keymap import Scope, help_rows
from phoenix_tui.modals.rows_sheet import RowsSheet, SheetRow
from phoenix_tui.widgets.line_input import LineInput

ALSO: Final = (
    ("@ names a file", "its path goes into the message"),
    ("! runs a command", "the model reads its output with your next message"),
    ("!! runs a command", "only you see its output"),
)


class HelpSheet(RowsSheet):
    """Esc, F1, and ? on an empty line close it."""

    WRAPS = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "close_or_type", "Close", priority=True),
    ]

    def __init__(self, keymap: Mapping[str, str], where: Scope | None = None) -> None:
        """Begin at the keys of `where`."""
        super().__init__("Keys and commands", help_entries(keymap), "", current=where.value if where else "")

    def take_row(self) -> None:
        """Close with Enter: it is there to be read."""
        self.dismiss(None)

    def action_close_or_type(self) -> None:
        """The key that opened it closes it."""
        line = self.query_one(LineInput)
        if line.text:
            line.insert("?")
        else:
            self.dismiss(None)


def help_entries(keymap: Mapping[str, str]) -> list[SheetRow]:
    """Keys by where they count, then commands, then the signs that begin a line."""
    rows = help_rows(keymap)
    keys = [
        SheetRow(scope.value, scope.value, names, meaning)
        for scope in Scope
        for where, names, meaning in rows
        if where is scope
    ]
    commands = [SheetRow("Commands", one.name, f"/{one.name}", one.meaning, argument=one.argument) for one in COMMANDS]
    return [*keys, *commands, *(SheetRow("Also", sign, sign, meaning) for sign, meaning in ALSO)]
