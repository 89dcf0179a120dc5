"""Finds code in Markdown, so that text can be changed around it (SPEC DEC-20)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

FENCED: Final = "\x02"
INLINE: Final = "\x01"
"""Characters that stand for one character of code in a mask. Neither is a blank, nor part of a tag or a marker."""
_FENCE: Final = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?(`{3,}+|~{3,}+)(.*)")
_TICKS: Final = re.compile("`++")

CodeSpan: TypeAlias = tuple[int, int, str]
"""Start, end and kind of code."""


def masked(text: str) -> str:
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
            if mark and _closes(mark, fence):
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


def _closes(mark: re.Match[str], fence: str) -> bool:
    return mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip()


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
