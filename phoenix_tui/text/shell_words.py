"""Text as others write it: the word of a shell line at the cursor, and a change quoted in a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from msgspec import Struct

from tools.clean import clean, clean_line
from tools.contract import DiffDisplay

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


def quote_name(name: str) -> str:
    """A name as a word of bash that keeps a leading `~/`; as readable as it can be."""
    return _SPECIAL.sub(r"\\\1", name)


HUNK: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")


class DiffPassage(Struct, frozen=True):
    """Neighbouring added or removed lines of a unified diff, and their line in the file."""

    line: int
    text: str


def passages(diff: str) -> list[DiffPassage]:
    """Every place at which a unified diff changes something, from top to bottom."""
    return [
        DiffPassage(rows[0][0], "\n".join(row for _, row in rows))
        for changed, group in groupby(_number_rows(diff), lambda row: row[1][:1] in {"+", "-"})
        if changed and (rows := list(group))
    ]


def quote_change(display: DiffDisplay, place: int, selected: str = "") -> str:
    """Quote the selection from a file's change, else one of its places counted from 0 (behind the last: the last)."""
    name, found = clean_line(display.path), passages(display.diff)
    if selected.strip():
        return f"About {name}:\n{fence(clean(selected.rstrip()))}\n"
    if not found:
        return f"About {name}: "
    one = found[min(place, len(found) - 1)]
    return f"About {name}, line {one.line}:\n{fence(clean(one.text), 'diff')}\n"


def fence(text: str, language: str = "") -> str:
    """Text as a block of code, whatever backticks it holds."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _number_rows(diff: str) -> Iterator[tuple[int, str]]:
    """The rows of all hunks with their line in the new file."""
    line = 0
    for row in diff.splitlines():
        if hunk := HUNK.match(row):
            line = int(hunk[1])
            yield 0, ""
        elif line and not row.startswith("\\"):
            yield line, row
            line += not row.startswith("-")
