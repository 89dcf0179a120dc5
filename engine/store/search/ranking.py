"""Order of the matches, and the line that shows one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.search import folded, occurrences

SATURATION: Final = 1.2
LENGTH_SHARE: Final = 0.75
"""k1 and b of BM25, as everywhere."""
USUAL_LENGTH: Final = 1_000
"""Characters of a usual text; the true average would be one more figure to keep."""
WHOLE_WORD: Final = 1.0
"""Additional weight of a word that is no part of another one."""
HALF_LIFE: Final = 30 * 86_400.0
"""Seconds after which being new counts half."""
OLD: Final = 0.4
"""Least factor of a score, however old the text is."""
AGAIN: Final = 0.9
"""Factor of each further hit of the same conversation, so that one long conversation hides no others."""
SNIPPET_BEFORE: Final = 40
SNIPPET_LENGTH: Final = 200
"""Characters of a snippet, and the number of them before the match."""
_BLANKS: Final = re.compile(r"\s+")
FAR: Final = 20_000
"""Characters behind the first match in which the best place for a snippet is looked for."""


class Candidate(Struct, frozen=True):
    """A text that matches; `source` is the id of its message or tool call."""

    source: str
    conversation_id: str
    is_call: bool
    created_at: float
    text: str


def best(candidates: Sequence[Candidate], words: Sequence[str], now: float) -> list[Candidate]:
    """The candidates by BM25 and age; without words simply the newest first."""
    if not words:
        return sorted(candidates, key=lambda one: -one.created_at)
    scored = sorted(((_score(one, words, now), one) for one in candidates), key=lambda each: _order(*each))
    seen: Counter[str] = Counter()
    spread: list[tuple[float, Candidate]] = []
    for score, one in scored:
        spread.append((score * AGAIN ** seen[one.conversation_id], one))
        seen[one.conversation_id] += 1
    return [one for _, one in sorted(spread, key=lambda each: _order(*each))]


def _order(score: float, candidate: Candidate) -> tuple[float, float]:
    return -score, -candidate.created_at


def _score(candidate: Candidate, words: Sequence[str], now: float) -> float:
    text = candidate.text
    penalty = 1 - LENGTH_SHARE + LENGTH_SHARE * len(text) / USUAL_LENGTH
    relevance = sum(_weight(text, word, penalty) for word in words)
    age = max(now - candidate.created_at, 0.0)
    return relevance * (OLD + (1 - OLD) * math.exp2(-age / HALF_LIFE))


def _weight(text: str, word: str, penalty: float) -> float:
    """BM25 of one word; length serves as rarity, since every candidate contains all words."""
    places = occurrences(text, (word,))
    count = len(places)
    rarity = math.log2(1 + len(word))
    alone = any(_stands_alone(text, start, end) for start, end in places[:8])
    return rarity * (count * (SATURATION + 1) / (count + SATURATION * penalty) + WHOLE_WORD * alone)


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (before.isalnum() or after.isalnum())


def snippet(text: str, words: Sequence[str]) -> str:
    """One line around the densest occurrence of the words."""
    place = _best_place(text, words)
    start = _begins_word(text, max(0, place - SNIPPET_BEFORE), place)
    part = " ".join(text[start : start + SNIPPET_LENGTH].split())
    return f"{'…' if start else ''}{part}{'…' if start + SNIPPET_LENGTH < len(text) else ''}"


def _begins_word(text: str, start: int, end: int) -> int:
    """The first place from `start` on at which a word begins; `start` where none does before `end`."""
    if not start or text[start - 1].isspace():
        return start
    found = _BLANKS.search(text, start, end)
    return found.end() if found else start


def _best_place(text: str, words: Sequence[str]) -> int:
    places = sorted((start, word) for word in words for start, _ in occurrences(text[: _reach(text, words)], (word,)))
    near: Counter[str] = Counter()
    best, most, end = 0, 0, 0
    for start, word in places:
        while end < len(places) and places[end][0] < start + SNIPPET_LENGTH - SNIPPET_BEFORE:
            near[places[end][1]] += 1
            end += 1
        if len(near) > most:
            best, most = start, len(near)
        near -= Counter((word,))
    return best


def _reach(text: str, words: Sequence[str]) -> int:
    """Number of characters searched: up to `FAR` behind the first occurrence of the word that comes last."""
    low = folded(text)
    return max((low.find(folded(word)) for word in words), default=0) + FAR
