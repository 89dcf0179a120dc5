"""The size of the terminal in cells: the one answer for the screen, for lines, for commands and for a browser's tab.

Imported before everything else by `__main__`: standard library only.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing typing would cost `--help` more than all the rest
if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence
    from typing import Final

FALLBACK: Final = (80, 24)
"""Columns and rows of a terminal that reports none: a pseudo-terminal without a size says 0 x 0."""
MOST: Final = (1_000, 400)
"""Columns and rows drawn at most; an 8K screen in the smallest readable letters has about 960 x 300."""
LEAST: Final = (20, 5)
"""Columns and rows below which one sentence replaces the screen."""
VARIABLES: Final = ("COLUMNS", "LINES")
STREAMS: Final = (0, 1, 2)


def terminal_size(
    descriptors: Sequence[int] = STREAMS, environment: MutableMapping[str, str] = os.environ
) -> tuple[int, int]:
    """Columns and rows that can be drawn, as reported by the terminal, else by the environment, else `FALLBACK`.

    The terminal comes first: variables are exported once and do not follow a window.
    """
    said = next((size for descriptor in descriptors if any(size := _query_size(descriptor))), (0, 0))
    named = tuple(size_variable(environment, name, most) for name, most in zip(VARIABLES, MOST, strict=True))
    return drawable(said[0] or named[0], said[1] or named[1])


def drawable(columns: object, rows: object) -> tuple[int, int]:
    """Any two values as columns and rows: `FALLBACK` for invalid ones, never more than `MOST`."""
    return _limit(columns, FALLBACK[0], MOST[0]), _limit(rows, FALLBACK[1], MOST[1])


def is_too_small(columns: int, rows: int) -> bool:
    """True when a screen of this size holds no more than a sentence."""
    return columns < LEAST[0] or rows < LEAST[1]


def size_variable(environment: MutableMapping[str, str], name: str, most: int) -> int:
    """The number of a variable; 0 for one that names no size a terminal has."""
    text = environment.get(name, "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    return number if number <= most else 0


def forget_nonsense(environment: MutableMapping[str, str]) -> None:
    """Remove variables that name no size: other readers of them, in this process and below, would believe them."""
    for name, most in zip(VARIABLES, MOST, strict=True):
        if name in environment and not size_variable(environment, name, most):
            del environment[name]


def _query_size(descriptor: int) -> tuple[int, int]:
    try:
        return tuple(os.get_terminal_size(descriptor))  # type: ignore[return-value]  # two numbers, by its documentation
    except (OSError, ValueError):
        return (0, 0)


def _limit(value: object, fallback: int, most: int) -> int:
    number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    return min(number, most) if number > 0 else fallback
