"""The few rows of a folded diff: changes first, lines around them where there is room."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, zip_longest
from typing import Final

from phoenix_tui.widgets.blocks.diff_rows import GAP, DiffRow, runs

_BETWEEN: Final = DiffRow(0, GAP, "")


def folded(rows: Sequence[DiffRow], most: int) -> list[DiffRow]:
    """At most `most` rows in their order: of each change as many removed as added lines, then neighbours."""
    changes = list(_changes(rows))
    if not changes:
        return list(rows[:most])
    run_of = {place: number for number, run in enumerate(changes) for place in run}
    kept: set[int] = set()
    for place in chain.from_iterable(changes):
        if len(_in_order(rows, {*kept, place}, run_of)) > most:
            break
        kept.add(place)
    while grown := [place for place in _beside(rows, kept) if len(_in_order(rows, {*kept, place}, run_of)) <= most]:
        kept.add(grown[0])
    return _in_order(rows, kept, run_of)


def _changes(rows: Sequence[DiffRow]) -> Iterator[list[int]]:
    """Places of the rows of each change, removed and added ones in turn."""
    place = 0
    for before, after in runs(rows):
        middle, end = place + len(before), place + len(before) + len(after)
        if before and before[0].sign not in "+-":
            place = end
            continue
        pairs = zip_longest(range(place, middle), range(middle, end))
        yield [one for one in chain.from_iterable(pairs) if one is not None]
        place = end


def _beside(rows: Sequence[DiffRow], kept: Collection[int]) -> list[int]:
    """Unchanged rows that touch kept ones, from the top."""
    near = {place + by for place in kept for by in (-1, 1)}
    return sorted(place for place in near - set(kept) if 0 <= place < len(rows) and rows[place].sign == " ")


def _in_order(rows: Sequence[DiffRow], kept: Collection[int], run_of: dict[int, int]) -> list[DiffRow]:
    """The kept rows with a sign where others are left out, but none between the two sides of one change."""
    shown: list[DiffRow] = []
    last, missing = -1, False
    for place in sorted(kept):
        missing = missing or place != last + 1
        same = place in run_of and run_of.get(last) == run_of[place]
        if shown and missing and not same:
            shown.append(_BETWEEN)
        missing = missing and same and bool(shown)
        shown.append(rows[place])
        last = place
    return shown
