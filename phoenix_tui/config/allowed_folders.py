"""Folders in which the user lets language servers run what the project contains: by real path, device and inode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from phoenix_tui.config.shared_files import FileStamp, lock_file, stamp
from tools.files.own_files import MOST_SETTINGS, read_text, write_file

FILE = "language_servers.json"


class AllowedFolders(Struct, eq=False):
    """Implements `tools.lsp.checker.FolderAnswers` with a file of the user; an invalid file allows nothing."""

    path: Path
    keeps: bool = True
    """False: answers hold until Phoenix ends."""
    _own: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _read: tuple[FileStamp, dict[str, list[int]]] | None = None

    def is_allowed(self, folder: Path) -> bool:
        """True for a folder that is the one the user has allowed."""
        known = self._folders().get(str(folder)) if self.keeps else self._own.get(str(folder))
        return known is not None and known == _identity(folder)

    def answer(self, folder: Path, *, allowed: bool) -> None:
        """Keep an answer.

        Raises:
            OSError: it cannot be written.
        """
        if not self.keeps:
            self._change(self._own, folder, allowed=allowed)
            return
        with lock_file(self.path):
            self._read = None
            folders = dict(self._folders())
            self._change(folders, folder, allowed=allowed)
            write_file(self.path, json.dumps({"folders": folders}, indent=1, sort_keys=True) + "\n")
            self._read = None

    def _change(self, folders: dict[str, list[int]], folder: Path, *, allowed: bool) -> None:
        folders.pop(str(folder), None)
        if allowed:
            folders[str(folder)] = _identity(folder)

    def _folders(self) -> dict[str, list[int]]:
        now = stamp(self.path)
        if self._read is None or self._read[0] != now:
            self._read = (now, _parse_file(self.path))
        return self._read[1]


def _parse_file(path: Path) -> dict[str, list[int]]:
    try:
        document: object = json.loads(read_text(path, MOST_SETTINGS))
    except (OSError, ValueError, RecursionError):
        return {}
    folders = cast("dict[str, object]", document).get("folders") if isinstance(document, dict) else None
    if not isinstance(folders, dict):
        return {}
    found = cast("dict[str, object]", folders)
    return {name: cast("list[int]", value) for name, value in found.items() if isinstance(value, list)}


def _identity(folder: Path) -> list[int]:
    try:
        status = folder.stat()
    except OSError:
        return []
    return [status.st_dev, status.st_ino]
