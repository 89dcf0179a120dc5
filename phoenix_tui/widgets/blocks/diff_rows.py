"""A unified diff as numbered rows, the changed words within a line, and the few rows of a folded diff."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, zip_longest
from typing import Final, NamedTuple

from msgspec import Struct

from tools.comparing import Steps, match_blocks

MOST_ROWS: Final = 2_000
"""Rows of one file that are ever laid out; the file itself has the rest."""
LONGEST_COMPARED: Final = 1_000
"""Characters of a line up to which words are compared."""
MOST_COMPARED: Final = 400
"""Pairs of lines whose words are compared: more would be seen while opening."""
MOST_STEPS: Final = 300_000
"""Steps of all these comparisons together, about 30 ms; a pair for which they do not suffice has no marks."""
ALIKE: Final = 0.35
"""Share of two lines that must be the same for words to be marked; below it all of the line is new."""
TAB: Final = 4
GAP: Final = "⋯"
"""The sign of a row between two hunks."""
_HUNK: Final = r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@"
_WORDS: Final = r"\w+|\s+|[^\w\s]"


class DiffPiece(NamedTuple):
    """A part of a line; `changed` where it differs from the line it took the place of."""

    text: str
    changed: bool = False


class DiffRow(Struct, frozen=True):
    """One line of a diff: its number in the file it belongs to, `+`, `-` or blank, and its text."""

    number: int
    sign: str
    text: str
    before: int = 0
    """The number an unchanged line had before."""


class MarkedRow(Struct, frozen=True):
    """A row with its changed words."""

    row: DiffRow
    pieces: tuple[DiffPiece, ...]


def diff_rows(diff: str) -> Iterator[DiffRow]:
    """The rows of a unified diff; a row with sign `GAP` separates two hunks."""
    old = new = 0
    started = False
    for line in diff.split("\n"):
        if line.startswith("@@") and (hunk := re.match(_HUNK, line)):
            if started:
                yield DiffRow(0, GAP, "")
            old, new, started = int(hunk[1]), int(hunk[2]), True
        elif not started or not line or line[0] == "\\":
            continue
        elif line[0] == "-":
            yield DiffRow(old, "-", line[1:])
            old += 1
        elif line[0] == "+":
            yield DiffRow(new, "+", line[1:])
            new += 1
        else:
            yield DiffRow(new, " ", line[1:], old)
            old, new = old + 1, new + 1


def runs(rows: Sequence[DiffRow]) -> Iterator[tuple[Sequence[DiffRow], Sequence[DiffRow]]]:
    """Removed rows together with the added rows that replace them; a row of another kind comes alone, as the first."""
    place = 0
    while place < len(rows):
        if rows[place].sign not in "+-":
            yield rows[place : place + 1], ()
            place += 1
            continue
        middle = place
        while middle < len(rows) and rows[middle].sign == "-":
            middle += 1
        end = middle
        while end < len(rows) and rows[end].sign == "+":
            end += 1
        yield rows[place:middle], rows[middle:end]
        place = end


def mark_runs(rows: Sequence[DiffRow]) -> Iterator[tuple[list[MarkedRow], list[MarkedRow]]]:
    """The same runs, with the words that differ between the n-th line removed and the n-th line added."""
    left, steps = MOST_COMPARED, Steps(MOST_STEPS)
    for before, after in runs(rows):
        old = [MarkedRow(row, (DiffPiece(row.text.expandtabs(TAB)),)) for row in before]
        new = [MarkedRow(row, (DiffPiece(row.text.expandtabs(TAB)),)) for row in after]
        for place in range(min(len(old), len(new), left)):
            pieces = compare_lines(old[place].pieces[0].text, new[place].pieces[0].text, steps)
            if pieces is not None:
                old[place], new[place] = MarkedRow(old[place].row, pieces[0]), MarkedRow(new[place].row, pieces[1])
        left -= min(len(old), len(new), left)
        yield old, new


def compare_lines(old: str, new: str, steps: Steps) -> tuple[tuple[DiffPiece, ...], tuple[DiffPiece, ...]] | None:
    """Split both lines into pieces; None where they have too little in common for marks to help, or comparing them
    takes more than the steps that are left.
    """
    if max(len(old), len(new)) > LONGEST_COMPARED or not old.strip() or not new.strip():
        return None
    was, now = re.findall(_WORDS, old), re.findall(_WORDS, new)
    blocks, is_whole = match_blocks(was, now, steps)
    same = sum(len("".join(was[block.old : block.old + block.size]).strip()) for block in blocks)
    if not is_whole or same < ALIKE * max(len(old.strip()), len(new.strip())):
        return None
    left, right = list[DiffPiece](), list[DiffPiece]()
    a = b = 0
    for block in blocks:
        slide = int(block.size > 0 and _begins_alike(was[a : block.old + 1], now[b : block.new + 1]))
        _put(left, "".join(was[a : a + slide]), changed=False)
        _put(right, "".join(now[b : b + slide]), changed=False)
        _put(left, "".join(was[a + slide : block.old + slide]), changed=True)
        _put(right, "".join(now[b + slide : block.new + slide]), changed=True)
        a, b = block.old + block.size, block.new + block.size
        _put(left, "".join(was[block.old + slide : a]), changed=False)
        _put(right, "".join(now[block.new + slide : b]), changed=False)
    return tuple(left), tuple(right)


def _begins_alike(was: Sequence[str], now: Sequence[str]) -> bool:
    """True when the inserted (or removed) text begins with the blank that also follows it: a mark that begins with the
    word reads better.
    """
    longer = was if len(was) > len(now) else now
    return min(len(was), len(now)) == 1 < len(longer) and longer[0] == longer[-1] and longer[0].isspace()


def _put(pieces: list[DiffPiece], text: str, *, changed: bool) -> None:
    """A blank between two changed words counts as changed, so that a phrase is one mark."""
    if not text:
        return
    if not changed and not text.strip() and pieces and pieces[-1].changed:
        changed = True
    if pieces and pieces[-1].changed is changed:
        pieces[-1] = DiffPiece(pieces[-1].text + text, changed)
    else:
        pieces.append(DiffPiece(text, changed))


_BETWEEN: Final = DiffRow(0, GAP, "")


def fold_rows(rows: Sequence[DiffRow], most: int) -> list[DiffRow]:
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
