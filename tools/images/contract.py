"""The words of images that tools, decoder and screens share."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

IMAGE_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif"})
"""Ends of file names, in small letters, that say a file is an image."""


class PreparedImage(Struct, frozen=True):
    """An image that is decoded, turned and within the limits of every provider (SPEC T-IMG)."""

    data: bytes
    media_type: str
    width: int
    height: int
    original_width: int
    original_height: int
    original_bytes: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.media_type}, {len(self.data)} bytes)"


class ImageReader(Protocol):
    """Turns bytes of any common format into an image within the limits."""

    async def prepare(self, data: bytes) -> PreparedImage:
        """Decode in a limited child process, turn by EXIF, shrink.

        Raises:
            ImageRejected: with one sentence for the user.
        """
        ...


class ImageRejected(ValueError):
    """Raised for bytes that are no usable image; the message gives the reason."""
