"""Reads the text that tools give a model: file lists, numbered lines, matches, test totals."""

from __future__ import annotations

import re

from msgspec import Struct

_NUMBERED = re.compile(r"^\s*\d+\t(.*)$")
_NOTICE = re.compile(r"^\[(?:no |\d|still alive|timed out|exit code|ended by|…)")
"""A bracketed line in which a tool speaks of its result."""
_MATCH = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+): ?(?P<text>.*)$")
_TOTALS = re.compile(r"\b(\d+) (passed|failed|errors?|skipped|xfailed|tests? ran)\b")


class Match(Struct, frozen=True):
    """One line a search found."""

    path: str
    line: int
    text: str


def listed_files(text: str) -> tuple[str, ...]:
    """The paths in an answer of list_files, one a line; notices are left out."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line.removeprefix("./") for line in lines if line and not _NOTICE.match(line))


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
