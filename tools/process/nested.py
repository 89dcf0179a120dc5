"""Control files and folders below the top of a workspace: repositories, settings of editors and of agents."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.files.protected import CONTROL_FILES, CONTROL_FOLDERS

MOST_FOLDERS: Final = 3_000
"""About 20 ms of looking at first and 5 ms later; a larger tree is covered from its top downwards."""
MOST_FOUND: Final = 5_000
RACY_NS: Final = 50_000_000
"""A folder changed so shortly before it was read may change again within the same tick of the file system's clock."""
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
BARE: Final = frozenset({"HEAD", "objects", "refs"})
"""Entries of a folder that git takes for a repository without files."""
_FOLDERS: Final = frozenset(name.casefold() for name in CONTROL_FOLDERS)
_FILES: Final = frozenset(name.casefold() for name in CONTROL_FILES)


class _Folder(Struct, frozen=True):
    """One folder as it was read."""

    stamp: tuple[int, int, int]
    """Device, inode and change time, which programs cannot set; zeros when it must not be trusted."""
    found: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()


UNTRUSTED: Final = (0, 0, 0)


class NestedControl:
    """Remembers every folder it has read, and reads only those that changed since. Called from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: dict[str, dict[str, _Folder]] = {}
        self._found: dict[str, dict[str, None]] = {}

    def find(self, workspace: Path) -> tuple[Path, ...]:
        """Control paths in sub-folders of `workspace`, links too, and `HEAD` for a bare repository.

        What was found before comes first, so that no flood of new folders hides it.
        """
        top = os.fspath(workspace)
        with self._lock:
            found = self._walk(top)
            known = {path: None for path in self._found.get(top, ()) if os.path.lexists(path)}
            known.update(dict.fromkeys(found))
            self._found[top] = dict.fromkeys(list(known)[:MOST_FOUND])
            return tuple(map(Path, self._found[top]))

    def _walk(self, top: str) -> list[str]:
        before, after = self._folders.get(top, {}), dict[str, _Folder]()
        found: list[str] = []
        waiting = [top]
        for path in waiting:
            if len(after) >= MOST_FOLDERS or len(found) >= MOST_FOUND:
                break
            try:
                folder = _read_again(path, before.get(path))
            except OSError:
                continue
            after[path] = folder
            found += folder.found if path != top else ()
            waiting += folder.inner
        self._folders[top] = after
        return found


def _read_again(path: str, known: _Folder | None) -> _Folder:
    """The folder as it is, read only where it changed. Raises OSError."""
    status = os.lstat(path)
    stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
    if known is not None and known.stamp == stamp:
        return known
    trusted = stamp if abs(time.time_ns() - status.st_ctime_ns) > RACY_NS else UNTRUSTED
    with os.scandir(path) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    found: list[str] = []
    inner: list[str] = []
    for entry in listed:
        name = entry.name.casefold()
        if name in _FOLDERS or name in _FILES:
            found.append(entry.path)
        elif name not in SKIPPED and entry.is_dir(follow_symlinks=False):
            inner.append(entry.path)
    if {entry.name for entry in listed} >= BARE:
        found.append(f"{path}/HEAD")
        inner.clear()
    return _Folder(trusted, tuple(found), tuple(inner))
