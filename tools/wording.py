"""Numbers and long texts in sentences, for every layer."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 line`, `1,204 lines`; `many` is the plural where it takes more than an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def one_line(text: str, longest: int = 0) -> str:
    """The words of `text` on one line, cut with an ellipsis to `longest` characters (0: uncut)."""
    line = " ".join(text.split())
    return line if not longest or len(line) <= longest else f"{line[: longest - 1]}…"
