"""Lines of a change as they are quoted in a message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from msgspec import Struct

from tools.clean import clean, clean_line
from tools.contract import DiffDisplay

HUNK: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")


class DiffPassage(Struct, frozen=True):
    """Neighbouring added or removed lines of a unified diff, and their line in the file."""

    line: int
    text: str


def passages(diff: str) -> list[DiffPassage]:
    """Every place at which a unified diff changes something, from top to bottom."""
    return [
        DiffPassage(rows[0][0], "\n".join(row for _, row in rows))
        for changed, group in groupby(_numbered(diff), lambda row: row[1][:1] in {"+", "-"})
        if changed and (rows := list(group))
    ]


def quoted(display: DiffDisplay, place: int, selected: str = "") -> str:
    """Quote the selection from a file's change, else one of its places counted from 0 (behind the last: the last)."""
    name, found = clean_line(display.path), passages(display.diff)
    if selected.strip():
        return f"About {name}:\n{fenced(clean(selected.rstrip()))}\n"
    if not found:
        return f"About {name}: "
    one = found[min(place, len(found) - 1)]
    return f"About {name}, line {one.line}:\n{fenced(clean(one.text), 'diff')}\n"


def fenced(text: str, language: str = "") -> str:
    """Text as a block of code, whatever backticks it holds."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _numbered(diff: str) -> Iterator[tuple[int, str]]:
    """The rows of all hunks with their line in the new file."""
    line = 0
    for row in diff.splitlines():
        if hunk := HUNK.match(row):
            line = int(hunk[1])
            yield 0, ""
        elif line and not row.startswith("\\"):
            yield line, row
            line += not row.startswith("-")
