"""Plots of characters: bars, sparklines and a year of days; each also without signs beyond ASCII."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
HEIGHTS: Final = "▁▂▃▄▅▆▇█"
PLAIN_HEIGHTS: Final = ".:-=+*%#"
SHADES: Final = "·░▒▓█"
PLAIN_SHADES: Final = ".-+*#"
WEEKS: Final = 53
WEEKDAYS: Final = ("Mon", "", "Wed", "", "Fri", "", "")
WEEK: Final = 7
LEFT: Final = 4
"""Cells before the weeks."""


def bar(value: float, most: float, width: int, *, plain: bool = False) -> str:
    """A horizontal bar of `width` cells for the largest value; anything above 0 shows."""
    share = min(max(value / most, 0.0), 1.0) if most > 0 else 0.0
    if plain:
        return ("#" * max(round(share * width), 1 if value > 0 else 0)).ljust(width)[:width]
    eighths = max(round(share * width * 8), 1 if value > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (EIGHTHS[rest] if rest else "")).ljust(width)[:width]


def sparkline(values: Sequence[float], *, plain: bool = False) -> str:
    """One cell a value; blank for 0."""
    signs, most = PLAIN_HEIGHTS if plain else HEIGHTS, max(values, default=0.0)
    return "".join(" " if value <= 0 else signs[_level(value, most, len(signs))] for value in values)


def squeezed(values: Sequence[float], width: int) -> list[float]:
    """At most `width` values: sums of neighbours."""
    step = max(-(-len(values) // max(width, 1)), 1)
    first = len(values) % step or step
    places = [0, *range(first, len(values), step)] if values else []
    return [sum(values[place : places[at + 1] if at + 1 < len(places) else None]) for at, place in enumerate(places)]


def days_until(today: str, count: int) -> list[str]:
    """Days in the form `2026-11-25`, the last of them `today`."""
    last = datetime.date.fromisoformat(today)
    return [(last - datetime.timedelta(days=back)).isoformat() for back in range(count - 1, -1, -1)]


def count_days(first: str, last: str) -> int:
    """Days from one to the other, both counted."""
    return (datetime.date.fromisoformat(last) - datetime.date.fromisoformat(first)).days + 1


def heat_map(values: Mapping[str, float], today: str, *, plain: bool = False) -> list[str]:
    """A row of months and seven rows of 53 weeks, Monday first; the last week ends with `today`."""
    last = datetime.date.fromisoformat(today)
    first = last - datetime.timedelta(days=last.weekday() + WEEK * (WEEKS - 1))
    count = WEEK * (WEEKS - 1) + last.weekday() + 1
    shown = [values.get((first + datetime.timedelta(days=place)).isoformat(), 0.0) for place in range(count)]
    shades, most = PLAIN_SHADES if plain else SHADES, max(shown)
    rows = [f"{name:<{LEFT}}" for name in WEEKDAYS]
    for place, value in enumerate(shown):
        rows[place % WEEK] += shades[0] if value <= 0 else shades[1 + _level(value, most, len(shades) - 1)]
    return [_months(first), *rows]


def legend(*, plain: bool = False) -> str:
    """Shades of a heat map, from none to the most."""
    return f"none {PLAIN_SHADES if plain else SHADES} most"


def _months(first: datetime.date) -> str:
    """Names of months above the week in which they begin, where there is room."""
    line, before = " " * LEFT, first.month
    for week in range(WEEKS):
        month = (first + datetime.timedelta(days=WEEK * week)).month
        if month != before and len(line) <= LEFT + week and week <= WEEKS - 3:
            line = f"{line:<{LEFT + week}}{(first + datetime.timedelta(days=WEEK * week)):%b}"
        before = month
    return line


def _level(value: float, most: float, levels: int) -> int:
    """The level from 0 of a value above 0."""
    return min(max(ceil(value * levels / most) - 1, 0), levels - 1) if most > 0 else 0
