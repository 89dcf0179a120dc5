"""Texts in parts for a search: passages of notes, words of a query, and the lines around a match."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from engine.ports.note_index import Passage
from engine.search import folded

FULL: Final = 600
"""Characters from which a passage ends at the next blank line."""
LONGEST: Final = 2_000
"""Characters of one passage."""
MOST_WORDS: Final = 24
LONGEST_WORD: Final = 64
"""Words of a query that are searched, and characters of one."""
LONGEST_QUERY: Final = 4_000
EXCERPT: Final = 480
"""Characters of a match that are shown."""
LEAD: Final = 120
"""Characters of them before the first matching word."""
MOST_PLACES: Final = 200
SHORT: Final = 3
"""Characters up to which a word counts only as a whole: `10` is no part of 410."""
_WORD: Final = re.compile(r"\w+")
_NAME: Final = re.compile(r"(?<!\w)\w++(?:[^\w\s]++\w++)+")
_BLANKS: Final = re.compile(r"\s+")


def passages(text: str) -> list[Passage]:
    """The parts of a file: a heading begins one, a blank line ends a full one, a long line is cut."""
    found: list[Passage] = []
    lines: list[str] = []
    first, size = 1, 0
    for number, line in enumerate(text.split("\n"), 1):
        ends = line.startswith("#") or (size >= FULL and not line.strip()) or size + len(line) > LONGEST
        if ends and size:
            found.append(Passage(first, "\n".join(lines)))
            lines, size = [], 0
        if not size:
            first = number
            if not line.strip():
                continue
        for piece in _pieces(line):
            found.append(Passage(number, piece))
        rest = line[len(line) // LONGEST * LONGEST :]
        lines = [*lines, rest] if size else [rest]
        size += len(rest) + 1
    if any(line.strip() for line in lines):
        found.append(Passage(first, "\n".join(lines)))
    return found


def _pieces(line: str) -> Iterator[str]:
    """The full pieces of a line that is too long for one passage, without its rest."""
    for start in range(0, len(line) // LONGEST * LONGEST, LONGEST):
        yield line[start : start + LONGEST]


def words_of(query: str) -> tuple[str, ...]:
    """The words of a query, each once, without capitals; signs are no words.

    Names of several words, such as `retry-count` or `src/a.py`, come first, as they were written.
    """
    low = folded(query[:LONGEST_QUERY])
    words = _WORD.findall(low)
    found = dict.fromkeys(word[:LONGEST_WORD] for word in (*_NAME.findall(low), *words))
    return tuple(found)[:MOST_WORDS]


def occurrences(low: str, word: str) -> int:
    """Count a word in a text without capitals; a short one only where it is no part of another."""
    count = low.count(word)
    if not count or len(word) > SHORT or not word.isascii():
        return count
    return sum(_stands_alone(low, place, place + len(word)) for place in _places(low, word))


def _stands_alone(low: str, start: int, end: int) -> bool:
    return not (low[max(start - 1, 0) : start].isalnum() or low[end : end + 1].isalnum())


def excerpt(text: str, words: Sequence[str]) -> tuple[int, str]:
    """The number of the line and the text around the place with the most words, in one line."""
    place = _densest(folded(text), words)
    start = max(place - LEAD, 0)
    if start and not text[start - 1].isspace():
        blank = _BLANKS.search(text, start, place)
        start = blank.end() if blank else start
    part = " ".join(text[start : start + EXCERPT].split())
    shown = f"{'…' if start else ''}{part}{'…' if start + EXCERPT < len(text) else ''}"
    return text.count("\n", 0, place) + 1, shown


def _densest(low: str, words: Sequence[str]) -> int:
    """The place of the word in whose window the most different words begin; long words count more."""
    places = sorted((place, word) for word in words for place in _places(low, word))
    best, best_weight, begin = 0, -1.0, 0
    inside: dict[str, int] = {}
    for place, word in places:
        inside[word] = inside.get(word, 0) + 1
        while places[begin][0] < place - (EXCERPT - LEAD):
            gone = places[begin][1]
            inside[gone] -= 1
            begin += 1
        weight = float(sum(len(one) for one, count in inside.items() if count))
        if weight > best_weight:
            best, best_weight = places[begin][0], weight
    return best


def _places(low: str, word: str) -> Iterator[int]:
    place = low.find(word)
    for _ in range(MOST_PLACES):
        if place < 0:
            return
        yield place
        place = low.find(word, place + len(word))
