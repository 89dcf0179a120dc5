"""Size and kind of an image, on one row and read out."""

from __future__ import annotations

from typing import Final

from engine.records import Attachment

KILO: Final = 1_000


def size_words(image: Attachment) -> str:
    """`1568×882 · 310 kB · png`, and its size before shrinking."""
    words = f"{image.width}×{image.height} · {_weight(image)} · {_kind(image)}"
    return f"{words} · from {image.original_width}×{image.original_height}" if _shrunk(image) else words


def spoken_size(image: Attachment) -> str:
    """`image, 1568 by 882, 310 kB, png`, and its size before shrinking."""
    words = f"image, {image.width} by {image.height}, {_weight(image)}, {_kind(image)}"
    return f"{words}, shrunk from {image.original_width} by {image.original_height}" if _shrunk(image) else words


def _weight(image: Attachment) -> str:
    return f"{max(image.bytes // KILO, 1):,} kB"


def _kind(image: Attachment) -> str:
    return image.media_type.rpartition("/")[2]


def _shrunk(image: Attachment) -> bool:
    return (image.original_width, image.original_height) != (image.width, image.height)
