"""Comparisons of sequences within a number of steps that is fixed before they start: blocks that match, near names.

The library's own loop takes cubic time on repeated elements: a pair of lines with 500 equal words each takes 17 s
(SECURITY S7).
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, takewhile
from typing import Final, NamedTuple

from msgspec import Struct

LONGEST_NAME: Final = 120
"""Characters of a name that is compared with others."""
MOST_NAMES: Final = 5_000
LEAST_JUNK: Final = 200
"""Elements from which `autojunk` of the library leaves out those that make up more than a hundredth."""
NAME_STEPS: Final = 500_000
"""Steps for all names together."""


class Steps(Struct):
    """Steps that several comparisons may take together: pairs of equal elements that are looked at."""

    left: int


class MatchingBlock(NamedTuple):
    """`size` elements from `old` on in the one sequence are those from `new` on in the other."""

    old: int
    new: int
    size: int


class Matching(NamedTuple):
    """Blocks in their order, the last one empty and at both ends."""

    blocks: Sequence[MatchingBlock]
    is_whole: bool
    """False where the steps did not suffice; a part that was left out counts as different."""


def match_blocks(old: Sequence[str], new: Sequence[str], steps: Steps, *, autojunk: bool = False) -> Matching:
    """Blocks that both have in common, the longest first; each search is paid for before it starts."""
    often = len(new) // 100 + 1 if autojunk and len(new) >= LEAST_JUNK else len(new)
    places = {one: count for one, count in Counter(new).items() if count <= often}
    return _match(SequenceMatcher(None, old, new, autojunk=autojunk), old, len(new), places, steps)


def _match(
    matcher: SequenceMatcher[str], old: Sequence[str], size: int, places: Mapping[str, int], steps: Steps
) -> Matching:
    """The same with a matcher of `old` and a sequence of this size that has each element in so many places."""
    costs = list(accumulate((places.get(one, 0) + 1 for one in old), initial=0))
    waiting, found, is_whole = deque([(0, len(old), 0, size)]), list[MatchingBlock](), True
    while waiting:
        first, last, new_first, new_last = waiting.popleft()
        cost = costs[last] - costs[first]
        if cost > steps.left:
            is_whole = False
            continue
        steps.left -= cost
        block = MatchingBlock(*matcher.find_longest_match(first, last, new_first, new_last))
        if not block.size:
            continue
        found.append(block)
        if first < block.old and new_first < block.new:
            waiting.append((first, block.old, new_first, block.new))
        if block.old + block.size < last and block.new + block.size < new_last:
            waiting.append((block.old + block.size, last, block.new + block.size, new_last))
    return Matching([*_join_blocks(sorted(found)), MatchingBlock(len(old), size, 0)], is_whole)


def _join_blocks(blocks: Iterable[MatchingBlock]) -> list[MatchingBlock]:
    """Neighbours as one block."""
    joined: list[MatchingBlock] = []
    for block in blocks:
        before = joined[-1] if joined else MatchingBlock(-1, -1, 0)
        if before.size and (before.old + before.size, before.new + before.size) == (block.old, block.new):
            joined[-1] = before._replace(size=before.size + block.size)
        else:
            joined.append(block)
    return joined


def near_names(name: str, known: Iterable[str], most: int = 3, likeness: float = 0.6) -> list[str]:
    """At most `most` of the known names that are like this one, the most similar first; none for a long one."""
    if not name or len(name) > LONGEST_NAME:
        return []
    matcher, places, steps = SequenceMatcher[str](None, "", name, autojunk=False), Counter(name), Steps(NAME_STEPS)
    found: list[tuple[float, str]] = []
    for one in list(known)[:MOST_NAMES]:
        matcher.set_seq1(one)
        if len(one) > LONGEST_NAME or min(matcher.real_quick_ratio(), matcher.quick_ratio()) < likeness:
            continue
        alike = (
            2
            * sum(block.size for block in _match(matcher, one, len(name), places, steps).blocks)
            / (len(one) + len(name))
        )
        if alike >= likeness:
            found.append((alike, one))
    return [one for _, one in heapq.nlargest(most, found)]


def count_equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the equal lines at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
