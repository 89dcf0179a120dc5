"""Texts cut to cells of a terminal, in which some characters take two and others none."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len

CUT: Final = "…"
LOOKED_AT: Final = 4_000
"""Characters of a longer text that are measured: its beginning and its end."""


def cut_middle(text: str, cells: int) -> str:
    """The text within so many cells; the middle of a longer one goes, since names differ at their ends."""
    if len(text) > LOOKED_AT:
        text = f"{text[: LOOKED_AT // 2]}{CUT}{text[-LOOKED_AT // 2 :]}"
    if cell_len(text) <= cells:
        return text
    if cells < len(CUT) + 2:
        return CUT[: max(cells, 0)]
    tail = _within(text[::-1], (cells - 1) * 3 // 5)[::-1]
    return f"{_within(text, cells - 1 - cell_len(tail))}{CUT}{tail}"


def _within(text: str, cells: int) -> str:
    """The longest beginning of at most so many cells."""
    used = 0
    for place, letter in enumerate(text):
        used += cell_len(letter)
        if used > cells:
            return text[:place]
    return text
