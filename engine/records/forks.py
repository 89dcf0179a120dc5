"""The folder of a copy that does not stay in the one of its source."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.clean import reveal_name


class ForkPlace(Struct, frozen=True):
    """Working directory of a copy, other than that of its source."""

    cwd: Path
    note: str = ""
    """Paragraph for the model about it, behind the appended system prompt."""


NOTE: Final = (
    "This conversation is a copy that continues in the working directory {folder}. The messages before it are about"
    " {source}, so look at files again before you rely on them."
)


def moved_place(source: Path, folder: Path) -> ForkPlace:
    """Place of a copy in another folder, with the paragraph that tells its model about it."""
    return ForkPlace(folder, NOTE.format(folder=reveal_name(folder), source=reveal_name(source)))
