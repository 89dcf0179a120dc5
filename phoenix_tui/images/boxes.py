"""Cells of an image: known from its size in pixels alone, so that nothing moves when it is decoded."""

from __future__ import annotations

from math import ceil
from typing import Final

from msgspec import Struct

SMALL: Final = (48, 12)
LARGE: Final = (100, 36)
"""Columns and rows at most: as it comes, and once it was opened."""
PIXELS_PER_COLUMN: Final = 6
"""A small image is not blown up beyond this."""


class Box(Struct, frozen=True):
    """One stored image at a size in cells."""

    image_id: str
    columns: int
    rows: int


def box_of(image_id: str, size: tuple[int, int], room: int, aspect: float, *, large: bool) -> Box:
    """The cells for an image of `size` pixels in `room` columns; a cell is `aspect` times taller than wide."""
    width, height = max(size[0], 1), max(size[1], 1)
    most_columns, most_rows = LARGE if large else SMALL
    scale = min(
        min(most_columns, room) / width,
        most_rows * aspect / height,
        1 / PIXELS_PER_COLUMN,
    )
    columns = max(round(width * scale), 1)
    return Box(image_id, columns, max(min(ceil(height * scale / aspect - 0.25), most_rows), 1))
