"""Paths as they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.clean import reveal_name

LONGEST_PLACE: Final = 30
"""Characters of the folder beside a shell line."""


def short_path(path: Path) -> str:
    """A path with the home folder as `~`."""
    home = Path.home()
    return f"~/{path.relative_to(home)}".removesuffix("/.") if path.is_relative_to(home) else str(path)


def short_tail(path: str, most: int) -> str:
    """The end of a path of at most `most` characters, with the home folder as `~`."""
    shown = short_path(Path(path))
    return shown if len(shown) <= most else f"…{shown[len(shown) - most + 1 :]}"


def shell_place(folder: str) -> str:
    """Words for the folder of a shell line; empty for the conversation's own."""
    return f"in {short_tail(reveal_name(folder), LONGEST_PLACE)}" if folder else ""
