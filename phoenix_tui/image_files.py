"""Image files that are attached: how large one may be, and reading it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.contract import ImageRejected

LARGEST_IMAGE: Final = 64_000_000
"""Bytes of a file or of what a clipboard holds; what is sent is shrunk later."""


def read_image(path: Path) -> bytes:
    """The content of an image file.

    Raises:
        OSError: it cannot be read.
        ImageRejected: it is too large.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_IMAGE + 1)
    if len(content) > LARGEST_IMAGE:
        raise ImageRejected(f"{path.name} is larger than 64 MB.")
    return content
