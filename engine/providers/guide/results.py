"""Reads the text that tools give a model: file lists, numbered lines, matches, test totals."""

from __future__ import annotations

import re

from msgspec import Struct

from tools.wording import counted

_NUMBERED = re.compile(r"^\s*\d+\t(.*)$")
_NOTICE = re.compile(r"^\[(?:no |\d|still alive|timed out|exit code|ended by|…)")
"""Bracketed line of a tool about its result."""
_MATCH = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+): ?(?P<text>.*)$")
_TOTALS = re.compile(r"\b(\d+) (passed|failed|errors?|skipped|xfailed|tests? ran)\b")


_FILES_CUT = re.compile(r"^\[([\d,]+) of (more than )?([\d,]+) files shown", re.MULTILINE)
_CUT = re.compile(r"^\[[\d,]+ (?:lines?|match(?:es)?) shown[;,]", re.MULTILINE)


class Match(Struct, frozen=True):
    """One line a search found."""

    path: str
    line: int
    text: str


def listed_files(text: str) -> tuple[str, ...]:
    """The paths in an answer of list_files, one a line; notices are left out."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line.removeprefix("./") for line in lines if line and not _NOTICE.match(line))


class FileCount(Struct, frozen=True):
    """Number of files found by list_files; its answer names the first of them."""

    number: int
    at_least: bool = False
    """True where it stopped counting."""
    named: int = 0
    """Files that are named, where they are not all."""

    @property
    def words(self) -> str:
        """`1,485 files`, `more than 50,000 files`."""
        return f"{'more than ' if self.at_least else ''}{counted(self.number, 'file')}"


def file_count(text: str) -> FileCount:
    """The count in an answer of list_files, also where it names only some."""
    named = len(listed_files(text))
    cut = _FILES_CUT.search(text)
    if cut is None:
        return FileCount(named)
    return FileCount(int(cut[3].replace(",", "")), bool(cut[2]), named)


def goes_on(text: str) -> bool:
    """True where read_file or search left the rest out."""
    return _CUT.search(text) is not None


def plain_lines(text: str) -> list[str]:
    """The lines of an answer of read_file without their numbers."""
    numbered = (_NUMBERED.match(line) for line in text.splitlines())
    return [found.group(1) for found in numbered if found]


def matches(text: str) -> tuple[Match, ...]:
    """The matches in an answer of search."""
    found = (_MATCH.match(line) for line in text.splitlines())
    return tuple(Match(one["path"], int(one["line"]), one["text"].strip()) for one in found if one)


def test_totals(text: str) -> str:
    """`12 passed, 1 failed` as test runners print it last; empty when nothing like it is there."""
    totals: dict[str, str] = {}
    for line in text.splitlines()[-40:]:
        found = _TOTALS.findall(line)
        if found:
            totals = {what: number for number, what in found}
    return ", ".join(f"{number} {what}" for what, number in totals.items())
