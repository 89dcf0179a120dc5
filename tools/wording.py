"""Numbers and long texts in sentences, for every layer."""

from __future__ import annotations

from typing import Final

LONGEST_NUMBER: Final = 18
"""Digits of a typed number; Python refuses to read thousands of them."""


def pluralize(number: int, one: str, many: str = "") -> str:
    """`1 line`, `1,204 lines`; `many` is the plural where it takes more than an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def byte_size(count: int) -> str:
    """`900 bytes`, `12 KB`, `1.2 MB`, `3.4 GB`, in steps of a thousand."""
    if count < 1_000:
        return f"{count} bytes"
    for unit, size in (("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)):
        if count < 999.5 * size or unit == "GB":
            return f"{count / size:.{0 if unit == 'KB' else 1}f} {unit}"
    return ""


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
