"""Control files and folders below the top of a workspace: repositories, settings of editors and of agents."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from tools.files.protected import CONTROL_FILES, CONTROL_FOLDERS

MOST_FOLDERS: Final = 3_000
"""About 20 ms of looking; a larger tree is covered from its top downwards."""
MOST_FOUND: Final = 300
FRESH: Final = 20.0
"""Seconds for which a list counts."""
SKIPPED: Final = frozenset({
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    "target",
    "site-packages",
    ".tox",
    ".cache",
})
_FOLDERS: Final = frozenset(name.casefold() for name in CONTROL_FOLDERS)
_FILES: Final = frozenset(name.casefold() for name in CONTROL_FILES)


class NestedControl:
    """Remembers for a while what was found in each workspace."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[float, tuple[Path, ...]]] = {}

    def find(self, workspace: Path) -> tuple[Path, ...]:
        """Control paths in sub-folders of `workspace`, as far as they still exist."""
        looked, found = self._known.get(workspace, (-FRESH, ()))
        if time.monotonic() - looked > FRESH:
            found = look(workspace)
            self._known[workspace] = (time.monotonic(), found)
        return tuple(path for path in found if path.exists() and not path.is_symlink())


def look(workspace: Path) -> tuple[Path, ...]:
    """Walk the sub-folders, those near the top first, without following a link."""
    found: list[Path] = []
    waiting = [workspace]
    for place, folder in enumerate(waiting):
        if place >= MOST_FOLDERS or len(found) >= MOST_FOUND:
            break
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            name = entry.name.casefold()
            is_folder = entry.is_dir(follow_symlinks=False)
            if name in _FOLDERS or name in _FILES:
                found.append(Path(entry.path))
            elif is_folder and name not in SKIPPED:
                waiting.append(Path(entry.path))
    return tuple(path for path in found if path.parent != workspace)[:MOST_FOUND]
