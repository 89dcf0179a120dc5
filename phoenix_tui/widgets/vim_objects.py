"""Vim's text objects: the word, the quoted or the bracketed piece around a place, pure functions over a text."""

from __future__ import annotations

import re
from typing import Final

from phoenix_tui.widgets.vim_motions import line_end, line_start

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
        return _quoted(text, at, key, whole=whole)
    if key in BRACKETS:
        return _bracketed(text, at, BRACKETS[key], count, whole=whole)
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


def _quoted(text: str, at: int, quote: str, *, whole: bool) -> tuple[int, int] | None:
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


def _bracketed(text: str, at: int, pair: str, count: int, *, whole: bool) -> tuple[int, int] | None:
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
