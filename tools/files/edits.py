"""Edits of one text: exact replacement first, then one that forgives blanks (SPEC REQ-PATCH)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import assert_never

from msgspec import Struct

from tools.failure import ToolFailure
from tools.files.content import speakable

MOST_SEARCHED = 20_000
"""Lines looked through for the closest match of a failed replacement."""
MOST_SHOWN = 12
LONGEST_COMPARED = 400
MOST_COMPARED = 500_000
"""Characters of lines of like length that are compared in all, about 0.3 s; what comes behind is not looked at."""
LEAST_LIKE = 0.5
"""The share of pairs of characters that two lines have in common, from which one is named as the closest."""


class Operation(StrEnum):
    """Kinds of edits."""

    REPLACE = "replace"
    APPEND = "append"
    PREPEND = "prepend"
    OVERWRITE = "overwrite"


class FileEdit(Struct, frozen=True):
    """One edit; `old` matters for a replacement alone."""

    operation: Operation
    new: str
    old: str = ""


def apply_edits(text: str, edits: Sequence[FileEdit]) -> str:
    """Apply all edits in order, each to the result of the one before.

    Raises:
        ToolFailure: a replacement that does not match exactly one place; nothing is to be written then.
    """
    for number, edit in enumerate(edits, start=1):
        where = f"Edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        text = _applied(text, edit, where)
    return text


def _applied(text: str, edit: FileEdit, where: str) -> str:
    match edit.operation:
        case Operation.REPLACE:
            return _replaced(text, edit.old, edit.new, where)
        case Operation.APPEND:
            return f"{text}{_gap(text)}{edit.new}"
        case Operation.PREPEND:
            return f"{edit.new}{_gap(edit.new) if text else ''}{text}"
        case Operation.OVERWRITE:
            return edit.new
        case _:
            assert_never(edit.operation)


def _gap(text: str) -> str:
    """Line break needed between `text` and the next line."""
    return "" if not text or text.endswith("\n") else "\n"


def _replaced(text: str, old: str, new: str, where: str) -> str:
    count = text.count(old)
    if count == 1:
        return text.replace(old, new)
    if count > 1:
        raise ToolFailure(
            f"{where}old occurs {count} times ({_places(text, old)}); add lines around it until it is unique."
        )
    return _replaced_loosely(text, old, new, where)


def _replaced_loosely(text: str, old: str, new: str, where: str) -> str:
    """Replace whole lines that differ from `old` in blanks at their ends, or in their common indentation."""
    lines, wanted = text.split("\n"), old.removesuffix("\n").split("\n")
    fresh = new.removesuffix("\n") if old.endswith("\n") else new
    for loosened in (str.rstrip, str.strip):
        starts = _matches([loosened(line) for line in lines], [loosened(line) for line in wanted])
        if len(starts) > 1:
            numbers = ", ".join(str(start + 1) for start in starts[:5])
            raise ToolFailure(
                f"{where}old is not in the file exactly; apart from blanks it occurs {len(starts)} times "
                f"(lines {numbers}). Copy the lines exactly as read_file shows them."
            )
        if starts:
            return _spliced(lines, starts[0], wanted, fresh.split("\n") if new else [])
    raise ToolFailure(f"{where}old is not in the file. {_closest(lines, wanted)}")


def _matches(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    if not any(wanted):
        return []
    last = len(lines) - len(wanted)
    return [at for at in range(last + 1) if lines[at] == wanted[0] and lines[at : at + len(wanted)] == list(wanted)]


def _spliced(lines: list[str], start: int, wanted: Sequence[str], new: Sequence[str]) -> str:
    ending = "\r" if lines[start].endswith("\r") else ""
    found, asked = _indent(lines[start]), _indent(wanted[0])
    fresh = [f"{_reindented(line, asked, found)}{ending}" for line in new]
    return "\n".join([*lines[:start], *fresh, *lines[start + len(wanted) :]])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _reindented(line: str, asked: str, found: str) -> str:
    """Move a line by as much as the file's indentation differs from the one the model wrote."""
    if not line.strip() or not line.startswith(asked):
        return line
    return found + line[len(asked) :]


def _places(text: str, old: str) -> str:
    numbers: list[int] = []
    at = text.find(old)
    while at >= 0 and len(numbers) < 5:
        numbers.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + len(old))
    return "lines " + ", ".join(map(str, numbers))


def _closest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Name the lines most like the first telling line of `wanted`."""
    offset, telling = max(enumerate(wanted), key=lambda item: len(item[1].strip()))
    pairs, left = _pairs(telling), MOST_COMPARED
    best, place = LEAST_LIKE, -1
    for number, line in enumerate(lines[:MOST_SEARCHED]):
        size, own = len(line.strip()[:LONGEST_COMPARED]) + 1, pairs.total()
        if 2 * min(own, size) <= best * (own + size):
            continue
        left -= size
        if left < 0:
            break
        alike = 2 * (pairs & _pairs(line)).total() / (own + size)
        if alike > best:
            best, place = alike, number
    if place < 0:
        return "Nothing in it is similar; read it again with read_file."
    first = max(0, place - offset)
    shown = lines[first : first + min(len(wanted), MOST_SHOWN)]
    return f"The closest lines start at {first + 1}:\n" + speakable("\n".join(shown))


def _pairs(line: str) -> Counter[str]:
    """The pairs of neighbouring characters in a line, so that comparing takes no longer than reading."""
    text = line.strip()[:LONGEST_COMPARED]
    return Counter(first + second for first, second in pairwise(f" {text} ")) if text else Counter()
