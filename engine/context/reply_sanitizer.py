"""Removes remains of a model's format from its replies (SPEC CLAW-12); code stays as it is (SPEC DEC-20)."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

from msgspec import Struct

FENCED: Final = "\x02"
INLINE: Final = "\x01"
"""Characters that stand for one character of code in a mask. Neither is a blank, nor part of a tag or a marker."""
_FENCE: Final = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?(`{3,}+|~{3,}+)(.*)")
_TICKS: Final = re.compile("`++")

CodeSpan: TypeAlias = tuple[int, int, str]
"""Start, end and kind of code."""


def mask_code(text: str) -> str:
    """A text of the same length in which every character of code is `FENCED` or `INLINE`; linear in its length."""
    if "`" not in text and "~~~" not in text:
        return text
    pieces: list[str] = []
    done = 0
    for start, end, kind in code_spans(text):
        pieces += (text[done:start], kind * (end - start))
        done = end
    return "".join((*pieces, text[done:]))


def code_spans(text: str) -> Iterator[CodeSpan]:
    """Blocks between fences with their fences, and spans between equal runs of backticks in one paragraph, in order.

    A block without its end reaches to the end of the text, as Markdown has it.
    """
    fence, begun, place = "", 0, 0
    ticks: list[tuple[int, int]] = []
    for line in text.split("\n"):
        mark = _FENCE.fullmatch(line.removesuffix("\r"))
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
                yield begun, place + len(line), FENCED
                fence = ""
        elif mark and not ("`" in mark[1] and "`" in mark[2]):
            yield from _inline(ticks)
            fence, begun, ticks = mark[1], place, []
        elif line.strip():
            ticks += ((place + run.start(), place + run.end()) for run in _TICKS.finditer(line))
        else:
            yield from _inline(ticks)
            ticks = []
        place += len(line) + 1
    yield from _inline(ticks)
    if fence:
        yield begun, len(text), FENCED


def _inline(ticks: Sequence[tuple[int, int]]) -> Iterator[CodeSpan]:
    """Spans of one paragraph: a run of backticks ends at the next run of the same length."""
    partner: dict[int, int] = {}
    newest: dict[int, int] = {}
    for number in range(len(ticks) - 1, -1, -1):
        length = ticks[number][1] - ticks[number][0]
        if length in newest:
            partner[number] = newest[length]
        newest[length] = number
    number = 0
    while number < len(ticks):
        end = partner.get(number)
        if end is not None:
            yield ticks[number][0], ticks[end][1], INLINE
        number = number + 1 if end is None else end + 1


MOST_PASSES: Final = 8
"""Passes until nothing more is found; a text that hides tags within tags more deeply stays as it is."""
Range: TypeAlias = tuple[int, int]

_CALL_NAMES = r"(?:[a-z]{1,20}+:)?+(?:tool_calls?+|function_calls?+|tool_use|invoke|parameter)"
_CALL_SIGNS: Final = re.compile(
    r"<(?:[a-z]{1,20}+:)?+(?:(?:tool_calls?+|function_calls?+|tool_use)[\s/>]|(?:invoke|parameter)\s++name\s*+=)",
    re.IGNORECASE,
)
"""Signs that a reply contains a call as XML; single words of the format are no such sign."""
_CALL_TAG: Final = re.compile(rf"<(/?+)({_CALL_NAMES})(?=[\s/>])([^<>]*+)>", re.IGNORECASE)
_THOUGHT_TAG: Final = re.compile(
    r"<\s*+(/?+)\s*+((?:[a-z]{1,20}+:)?+(?:thinking|think|thought|antthinking))(?=[\s/>])([^<>]*+)>", re.IGNORECASE
)
_FINAL_TAG: Final = re.compile(r"<\s*+/?+\s*+final\s*+/?+\s*+>", re.IGNORECASE)
_MARKERS: Final = ("[Tool Call:", "[Tool Result", "[Historical context:")
_ECHO: Final = "[System Message]"
_ARGUMENTS: Final = re.compile(r"\s*+Arguments:\s*+")
_BETWEEN_BLOCKS: Final = re.compile(r"\n(?:[^\S\n]*+\n)++")
_BLANK_LINES: Final = re.compile(r"\A(?:[^\S\n]*+\n)++")


class Sanitized(Struct, frozen=True):
    """A text without remains, and the number of characters that each step removed."""

    text: str
    removed: dict[str, int]


class MaskedText(Struct, frozen=True):
    """A text and its mask."""

    text: str
    mask: str

    def without(self, ranges: Iterable[Range]) -> MaskedText:
        """Both without these ranges, which are in order and do not overlap."""
        kept: list[slice] = []
        done = 0
        for start, end in ranges:
            kept.append(slice(done, start))
            done = end
        kept.append(slice(done, None))
        return MaskedText("".join(self.text[part] for part in kept), "".join(self.mask[part] for part in kept))


def sanitize(text: str) -> Sanitized:
    """Run all steps until nothing changes, so that a second call finds nothing; linear in the length of the text."""
    removed = Counter[str]()
    current = text
    for _ in range(MOST_PASSES):
        draft = MaskedText(current, mask_code(current))
        for name, step in STEPS.items():
            ranges = step(draft)
            if ranges:
                shorter = draft.without(ranges)
                removed[name] += len(draft.text) - len(shorter.text)
                draft = shorter
        after = draft.text
        if after == current:
            return Sanitized(current, dict(removed))
        current = after
    return Sanitized(text, {})


def _calls_as_xml(draft: MaskedText) -> Sequence[Range]:
    """Calls written as XML, and single tags of one."""
    if "<" not in draft.mask or not _CALL_SIGNS.search(draft.mask):
        return ()
    whole, single = _elements(_CALL_TAG, draft.mask)
    return _outermost([*whole, *single])


def _calls_as_text(draft: MaskedText) -> Sequence[Range]:
    """Calls, results and remarks on history that a server wrote as lines, and the arguments behind them."""
    if not any(marker in draft.mask for marker in _MARKERS):
        return ()
    found: list[Range] = []
    lines = draft.mask.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    marked = [number for number, line in enumerate(lines) if line.lstrip().startswith(_MARKERS)]
    for number, following in pairwise((*marked, len(lines))):
        end = _end_of_call(draft, lines, starts, range(number, following))
        found.append((starts[number], min(end, len(draft.mask))))
    return found


def _end_of_call(draft: MaskedText, lines: Sequence[str], starts: Sequence[int], own: range) -> int:
    """End of one call in the text; `own` holds the numbers of its line and of those up to the next call."""
    first, most = own[0], starts[own[-1] + 1]
    behind = lines[first].find("]") + 1
    place = _end_of_arguments(draft.text, starts[first] + behind, most) if behind else 0
    number = first + 1
    if not place and number in own:
        place = _end_of_arguments(draft.text, starts[number], most)
    has_arguments = bool(place)
    number = max(number, bisect_left(starts, place))
    if place and starts[number] != place:
        return place  # words follow on the line of the arguments
    while number in own:
        line = lines[number].lstrip()
        is_block = lines[number].startswith(FENCED)
        if line and (has_arguments or not (is_block or line.startswith(("Arguments:", "{", "}")))):
            break
        has_arguments = has_arguments or is_block
        number += 1
    return starts[number]


def _end_of_arguments(text: str, place: int, most: int) -> int:
    """End of the JSON object behind "Arguments:" at this place, with the rest of an empty line; 0 without one.

    A call reaches to the next one at `most`, so that all calls together are read once.
    """
    named = _ARGUMENTS.match(text, place, most)
    if named is None:
        return 0
    part = text[named.end() : most]
    try:
        _, end = _JSON.raw_decode(part)
    except (ValueError, RecursionError):
        return 0
    stop = part.find("\n", end)
    stop = len(part) if stop < 0 else stop + 1
    return named.end() + (end if part[end:stop].strip() else stop)


_JSON: Final = json.JSONDecoder()


def _thoughts(draft: MaskedText) -> Sequence[Range]:
    """Reasoning between tags; a tag without its partner stays."""
    return _outermost(_elements(_THOUGHT_TAG, draft.mask)[0]) if "<" in draft.mask else ()


def _final_tags(draft: MaskedText) -> Sequence[Range]:
    """Tags around an answer, not the answer."""
    return [found.span() for found in _FINAL_TAG.finditer(draft.mask)] if "<" in draft.mask else ()


def _echoes(draft: MaskedText) -> Sequence[Range]:
    """Paragraphs in which the model repeats a message of the system."""
    if _ECHO not in draft.mask:
        return ()
    found: list[Range] = []
    place, skipping = 0, False
    for line in draft.mask.split("\n"):
        end = place + len(line) + 1
        skipping = line.lstrip().startswith(_ECHO) or (skipping and not line.startswith(FENCED))
        if skipping:
            found.append((place, min(end, len(draft.mask))))
        skipping = skipping and bool(line.strip())
        place = end
    return found


def _find_repeated_blocks(draft: MaskedText) -> Sequence[Range]:
    """Paragraphs equal to the one before; one with code stays."""
    found: list[Range] = []
    place, before, joint = 0, "", 0
    for gap in (*_BETWEEN_BLOCKS.finditer(draft.mask), None):
        end = gap.start() if gap else len(draft.mask)
        block = draft.mask[place:end].strip()
        if block and block == before and FENCED not in block and INLINE not in block:
            found.append((joint, end))
        before, joint = block, end
        place = gap.end() if gap else end
    return found


def _leading_blank_lines(draft: MaskedText) -> Sequence[Range]:
    """Blank lines ahead of the first word."""
    blank = _BLANK_LINES.match(draft.mask)
    return [blank.span()] if blank else ()


def _edges(draft: MaskedText) -> Sequence[Range]:
    """Blanks at both ends."""
    start = len(draft.mask) - len(draft.mask.lstrip())
    end = len(draft.mask.rstrip())
    ranges = [(0, start), (end, len(draft.mask))] if start < end else [(0, len(draft.mask))]
    return [(first, last) for first, last in ranges if first < last]


STEPS: Final[dict[str, Callable[[MaskedText], Sequence[Range]]]] = {
    "calls as XML": _calls_as_xml,
    "calls as text": _calls_as_text,
    "thoughts": _thoughts,
    "final tags": _final_tags,
    "echoed system messages": _echoes,
    "repeated blocks": _find_repeated_blocks,
    "leading blank lines": _leading_blank_lines,
    "edges": _edges,
}
"""The seven steps in their order, and the trim at the end; the names are for the log."""


def _elements(tag: re.Pattern[str], mask: str) -> tuple[list[Range], list[Range]]:
    """Elements from their first to their last tag, and tags without a partner."""
    whole: list[Range] = []
    single: list[Range] = []
    opened: list[tuple[str, Range]] = []
    waiting = Counter[str]()
    for found in tag.finditer(mask):
        name = found[2].lower()
        if not found[1] and not found[3].endswith("/"):
            opened.append((name, found.span()))
            waiting[name] += 1
            continue
        if not (found[1] and waiting[name]):
            single.append(found.span())
            continue
        while True:
            other, span = opened.pop()
            waiting[other] -= 1
            if other == name:
                whole.append((span[0], found.end()))
                break
            single.append(span)
    return whole, [*single, *(span for _, span in opened)]


def _outermost(ranges: Iterable[Range]) -> list[Range]:
    """Ranges in order, without those within another."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


_TOKEN: Final = re.compile(r"[\s*_`'\"#>~([{-]*+no_reply_*+(?!\w)", re.IGNORECASE)
"""The token ahead of everything but decoration, and not glued to a word."""


def is_no_reply(text: str) -> bool:
    """True for a reply that begins with `NO_REPLY`, whatever stands behind it."""
    return _TOKEN.match(text) is not None
