"""Globs without backtracking: a text is read once, whatever the pattern contains.

`*` and `?` stay within a folder, `**` crosses folders, `{a,b}` is either, `[ab]` a set. The pattern becomes a machine
of as many places as it has characters; all places that a text may have reached are followed at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from tools.contract import ToolInputError

LONGEST: Final = 1_000
"""Characters of a glob."""
KEPT: Final = 1_024
"""Sets of places that a machine remembers, and characters behind each."""
_TOKEN: Final = re.compile(r"\*\*/|\*\*|\[!?\]?[^\]/]*+\]|.", re.DOTALL)
Test: TypeAlias = Callable[[str], bool]


class Glob:
    """One pattern, ready to be held against texts."""

    def __init__(self, pattern: str) -> None:
        self._edges: list[list[tuple[Test, int]]] = [[]]
        self._free: list[list[int]] = [[]]
        """Places reachable from each place without reading a character."""
        self._last = self._built(pattern)
        self._start = self._closed((0,))
        self._sets: list[frozenset[int]] = []
        """Places that a text may have reached, by a number."""
        self._steps: list[dict[str, int]] = []
        """Transitions of each number by character."""
        self._numbers: dict[frozenset[int], int] = {}

    def matches(self, text: str) -> bool:
        """True when the pattern matches the whole text; linear in its length."""
        steps, at = self._steps, self._number(self._start)
        for character in text:
            known = steps[at].get(character)
            at = self._step(at, character) if known is None else known
        return self._last in self._sets[at]

    def _step(self, at: int, character: str) -> int:
        reached = (after for place in self._sets[at] for test, after in self._edges[place] if test(character))
        places = self._closed(reached)
        if len(self._sets) >= KEPT or len(self._steps[at]) >= KEPT:
            self._sets.clear()
            self._steps.clear()
            self._numbers.clear()
            return self._number(places)
        after = self._steps[at][character] = self._number(places)
        return after

    def _number(self, places: frozenset[int]) -> int:
        number = self._numbers.get(places)
        if number is None:
            number = self._numbers[places] = len(self._sets)
            self._sets.append(places)
            self._steps.append({})
        return number

    def _closed(self, places: Iterable[int]) -> frozenset[int]:
        found: set[int] = set()
        waiting = list(places)
        while waiting:
            place = waiting.pop()
            if place not in found:
                found.add(place)
                waiting += self._free[place]
        return frozenset(found)

    def _built(self, pattern: str) -> int:
        """Make the machine; returns its last place."""
        at = 0
        groups: list[tuple[int, list[int]]] = []
        for token in _TOKEN.findall(pattern):
            match token:
                case "*" | "**":
                    self._edges[at].append((_within if token == "*" else _anything, at))
                    at = self._free_to(at)
                case "**/":
                    before, loop = at, self._free_to(at)
                    self._edges[loop].append((_anything, loop))
                    at = self._after(loop, _one("/"))
                    self._free[before].append(at)
                case "{":
                    groups.append((at, []))
                    at = self._free_to(at)
                case "," if groups:
                    groups[-1][1].append(at)
                    at = self._free_to(groups[-1][0])
                case "}":
                    if not groups:
                        raise ValueError("a brace that was never opened")
                    _, ends = groups.pop()
                    end = self._free_to(at)
                    for one in ends:
                        self._free[one].append(end)
                    at = end
                case _:
                    at = self._after(at, _test(token))
        if groups:
            raise ValueError("a brace that is never closed")
        return at

    def _place(self) -> int:
        self._edges.append([])
        self._free.append([])
        return len(self._edges) - 1

    def _free_to(self, place: int) -> int:
        after = self._place()
        self._free[place].append(after)
        return after

    def _after(self, place: int, test: Test) -> int:
        after = self._place()
        self._edges[place].append((test, after))
        return after


def _anything(_: str) -> bool:
    return True


def _within(character: str) -> bool:
    return character != "/"


def _one(wanted: str) -> Test:
    return lambda character: character == wanted


def _test(token: str) -> Test:
    """Build the test that a token applies to one character."""
    if token == "?":
        return _within
    if len(token) == 1:
        return _one(token)
    body = token[1:-1]
    negated = body.startswith("!")
    singles, ranges = _set(body[1:] if negated else body)

    def test(character: str) -> bool:
        inside = character in singles or any(first <= character <= last for first, last in ranges)
        return inside is not negated and (not negated or character != "/")

    return test


def _set(body: str) -> tuple[frozenset[str], list[tuple[str, str]]]:
    """The single characters of a set, and its ranges."""
    if not body:
        raise ValueError("an empty set")
    singles: set[str] = set()
    ranges: list[tuple[str, str]] = []
    place = 0
    while place < len(body):
        if body[place + 1 : place + 2] == "-" and place + 2 < len(body):
            if body[place] > body[place + 2]:
                raise ValueError("a range that ends before it begins")
            ranges.append((body[place], body[place + 2]))
            place += 3
        else:
            singles.add(body[place])
            place += 1
    return frozenset(singles), ranges


@lru_cache(maxsize=64)
def compiled(glob: str) -> Glob:
    """The machine of a glob.

    Raises:
        ToolInputError: it is malformed or too long.
    """
    if len(glob) > LONGEST:
        raise ToolInputError(f"The glob has {len(glob):,} characters; at most {LONGEST:,} are taken.")
    try:
        return Glob(glob)
    except ValueError as error:
        raise ToolInputError(f"The glob {glob} is malformed; use *, ?, **, [ab] and {{a,b}}.") from error
