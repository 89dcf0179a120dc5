"""Text files: their encoding and line ends, edits of their text, and differences as hunks."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import NamedTuple, assert_never
from unicodedata import normalize

from msgspec import Struct

from tools.arguments import ToolFailure
from tools.comparing import Steps, count_equal, match_blocks
from tools.contract import DiffDisplay

PROBE_BYTES = 8192
"""Bytes read to tell text from binary."""


_SURROGATE = re.compile("[\ud800-\udfff]")


class TextContent(Struct, frozen=True):
    """A text file: `text` has `\\n` line ends where all of the file's were `\\r\\n`.

    Bytes that are not UTF-8 are lone surrogates in `text` (surrogateescape), so that they survive an edit.
    """

    text: str
    crlf: bool = False
    bom: bool = False

    @classmethod
    def parse(cls, raw: bytes) -> TextContent:
        """Read the bytes of a file."""
        bom = raw.startswith(codecs.BOM_UTF8)
        text = raw[len(codecs.BOM_UTF8) if bom else 0 :].decode("utf-8", "surrogateescape")
        crlf = 0 < text.count("\n") == text.count("\r\n")
        return cls(text.replace("\r\n", "\n") if crlf else text, crlf, bom)

    def encode(self, text: str) -> bytes:
        """The bytes of `text` in this file's manner."""
        if self.crlf:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        raw = text.removeprefix("\ufeff").encode("utf-8", "surrogateescape")
        return codecs.BOM_UTF8 + raw if self.bom or text.startswith("\ufeff") else raw


def is_binary(head: bytes) -> bool:
    """True when a file that starts with `head` is binary: it has a NUL byte, as in git and grep."""
    return b"\0" in head[:PROBE_BYTES]


def speakable(text: str) -> str:
    """`text` as valid Unicode: every byte that was not UTF-8 becomes U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


CONTEXT_LINES = 3
MOST_DIFFED_LINES = 4000
"""A changed stretch longer than this on either side is shown as one removal and one addition."""
MOST_DIFF_STEPS = 2_000_000
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
    for group in _group_changes(changes):
        parts.extend(_hunk(before, after, group))
    return DiffDisplay(
        path=path,
        diff="".join(parts),
        added=sum(change.new_last - change.new_first for change in changes),
        removed=sum(change.last - change.first for change in changes),
        created=created,
    )


def diff_lines(
    old: Sequence[str], new: Sequence[str], old_name: str = "", new_name: str = "", context: int = CONTEXT_LINES
) -> list[str]:
    """A unified diff of lines that have no ends, as lines without ends; empty where nothing changed."""
    before, after = [f"{line}\n" for line in old], [f"{line}\n" for line in new]
    changes = list(_changes(before, after))
    hunks = [line for group in _group_changes(changes, context) for line in _hunk(before, after, group, context)]
    return [line.removesuffix("\n") for line in (f"--- {old_name}", f"+++ {new_name}", *hunks)] if hunks else []


def _lines(text: str) -> list[str]:
    """Lines with their newline; only a last line may lack it."""
    *whole, rest = speakable(text).split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[_Change]:
    start = count_equal(before, after)
    shortest = min(len(before), len(after)) - start
    end = min(count_equal(before[::-1], after[::-1]), shortest)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(old), len(new)) > MOST_DIFFED_LINES:
        yield _Change(start, start + len(old), start, start + len(new))
        return
    first = new_first = 0
    for block in match_blocks(old, new, Steps(MOST_DIFF_STEPS), autojunk=True).blocks:
        if first < block.old or new_first < block.new:
            yield _Change(start + first, start + block.old, start + new_first, start + block.new)
        first, new_first = block.old + block.size, block.new + block.size


def _group_changes(changes: Sequence[_Change], context: int = CONTEXT_LINES) -> Iterator[list[_Change]]:
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
        yield from _mark_lines(" ", before[at : change.first])
        yield from _mark_lines("-", before[change.first : change.last])
        yield from _mark_lines("+", after[change.new_first : change.new_last])
        at = change.last
    yield from _mark_lines(" ", before[at : at + trail])


def _mark_lines(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _span(first: int, last: int) -> str:
    """A range as the unified format writes it: an empty one names the line before it."""
    length = last - first
    start = first + 1 if length else first
    return str(start) if length == 1 else f"{start},{length}"


MOST_SEARCHED = 20_000
"""Lines looked through for the closest match of a failed replacement."""
MOST_SHOWN = 12
MOST_PLACES = 6
"""Places of a text that is not unique that are looked for."""
LONGEST_COMPARED = 400
MOST_COMPARED = 500_000
"""Characters of lines of like length that are compared in all, about 0.3 s; what comes behind is not looked at."""
LONGEST_FOLDED = 4_000_000
"""Characters of a text in which signs that look alike are searched, about 0.3 s where it is full of them."""
MOST_STEPS = 1_000_000
"""Steps of comparing `old` with `new`, about 0.1 s; where they do not suffice the signs of `new` are taken."""
LEAST_LIKE = 0.5
"""The share of pairs of characters that two lines have in common, from which one is named as the closest."""

_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_NOT_PLAIN = re.compile(rf"[^{_MARKS}][{_MARKS}]{{1,16}}|[^\x00-\x7f]")
_PIECE = re.compile(r"\w+|\W")
_PLAIN = str.maketrans({
    **dict.fromkeys("\xa0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\xad\u200b\u2060\ufeff", ""),
    "\u2026": "...",
})
"""Signs that a model writes plainly, or does not write at all."""


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
        text = _apply_edit(text, edit, where)
    return text


def _apply_edit(text: str, edit: FileEdit, where: str) -> str:
    match edit.operation:
        case Operation.REPLACE:
            return _replace_once(text, edit.old, edit.new, where)
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


def _replace_once(text: str, old: str, new: str, where: str) -> str:
    count = text.count(old)
    if count == 1:
        return text.replace(old, new)
    if count > 1:
        raise ToolFailure(
            f"{where}old occurs {count} times ({_places(text, old)}); add lines around it until it is unique."
        )
    return _replace_loosely(text, old, new, where)


def _replace_loosely(text: str, old: str, new: str, where: str) -> str:
    """Replace whole lines that differ from `old` in blanks at their ends, or in their common indentation."""
    lines, wanted = text.split("\n"), old.removesuffix("\n").split("\n")
    fresh = new.removesuffix("\n") if old.endswith("\n") else new
    for loosened in (str.rstrip, str.strip):
        starts = _matches([loosened(line) for line in lines], [loosened(line) for line in wanted])
        if len(starts) > 1:
            count = "more than 5" if len(starts) == MOST_PLACES else str(len(starts))
            numbers = ", ".join(str(start + 1) for start in starts[:5])
            raise ToolFailure(
                f"{where}old is not in the file exactly; apart from blanks it occurs {count} times "
                f"(lines {numbers}). Copy the lines exactly as read_file shows them."
            )
        if starts:
            return _splice_lines(lines, starts[0], wanted, fresh.split("\n") if new else [])
    if (changed := _replace_alike(text, old, new, where)) is not None:
        return changed
    raise ToolFailure(f"{where}old is not in the file. {_closest(lines, wanted)}")


class _Folded(NamedTuple):
    """A text with plain signs in place of those that look like them, and where its length differs from the text's."""

    text: str
    ends: Sequence[int]
    """Places in the folded text behind which the two are shifted against each other anew."""
    shifts: Sequence[int]

    def place(self, at: int) -> int:
        """Place in the text of a place in the folded one."""
        return at + self.shifts[bisect_right(self.ends, at) - 1]


def _fold(text: str) -> _Folded:
    """Plain quotation marks, dashes and blanks, and each letter in one piece with its accents."""
    parts, ends, shifts, last, size = list[str](), [0], [0], 0, 0
    for found in _NOT_PLAIN.finditer(text):
        plain = normalize("NFC", found[0]).translate(_PLAIN)
        parts += (text[last : found.start()], plain)
        size += found.start() - last + len(plain)
        last = found.end()
        if len(plain) != len(found[0]):
            ends.append(size)
            shifts.append(last - size)
    return _Folded("".join([*parts, text[last:]]), ends, shifts)


def _replace_alike(text: str, old: str, new: str, where: str) -> str | None:
    """Replace the one place that differs in signs alone that look alike; what stays keeps the signs of the file."""
    if len(text) > LONGEST_FOLDED or (text.isascii() and old.isascii()):
        return None
    folded, wanted = _fold(text), _fold(old).text
    at = folded.text.find(wanted) if wanted.strip() else -1
    if at < 0:
        return None
    if folded.text.find(wanted, at + 1) >= 0:
        raise ToolFailure(
            f"{where}old is not in the file exactly; apart from signs that look alike, such as a no-break space "
            f"(U+00A0), curly quotes or dashes, it occurs more than once ({_places(folded.text, wanted)}). Copy it "
            "exactly as read_file shows it, or add lines around it."
        )
    was, now = _PIECE.findall(wanted), _PIECE.findall(_fold(new).text)
    made, given = [text[: folded.place(at)]], _fold(new)
    old_ends = list(accumulate(map(len, was), initial=at))
    new_ends = list(accumulate(map(len, now), initial=0))
    done = 0
    for block in match_blocks(was, now, Steps(MOST_STEPS)).blocks:
        made.append(new[given.place(new_ends[done]) : given.place(new_ends[block.new])])
        made.append(text[folded.place(old_ends[block.old]) : folded.place(old_ends[block.old + block.size])])
        done = block.new + block.size
    return "".join([*made, text[folded.place(at + len(wanted)) :]])


def _matches(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Lines at which these begin, at most `MOST_PLACES`: found as one text, as line after line takes the square."""
    if not any(wanted):
        return []
    text, part = "\n".join(["", *lines, ""]), "\n".join(["", *wanted, ""])
    found: list[int] = []
    at = line = before = 0
    while len(found) < MOST_PLACES and (at := text.find(part, at)) >= 0:
        line, before = line + text.count("\n", before, at), at
        found.append(line)
        at += 1
    return found


def _splice_lines(lines: list[str], start: int, wanted: Sequence[str], new: Sequence[str]) -> str:
    ending = "\r" if lines[start].endswith("\r") else ""
    found, asked = _indent(lines[start]), _indent(wanted[0])
    fresh = [f"{_reindent(line, asked, found)}{ending}" for line in new]
    return "\n".join([*lines[:start], *fresh, *lines[start + len(wanted) :]])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _reindent(line: str, asked: str, found: str) -> str:
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
