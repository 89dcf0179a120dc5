"""Wildcards of path rules, matched in time linear in the text: no pattern can make it backtrack."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from msgspec import Struct

WILDCARDS: Final = re.compile(r"[*?\[]")
LONGEST: Final = 4_096
"""Characters of a pattern: the longest path that Linux takes (PATH_MAX). A longer pattern matches nothing."""


class _Glob(Struct, frozen=True):
    """A pattern as an automaton: bit n of a state set means that n tokens have matched."""

    tokens: tuple[str, ...]
    loops: int
    """Bits of the positions of stars."""


def glob_matches(pattern: str, text: str) -> bool:
    """True if the whole of `text` matches; `*` is any text, `?` any character, `[ab]` one of these."""
    if len(pattern) > LONGEST:
        return False
    glob = _parse(pattern)
    masks: dict[str, int] = {}
    states = 1
    for character in text:
        mask = masks.get(character)
        if mask is None:
            mask = masks[character] = sum(1 << n for n, token in enumerate(glob.tokens) if _takes(token, character))
        states = (states & mask) << 1 | states & glob.loops
        if not states:
            return False
    return bool(states >> len(glob.tokens) & 1)


@lru_cache(maxsize=256)
def _parse(pattern: str) -> _Glob:
    tokens: list[str] = []
    loops = place = 0
    while place < len(pattern):
        if pattern[place] == "*":
            loops |= 1 << len(tokens)
            place += 1
            continue
        end = _set_end(pattern, place) if pattern[place] == "[" else place + 1
        tokens.append(pattern[place:end])
        place = end
    return _Glob(tuple(tokens), loops)


def _set_end(pattern: str, start: int) -> int:
    """End of the set that begins at `start`; the index behind its bracket when none closes it."""
    first = start + 1
    if pattern[first : first + 1] == "!":
        first += 1
    closing = pattern.find("]", first + 1 if pattern[first : first + 1] == "]" else first)
    return start + 1 if closing < 0 else closing + 1


def _takes(token: str, character: str) -> bool:
    if len(token) > 1:
        return _set_test(token)(character)
    return token in {"?", character}


@lru_cache(maxsize=256)
def _set_test(token: str) -> Callable[[str], bool]:
    """One set as `fnmatch` reads it; a set alone matches one character and cannot backtrack."""
    compiled = re.compile(fnmatch.translate(token))
    return lambda character: compiled.match(character) is not None
