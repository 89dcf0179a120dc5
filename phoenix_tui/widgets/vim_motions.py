"""Targets of vim's motions in a text: pure functions over a text and an offset in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct

WORD: Final = re.compile(r"\w+|[^\w\s]+|^$", re.MULTILINE)
BIG_WORD: Final = re.compile(r"\S+|^$", re.MULTILINE)
"""An empty line is a word, too."""


class MotionKind(Enum):
    """Range that an operator takes along with a motion."""

    BEFORE = auto()
    """All before the target."""
    WITH = auto()
    """The target as well."""
    LINES = auto()
    """Every line that is touched."""


Motion: TypeAlias = Callable[[str, int, int], int | None]
"""Text, offset and a count (0 where none was given) to the target; None where there is none."""


class CharSearch(Struct, frozen=True):
    """The last sign that was looked for in a line, and how: one of f F t T."""

    how: str
    sign: str

    @property
    def other_way(self) -> CharSearch:
        """The same sign, looked for in the other direction."""
        return CharSearch(self.how.swapcase(), self.sign)


def line_start(text: str, at: int) -> int:
    """The first place of a line."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """The place behind the last sign of a line."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def on_a_sign(text: str, at: int) -> int:
    """The same place, or the last sign of its line for one behind it."""
    at = max(min(at, len(text)), 0)
    return max(min(at, line_end(text, at) - 1), line_start(text, at))


def first_sign(text: str, at: int) -> int:
    """The first sign of a line that is no blank."""
    start, end = line_start(text, at), line_end(text, at)
    return start + len(text[start:end]) - len(text[start:end].lstrip())


def row(text: str, at: int, by: int) -> int | None:
    """The same column `by` lines further down, or as far as there are lines."""
    start = now = line_start(text, at)
    for _ in range(abs(by)):
        if by > 0 and (end := line_end(text, start)) < len(text):
            start = end + 1
        elif by < 0 < start:
            start = line_start(text, start - 1)
    return None if start == now else min(start + at - now, line_end(text, start))


def word_ahead(text: str, at: int, count: int, pattern: re.Pattern[str] = WORD) -> int:
    """The start of the next word; the end of the text behind the last one."""
    starts = [one.start() for one in pattern.finditer(text) if one.start() > at]
    return starts[count - 1] if count <= len(starts) else len(text)


def word_back(text: str, at: int, count: int, pattern: re.Pattern[str] = WORD) -> int | None:
    """The start of the word, or of the one before."""
    starts = [one.start() for one in pattern.finditer(text) if one.start() < at]
    return starts[-min(count, len(starts))] if starts else None


def word_last(text: str, at: int, count: int, pattern: re.Pattern[str] = WORD) -> int | None:
    """The last sign of the word, or of the next one."""
    ends = [one.end() - 1 for one in pattern.finditer(text) if one.end() - 1 > at and one.group()]
    return ends[min(count, len(ends)) - 1] if ends else None


def taken_word(text: str, at: int, count: int, pattern: re.Pattern[str] = WORD) -> int:
    """End of the words for an operator: not beyond the line of the last one."""
    last = word_ahead(text, at, count - 1, pattern) if count > 1 else at
    return min(word_ahead(text, last, 1, pattern), max(line_end(text, last), last))


def find(text: str, at: int, found: CharSearch, count: int, *, again: bool = False) -> int | None:
    """The sign in this line; `again` looks past the one that t or T stopped before."""
    ahead, till = found.how in "ft", found.how in "tT"
    step = 1 if ahead else -1
    place = at + step * (again and till)
    start, end = line_start(text, at), line_end(text, at)
    for _ in range(count):
        place = text.find(found.sign, place + 1, end) if ahead else text.rfind(found.sign, start, max(place, start))
        if place < 0:
            return None
    return place - step * till


def _left(text: str, at: int, count: int) -> int:
    return max(at - (count or 1), line_start(text, at))


def _right(text: str, at: int, count: int) -> int:
    return min(at + (count or 1), line_end(text, at))


def _line_end(text: str, at: int, count: int) -> int | None:
    here = row(text, line_start(text, at), count - 1) if count > 1 else at
    return None if here is None else line_end(text, here)


def _line(text: str, _: int, count: int, *, last: bool) -> int:
    """The line of that number; without one the first, or the last."""
    if not count and last:
        return first_sign(text, len(text))
    return first_sign(text, row(text, 0, count - 1) or 0)


MOTIONS: Final[dict[str, tuple[Motion, MotionKind]]] = {
    "h": (_left, MotionKind.BEFORE),
    "l": (_right, MotionKind.BEFORE),
    "j": (lambda text, at, count: row(text, at, count or 1), MotionKind.LINES),
    "k": (lambda text, at, count: row(text, at, -(count or 1)), MotionKind.LINES),
    "w": (lambda text, at, count: word_ahead(text, at, count or 1), MotionKind.BEFORE),
    "W": (lambda text, at, count: word_ahead(text, at, count or 1, BIG_WORD), MotionKind.BEFORE),
    "b": (lambda text, at, count: word_back(text, at, count or 1), MotionKind.BEFORE),
    "B": (lambda text, at, count: word_back(text, at, count or 1, BIG_WORD), MotionKind.BEFORE),
    "e": (lambda text, at, count: word_last(text, at, count or 1), MotionKind.WITH),
    "E": (lambda text, at, count: word_last(text, at, count or 1, BIG_WORD), MotionKind.WITH),
    "0": (lambda text, at, _: line_start(text, at), MotionKind.BEFORE),
    "^": (lambda text, at, _: first_sign(text, at), MotionKind.BEFORE),
    "$": (_line_end, MotionKind.BEFORE),
    "gg": (partial(_line, last=False), MotionKind.LINES),
    "G": (partial(_line, last=True), MotionKind.LINES),
}
