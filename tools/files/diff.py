"""Unified diffs, quick on large files: equal beginnings and ends are set aside before lines are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec import Struct

from tools.comparing import Steps, match_blocks
from tools.contract import DiffDisplay
from tools.files.content import speakable

CONTEXT_LINES = 3
MOST_COMPARED = 4000
"""A changed stretch longer than this on either side is shown as one removal and one addition."""
MOST_STEPS = 2_000_000
"""Steps of one comparison, about 0.2 s; a part for which they do not suffice is shown as a removal and an addition."""


class _Change(Struct, frozen=True):
    """Lines `first:last` of the old text become lines `new_first:new_last` of the new one."""

    first: int
    last: int
    new_first: int
    new_last: int


def diff_display(path: str, old: str, new: str, *, created: bool = False) -> DiffDisplay:
    """The change of one file for the screen."""
    before, after = _lines(old), _lines(new)
    changes = list(_changes(before, after))
    parts = [f"--- {'/dev/null' if created else path}\n", f"+++ {path}\n"]
    for group in _grouped(changes):
        parts.extend(_hunk(before, after, group))
    return DiffDisplay(
        path=path,
        diff="".join(parts),
        added=sum(change.new_last - change.new_first for change in changes),
        removed=sum(change.last - change.first for change in changes),
        created=created,
    )


def unified_lines(
    old: Sequence[str], new: Sequence[str], old_name: str = "", new_name: str = "", context: int = CONTEXT_LINES
) -> list[str]:
    """A unified diff of lines that have no ends, as lines without ends; empty where nothing changed."""
    before, after = [f"{line}\n" for line in old], [f"{line}\n" for line in new]
    changes = list(_changes(before, after))
    hunks = [line for group in _grouped(changes, context) for line in _hunk(before, after, group, context)]
    return [line.removesuffix("\n") for line in (f"--- {old_name}", f"+++ {new_name}", *hunks)] if hunks else []


def _lines(text: str) -> list[str]:
    """Lines with their newline; only a last line may lack it."""
    *whole, rest = speakable(text).split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[_Change]:
    start = _equal(before, after)
    shortest = min(len(before), len(after)) - start
    end = min(_equal(before[::-1], after[::-1]), shortest)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(old), len(new)) > MOST_COMPARED:
        yield _Change(start, start + len(old), start, start + len(new))
        return
    first = new_first = 0
    for block in match_blocks(old, new, Steps(MOST_STEPS), autojunk=True).blocks:
        if first < block.old or new_first < block.new:
            yield _Change(start + first, start + block.old, start + new_first, start + block.new)
        first, new_first = block.old + block.size, block.new + block.size


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the equal lines at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _grouped(changes: Sequence[_Change], context: int = CONTEXT_LINES) -> Iterator[list[_Change]]:
    """Changes whose surrounding lines touch, together."""
    group: list[_Change] = []
    for change in changes:
        if group and change.first - group[-1].last > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(
    before: Sequence[str], after: Sequence[str], group: Sequence[_Change], context: int = CONTEXT_LINES
) -> Iterator[str]:
    lead = min(group[0].first, context)
    trail = min(len(before) - group[-1].last, context)
    old = _span(group[0].first - lead, group[-1].last + trail)
    new = _span(group[0].new_first - lead, group[-1].new_last + trail)
    yield f"@@ -{old} +{new} @@\n"
    at = group[0].first - lead
    for change in group:
        yield from _marked(" ", before[at : change.first])
        yield from _marked("-", before[change.first : change.last])
        yield from _marked("+", after[change.new_first : change.new_last])
        at = change.last
    yield from _marked(" ", before[at : at + trail])


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _span(first: int, last: int) -> str:
    """A range as the unified format writes it: an empty one names the line before it."""
    length = last - first
    start = first + 1 if length else first
    return str(start) if length == 1 else f"{start},{length}"
