"""Paths as they are shown."""

from __future__ import annotations

from pathlib import Path


def short_path(path: Path) -> str:
    """A path with the home folder as `~`."""
    home = Path.home()
    return f"~/{path.relative_to(home)}".removesuffix("/.") if path.is_relative_to(home) else str(path)
