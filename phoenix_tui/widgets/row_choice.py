"""One row of many: where the choice goes, and which rows are in sight around it."""

from __future__ import annotations


def moved(chosen: int, by: int, total: int) -> int:
    """The choice `by` rows further, within `total`; the first where there is nothing."""
    return max(0, min(chosen + by, total - 1))


def first_visible(chosen: int, total: int, room: int) -> int:
    """The first of `room` rows: the selected one is in the middle, and no row stays empty at the end."""
    return max(min(chosen - room // 2, total - room), 0)
