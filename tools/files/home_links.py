"""Files of a folder that start by themselves because a link in the home folder leads to them: dotfiles repositories."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

MOST_ENTRIES: Final = 5_000
"""Entries of the home folder and of its folders of settings that are looked at."""
_FOLDERS: Final = (".config", ".local/bin", ".local/share", ".local/share/applications", ".cargo", ".ssh", "bin")
"""Folders below the home folder whose entries are settings, programs or what a login starts."""


def linked_from_home(workspace: Path, home: Path) -> dict[Path, Path]:
    """The links of a home folder that lead into a resolved `workspace`, by their resolved targets.

    Every link counts that begins with a dot at the home folder's top, or lies in a folder of settings, whatever its
    name: what reads it is not known. A link to the workspace itself makes nothing in it start. Reads the disk, 1 ms.
    """
    root = f"{workspace}/"
    found: dict[Path, Path] = {}
    for link in islice(_links(os.path.realpath(home)), MOST_ENTRIES):
        target = os.path.realpath(link)
        if target.startswith(root):
            found.setdefault(Path(target), Path(link))
    return found


def _links(home: str) -> Iterator[str]:
    yield from (path for path, is_link in _entries(home) if is_link and Path(path).name.startswith("."))
    for name in _FOLDERS:
        for path, is_link in _entries(f"{home}/{name}"):
            if is_link:
                yield path
            elif name == ".config":
                yield from (inner for inner, leads in _entries(path) if leads)


def _entries(folder: str) -> list[tuple[str, bool]]:
    """Paths in a folder, and True for each link; none where it cannot be read."""
    try:
        with os.scandir(folder) as found:
            return [(entry.path, entry.is_symlink()) for entry in islice(found, MOST_ENTRIES)]
    except OSError:
        return []
