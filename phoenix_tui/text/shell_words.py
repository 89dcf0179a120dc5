"""The word of a shell line that is being written: where it begins, and whether it names a program."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_SEPARATORS: Final = frozenset(" \t|&;()<>`\n")
_BEGINS: Final = frozenset("|&;(`\n")
"""Separators behind which a program is named."""
_BEFORE_PROGRAMS: Final = frozenset({
    "sudo",
    "time",
    "env",
    "nohup",
    "exec",
    "command",
    "then",
    "do",
    "else",
    "!",
    "xargs",
})
_SPECIAL: Final = re.compile(r"([^A-Za-z0-9_@%+=:,./~^-])")


class ShellWord(Struct, frozen=True):
    """A word up to the cursor."""

    start: int
    """Place of the first character in the line."""
    text: str
    """Characters as bash reads them, without quotation marks and backslashes."""
    is_program: bool
    is_folder: bool = False
    """True behind `cd`: only folders make sense."""


def word_at(line: str, column: int) -> ShellWord:
    """The word left of a column, in a line that may begin with `!`."""
    first = len(line) - len(line.lstrip("!"))
    start, quote, text, before = first, "", "", ""
    begins, place = True, first
    while place < column:
        char = line[place]
        if quote:
            quote, text = ("", text) if char == quote else (quote, text + char)
        elif char == "\\" and place + 1 < column:
            place += 1
            text += line[place]
        elif char in "'\"":
            quote = char
        elif char in _SEPARATORS:
            before = "" if char in _BEGINS else text or before
            begins = char in _BEGINS or (begins and (not text or text in _BEFORE_PROGRAMS or "=" in text))
            start, text = place + 1, ""
        else:
            text += char
        place += 1
    return ShellWord(start, text, begins, before in {"cd", "pushd"})


def quoted(name: str) -> str:
    """A name as a word of bash that keeps a leading `~/`; as readable as it can be."""
    return _SPECIAL.sub(r"\\\1", name)
