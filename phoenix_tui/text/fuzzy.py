"""Finds paths by a few of their letters: one rank for every path, and a search that need not rank them all."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Final, TypeAlias

from msgspec import Struct

BASE_BEGINS: Final = 0
WORD_BEGINS: Final = 1
INITIALS: Final = 2
BASE_CONTAINS: Final = 3
PATH_CONTAINS: Final = 4
BASE_SCATTERED: Final = 5
PATH_SCATTERED: Final = 6
LONG_QUERY: Final = 3
"""Letters above which most paths are no answer, so that looking at all answers is quick."""
_JOINERS: Final = frozenset("_-. /")

Rank: TypeAlias = tuple[int, int, bool, int, int, int, str]
"""Kind of match, how far its letters are spread, False for the whole name before its ending, folders above a name that
begins so, lengths of name and path, the path: lower is better.
"""


class FuzzyMatch(Struct, frozen=True):
    """A path and the places of the letters that were looked for."""

    name: str
    places: tuple[int, ...]


def rank(query: str, name: str) -> Rank | None:
    """Rank of `name` for a query in small letters; None if it does not contain its letters in order.

    A folder ends in a slash, which belongs to its own name.
    """
    found = _match(query, name)
    if found is None:
        return None
    kind, places = found
    spread = places[-1] - places[0] + 1 - len(places) if places else 0
    base = _base(name)
    is_part = _small(name[base:]).rstrip("/").partition(".")[0] != query
    folders = name.count("/", 0, base) if kind == BASE_BEGINS else 0
    return kind, spread, is_part, folders, len(name) - base, len(name), name


def places(query: str, name: str) -> tuple[int, ...]:
    """Positions of the query's letters in a matching name."""
    found = _match(query, name)
    return found[1] if found is not None else ()


def _base(name: str) -> int:
    return name.rfind("/", 0, len(name) - 1) + 1


def _match(query: str, name: str) -> tuple[int, tuple[int, ...]] | None:
    low, base = _small(name), _base(name)
    if low.startswith(query, base):
        return BASE_BEGINS, _run(base, query)
    inside = low.find(query, base)
    begins = inside
    while begins > 0 and not _starts_word(name, begins):
        begins = low.find(query, begins + 1)
    if begins > 0:
        return WORD_BEGINS, _run(begins, query)
    if initials := _initials(query, low, name, base):
        return INITIALS, initials
    if inside >= 0:
        return BASE_CONTAINS, _run(inside, query)
    anywhere = low.find(query)
    if anywhere >= 0:
        return PATH_CONTAINS, _run(anywhere, query)
    if scattered := _match_scattered(query, low, base):
        return BASE_SCATTERED, scattered
    scattered = _match_scattered(query, low, 0)
    return (PATH_SCATTERED, scattered) if scattered else None


def _small(name: str) -> str:
    low = name.lower()
    return low if len(low) == len(name) else name  # some letters grow: offsets must stay valid


def _run(start: int, query: str) -> tuple[int, ...]:
    return tuple(range(start, start + len(query)))


def _starts_word(name: str, place: int) -> bool:
    before = name[place - 1]
    return before in _JOINERS or (name[place].isupper() and before.islower())


def _initials(query: str, low: str, name: str, base: int) -> tuple[int, ...]:
    """The first letters of the words of its own name, where the query is the first of them."""
    if len(query) < 2:
        return ()
    taken: list[int] = []
    for place in range(base, len(name)):
        if place == base or _starts_word(name, place):
            if low[place] != query[len(taken)]:
                return ()
            taken.append(place)
            if len(taken) == len(query):
                return tuple(taken)
    return ()


def _match_scattered(query: str, low: str, start: int) -> tuple[int, ...]:
    taken: list[int] = []
    for letter in query:
        start = low.find(letter, start)
        if start < 0:
            return ()
        taken.append(start)
        start += 1
    return tuple(taken)


class Corpus:
    """Paths to be searched; a longer query searches the results of a shorter one."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names: tuple[str, ...] = tuple(names)
        low = [_small(name) for name in self.names]
        self._text = "\n" + "\n".join(low) + "\n"
        """Every path in small letters, each between line ends: one scan in C looks at all of them."""
        self._starts = list(accumulate((len(one) + 1 for one in low), initial=1))
        self._narrowed: tuple[str, Corpus] | None = None
        self._shallow = heapq.nsmallest(200, self.names, key=_nearness)

    def search(self, query: str, most: int) -> list[FuzzyMatch]:
        """The best `most`, best first; for an empty query those nearest to the root."""
        wanted = query.lower()
        if not wanted or "\n" in wanted:
            return [] if wanted else [FuzzyMatch(name, ()) for name in self._shallow[:most]]
        # The best of those whose own name begins so, if they are enough: no other can be better.
        own_name = rf"{re.escape(wanted)}[^/\n]*+/?(?=\n)"
        hits = chain(re.finditer("/" + own_name, self._text), re.finditer("\n" + own_name, self._text))
        lines = {bisect_right(self._starts, found.start() + 1) - 1 for found in hits}
        best = (
            (self._best(wanted, lines, most) if len(lines) >= most else [])
            or self._find_containing(wanted, most)
            or self._rank_all(wanted, most)
        )
        return [FuzzyMatch(name, places(wanted, name)) for name in best]

    def _find_containing(self, wanted: str, most: int) -> list[str]:
        """The best of those that hold it in one piece, if enough of them hold it where a word begins."""
        if len(wanted) > LONG_QUERY:
            return []  # few paths contain its letters at all
        hits = re.finditer(re.escape(wanted), self._text)
        lines = {bisect_right(self._starts, found.start()) - 1 for found in hits}
        ranked = [found for line in lines if (found := rank(wanted, self.names[line])) and found[0] <= WORD_BEGINS]
        return [found[-1] for found in heapq.nsmallest(most, ranked)] if len(ranked) >= most else []

    def _rank_all(self, wanted: str, most: int) -> list[str]:
        corpus = self._narrow(wanted)
        return corpus._best(wanted, range(len(corpus.names)), most)  # noqa: SLF001 - of its own class

    def _narrow(self, wanted: str) -> Corpus:
        """Names that contain the letters in order; searched among the matches of a shorter query."""
        if self._narrowed is not None and wanted.startswith(self._narrowed[0]):
            held, among = self._narrowed
            if held == wanted:
                return among
        else:
            among = self
        steps = "".join(rf"[^\n{re.escape(letter)}]*+{re.escape(letter)}" for letter in wanted)
        pattern = re.compile(rf"\n{steps}")
        lines = [bisect_right(among._starts, found.start() + 1) - 1 for found in pattern.finditer(among._text)]
        narrowed = Corpus(among.names[line] for line in lines)
        self._narrowed = wanted, narrowed
        return narrowed

    def _best(self, wanted: str, lines: Iterable[int], most: int) -> list[str]:
        ranked = (found for line in lines if (found := rank(wanted, self.names[line])) is not None)
        return [found[-1] for found in heapq.nsmallest(most, ranked)]


def _nearness(name: str) -> tuple[int, bool, str]:
    """Sort key: near the root first, hidden ones behind visible ones."""
    return name.count("/", 0, -1), name.startswith(".") or "/." in name, name.lower()


def with_folders(files: Sequence[str]) -> list[str]:
    """The files and every folder above one of them, each folder with a slash at its end; sorted."""
    folders: set[str] = set()
    for file in files:
        cut = file.rfind("/")
        while cut > 0 and file[: cut + 1] not in folders:
            folders.add(file[: cut + 1])
            cut = file.rfind("/", 0, cut)
    return sorted([*files, *folders])
