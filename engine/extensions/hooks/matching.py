"""Matchers of hooks: names, or a regular expression whose work is bounded before it is used."""

from __future__ import annotations

import re
from functools import lru_cache
from math import comb
from typing import Final

LONGEST_PATTERN: Final = 200
LONGEST_SUBJECT: Final = 128
"""Characters of a name that are looked at."""
MOST_WORK: Final = 20_000_000
"""Steps of the worst case, about half a second, once for a pattern and a name."""
_NAMES: Final = re.compile(r"[A-Za-z0-9_\-|]*")
_EVERYTHING: Final = ("", "*")
_PIECE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?:)?|\)|\||[*+?]|\{\d*(?:,\d*)?\}|.", re.DOTALL)
_UNBOUNDED: Final = re.compile(r"[*+]|\{\d*,\}")
_QUANTIFIER: Final = re.compile(r"[*+?]|\{\d*(?:,\d*)?\}")


def why_no_matcher(pattern: str) -> str:
    """Reason why a matcher cannot be used, as a clause; empty where it can."""
    if len(pattern) > LONGEST_PATTERN:
        return f"its matcher is longer than {LONGEST_PATTERN} characters"
    if pattern in _EVERYTHING or _NAMES.fullmatch(pattern):
        return ""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"its matcher is no regular expression ({error})"
    return _why_costly(pattern)


@lru_cache(maxsize=2_000)
def matches(pattern: str, subject: str) -> bool:
    """True if a valid matcher is for a name; names match whole and with their case, expressions anywhere."""
    if pattern in _EVERYTHING:
        return True
    if _NAMES.fullmatch(pattern):
        return subject in pattern.split("|")
    return re.search(pattern, subject[:LONGEST_SUBJECT]) is not None


def _why_costly(pattern: str) -> str:
    """Reason why an expression could take too long on a hostile name.

    Look-around and back references have no bound; neither has a repeated group that can match in several ways.
    """
    if re.search(r"\\\d", pattern):
        return "its matcher has a back reference"
    if "(?" in pattern.replace("(?:", "").replace(r"\(", ""):
        return "its matcher has an extension such as look-around"
    work = _most_work(pattern)
    if work is None:
        return "its matcher repeats a group that repeats or has alternatives"
    return "" if work <= MOST_WORK else "its matcher could take too long; use fewer repetitions"


def _most_work(pattern: str) -> int | None:
    """Upper bound of the ways in which an expression can match: places of what repeats without end, times alternatives,
    times what may be left out. None where a group that can match in several ways is repeated.
    """
    stars, ways = 0, 1
    groups: list[bool] = []
    closed = False
    for piece in _PIECE.findall(pattern):
        is_repeated, closed = closed, False
        if piece.startswith("("):
            groups.append(False)
        elif piece == ")":
            closed = bool(groups) and groups.pop()
            groups = [True] * len(groups) if closed else groups
        elif piece == "|" and groups:
            groups[-1], ways = True, ways * 2
        elif _QUANTIFIER.fullmatch(piece):
            if is_repeated:
                return None
            groups = [True] * len(groups)
            stars += _UNBOUNDED.fullmatch(piece) is not None
            ways *= 1 if _UNBOUNDED.fullmatch(piece) else LONGEST_SUBJECT if "," in piece else 2
    return comb(LONGEST_SUBJECT + stars + 1, stars + 1) * ways
