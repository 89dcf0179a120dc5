"""Numbers of bytes in words."""

from __future__ import annotations

from typing import Final

KILOBYTE: Final = 1_000
DIGITS: Final = 10
"""Sizes below it have a digit after the point."""


def size_in_words(count: int) -> str:
    """A number of bytes: 950 B, 4.2 kB, 84 kB, 1.2 MB."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB"):
        if size < KILOBYTE:
            break
        size, unit = size / KILOBYTE, larger
    return f"{size:.1f} {unit}" if unit != "B" and size < DIGITS else f"{size:,.0f} {unit}"
