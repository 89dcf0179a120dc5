"""Vim's motions and text objects: pure functions over a text and an offset in it."""

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
        return CharSearch(self.how.swapcase(), self.sign)


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def on_a_sign(text: str, at: int) -> int:
    """The same place, or the last sign of its line for one behind it."""
    at = max(min(at, len(text)), 0)
    return max(min(at, line_end(text, at) - 1), line_start(text, at))


def first_sign(text: str, at: int) -> int:
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
    starts = [one.start() for one in pattern.finditer(text) if one.start() > at]
    return starts[count - 1] if count <= len(starts) else len(text)


def word_back(text: str, at: int, count: int, pattern: re.Pattern[str] = WORD) -> int | None:
    starts = [one.start() for one in pattern.finditer(text) if one.start() < at]
    return starts[-min(count, len(starts))] if starts else None


def word_last(text: str, at: int, count: int, pattern: re.Pattern[str] = WORD) -> int | None:
    ends = [one.end() - 1 for one in pattern.finditer(text) if one.end() - 1 > at and one.group()]
    return ends[min(count, len(ends)) - 1] if ends else None


def take_word(text: str, at: int, count: int, pattern: re.Pattern[str] = WORD) -> int:
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


def _line_end(text: str, at: int, count: int) -> int | None:
    here = row(text, line_start(text, at), count - 1) if count > 1 else at
    return None if here is None else line_end(text, here)


def _line(text: str, _: int, count: int, *, last: bool) -> int:
    """The line of that number; without one the first, or the last."""
    if not count and last:
        return first_sign(text, len(text))
    return first_sign(text, row(text, 0, count - 1) or 0)


MOTIONS: Final[dict[str, tuple[Motion, MotionKind]]] = {
    "h": (lambda text, at, count: max(at - (count or 1), line_start(text, at)), MotionKind.BEFORE),
    "l": (lambda text, at, count: min(at + (count or 1), line_end(text, at)), MotionKind.BEFORE),
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


PIECES: Final = {"w": re.compile(r"\w+|[^\w\s]+|[^\S\n]+"), "W": re.compile(r"\S+|[^\S\n]+")}
"""A run of blanks is a piece as a word is."""
QUOTES: Final = "\"'`"
BRACKETS: Final = {
    **dict.fromkeys("()b", "()"),
    **dict.fromkeys("[]", "[]"),
    **dict.fromkeys("{}B", "{}"),
    **dict.fromkeys("<>", "<>"),
}


def around(text: str, at: int, key: str, count: int, *, whole: bool) -> tuple[int, int] | None:
    """Start and end of `iw`, `a"`, `i(` and the like; `whole` is `a`. None where there is no such object."""
    if key in PIECES:
        return _words(text, at, PIECES[key], count, whole=whole)
    if key in QUOTES:
        return _find_quotes(text, at, key, whole=whole)
    if key in BRACKETS:
        return _find_brackets(text, at, BRACKETS[key], count, whole=whole)
    return _paragraph(text, at, whole=whole) if key == "p" else None


def _words(text: str, at: int, piece: re.Pattern[str], count: int, *, whole: bool) -> tuple[int, int] | None:
    """Span of `count` pieces of the line; `whole` counts words alone and takes the blanks behind them, else those
    before.
    """
    first, last = line_start(text, at), line_end(text, at)
    pieces = [found.span() for found in piece.finditer(text, first, last)]
    here = next((place for place, (start, end) in enumerate(pieces) if start <= at < end), None)
    if here is None:
        return None
    begin, stop = here, min(here + count * (2 if whole else 1), len(pieces))
    if whole and not (_blank(text, pieces[begin]) or _blank(text, pieces[stop - 1])):
        stop = min(here + 2 * count - 1, len(pieces))
        begin -= begin > 0 and _blank(text, pieces[begin - 1])
    return pieces[begin][0], pieces[stop - 1][1]


def _blank(text: str, span: tuple[int, int]) -> bool:
    return text[span[0]].isspace()


def _find_quotes(text: str, at: int, quote: str, *, whole: bool) -> tuple[int, int] | None:
    """Span between two quotes of the line: those around the place, else the next ones."""
    start, end = line_start(text, at), line_end(text, at)
    places = [found.start() + 1 for found in re.finditer(rf"(?<!\\){quote}", text[start:end])]
    for opening, closing in zip(places[::2], places[1::2], strict=False):
        left, right = start + opening, start + closing
        if at < right:
            if not whole:
                return left, right - 1
            behind = len(text[right:end]) - len(text[right:end].lstrip())
            return left - 1, right + behind
    return None


def _find_brackets(text: str, at: int, pair: str, count: int, *, whole: bool) -> tuple[int, int] | None:
    """Span between the brackets around the place, over lines, `count` levels out."""
    opening = _out(text, at if text[at : at + 1] == pair[0] else at - 1, pair, -1, count)
    if opening is None:
        return None
    closing = _out(text, opening + 1, pair[::-1], 1, 1)
    if closing is None:
        return None
    if whole:
        return opening, closing + 1
    before = line_start(text, closing)
    has_lines = text[opening + 1] == "\n" and opening + 1 < before and not text[before:closing].strip()
    return (opening + 2, max(before - 1, opening + 2)) if has_lines else (opening + 1, closing)


def _out(text: str, at: int, pair: str, step: int, levels: int) -> int | None:
    """The bracket `pair[0]` that many levels further out, from `at` in steps of one."""
    wanted, other = pair[0], pair[1]
    while 0 <= at < len(text):
        levels += (text[at] == other) - (text[at] == wanted)
        if not levels:
            return at
        at += step
    return None


def _paragraph(text: str, at: int, *, whole: bool) -> tuple[int, int]:
    """Lines up to the next empty one; `whole` takes the empty ones behind as well."""
    start, end = line_start(text, at), line_end(text, at)
    empty = start == end
    while start and (line_start(text, start - 1) == start - 1) is empty:
        start = line_start(text, start - 1)
    while end < len(text) and (line_end(text, end + 1) == end + 1) is empty:
        end = line_end(text, end + 1)
    while whole and end < len(text) and (line_end(text, end + 1) == end + 1) is not empty:
        end = line_end(text, end + 1)
    return start, end
