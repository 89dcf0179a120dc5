"""Values about terminals that tools, engine and screens share."""

from __future__ import annotations

from msgspec import Struct


class TerminalSize(Struct, frozen=True):
    """Size of a terminal in cells, 1 to 65,535 each."""

    rows: int = 24
    columns: int = 80


class TextRun(Struct, frozen=True, array_like=True):
    """Characters of a line in one look; `row` counts lines from 0, `start` and `end` characters."""

    row: int
    start: int
    end: int
    look: str
    """SGR parameters, such as `1;31`."""


class TerminalModes(Struct, frozen=True):
    """Modes of a terminal that change what keys send."""

    application_keys: bool = False
    """Arrow keys have their second form (DECCKM)."""
    brackets_pastes: bool = False
    """Pasted text stands between `CSI 200~` and `CSI 201~`."""


class TerminalRows(Struct, frozen=True):
    """The newest rows of a program in a terminal, in place of those reported before."""

    text: str
    runs: tuple[TextRun, ...] = ()
    folder: str = ""
    """Folder in which it runs, where it is not the conversation's."""
    cursor: tuple[int, int] | None = None
    """Row of the cursor, and the characters before it; None while the program hides it."""
    wants_screen: bool = False
    """True while the program uses the alternate screen, for which it needs the user's terminal."""
    reads_keys: bool = False
    """True while it reads keys as programs for a whole screen do, such as top: the user's terminal suits it better."""


class ShellTerminal(Struct, frozen=True):
    """The terminal of a line that the user typed, and the folder that the line before ended in."""

    size: TerminalSize = TerminalSize()
    folder: str = ""
    """Empty: the conversation's."""


class TerminalFacts(Struct, frozen=True):
    """Facts about the output of a program in a terminal, beside its text."""

    runs: tuple[TextRun, ...] = ()
    """Coloured pieces of its lines."""
    folder: str = ""
    """Folder in which the shell ended; empty where it did not say."""
