"""Numbers and long texts in sentences, for every layer."""

from __future__ import annotations

from typing import Final

LONGEST_NUMBER: Final = 18
"""Digits of a typed number; Python refuses to read thousands of them."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 line`, `1,204 lines`; `many` is the plural where it takes more than an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def one_line(text: str, longest: int = 0) -> str:
    """The words of `text` on one line, cut with an ellipsis to `longest` characters (0: uncut)."""
    line = " ".join(text.split())
    return line if not longest or len(line) <= longest else f"{line[: longest - 1]}…"


def both_ends(text: str, longest: int) -> str:
    """A path within `longest` characters: its middle goes, as its end names the file."""
    end = longest * 2 // 3
    return text if len(text) <= longest else f"{text[: longest - end - 1]}…{text[-end:]}"


def number_within(text: str, most: int) -> int | None:
    """The number from 1 to `most` that a text consists of; None for any other text, however long it is."""
    if not text.isdecimal() or len(text) > LONGEST_NUMBER:
        return None
    number = int(text)
    return number if 1 <= number <= most else None
