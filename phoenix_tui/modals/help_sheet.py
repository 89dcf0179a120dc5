"""The help: everyday keys and how to begin, or the keys of a place; all keys and commands behind Tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from textual.binding import Binding, BindingType

from phoenix_tui.features.catalogue import LISTED, SECTION
from phoenix_tui.features.front_end import PageRow
from phoenix_tui.keys.active_keys import hint, key
from phoenix_tui.keys.keymap import EVERYDAY, KEYS_BY_ID, Scope, bindings, help_rows, key_names
from phoenix_tui.modals.rows_sheet import RowsSheet
from phoenix_tui.widgets.line_input import LineInput

FILTER: Final = "/"
"""Key that begins a search elsewhere; here letters are a search from the start."""


class HelpSheet(RowsSheet):
    """Esc, F1, Enter, and ? on an empty line close it."""

    WRAPS = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "close_or_type", "Close", priority=True),
        *bindings(Scope.HELP),
    ]

    def __init__(self, keymap: Mapping[str, str], own: Sequence[str] = (), *, shows_every: bool = False) -> None:
        """Begin with the keys `own` of the place that it was opened from; without any, with the everyday ones."""
        self._is_of_place = bool(own)
        first = key_rows(keymap, own) if own else [*everyday_rows(keymap), *how_to()]
        every = [*key_rows(keymap, list(KEYS_BY_ID)), *command_rows(), *how_to()]
        super().__init__("", first, "", every=every, shows_every=shows_every)

    @property
    def title_now(self) -> str:
        """Title of the rows that are shown."""
        if self.shows_every:
            return "All keys and commands"
        return "Keys here" if self._is_of_place else "Help"

    @property
    def keys_now(self) -> str:
        """Keys for the heading."""
        return hint(("help_all", "shows fewer" if self.shows_every else "shows all keys"))

    def take_row(self) -> None:
        """Close with Enter: it is there to be read."""
        self.dismiss(None)

    def narrow(self, query: str) -> None:
        """Find, also behind the key that begins a search elsewhere."""
        super().narrow(query.removeprefix(FILTER))

    def action_close_or_type(self) -> None:
        """The key that opened it closes it."""
        line = self.query_one(LineInput)
        if line.text:
            line.insert("?")
        else:
            self.dismiss(None)


def everyday_rows(keymap: Mapping[str, str]) -> list[PageRow]:
    """The everyday keys, one each."""
    keys = [(KEYS_BY_ID[name], keymap.get(name, KEYS_BY_ID[name].keys).partition(",")[0]) for name in EVERYDAY]
    return [PageRow("Everyday keys", one.id, key_names(first), one.meaning) for one, first in keys]


def key_rows(keymap: Mapping[str, str], names: Sequence[str]) -> list[PageRow]:
    """Rows of these keys, by the place where they count."""
    rows = help_rows(keymap, names)
    return [
        PageRow(scope.value, f"{scope} {keys}", keys, meaning)
        for scope in Scope
        for where, keys, meaning in rows
        if where is scope
    ]


def command_rows() -> list[PageRow]:
    """The listed commands in their groups."""
    return [
        PageRow(f"Commands: {SECTION[one.name]}", one.name, f"/{one.name}", one.meaning, argument=one.argument)
        for one in LISTED
    ]


def how_to() -> list[PageRow]:
    """The ten commonest things, each by a key, a sign or a command."""
    stop = key("stop")
    ways = (
        ("@", "name a file or a conversation in a message"),
        ("!", "run a command; the model reads its output (with !! only you do)"),
        ("/resume", "continue an earlier conversation"),
        (f"{stop} {stop}", "go back to an earlier prompt, with the files or without"),
        ("/diff", "see what was changed"),
        ("/model", "use another model, or add a provider's key"),
        ("/permissions", "choose what runs without a question"),
        ("/compact", "make room in the context window"),
        ("/worktree", "work on something else at the same time, in files of its own"),
        (f"{key('blocks')} c", "copy an answer, a diff or an output; /copy copies the last answer"),
    )
    return [PageRow("How to", f"how {words}", words, meaning) for words, meaning in ways]
