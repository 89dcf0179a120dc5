"""The folder for what is too large for a message: files of mode 0600, bounded in sum."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from tools.mcp_host.limits import MOST_SPILLED


class SpillFull(Exception):
    """The folder holds all it may."""


class SpillFolder:
    """Writes files into a folder that Phoenix made and clears."""

    def __init__(self, path: Path, most: int = MOST_SPILLED) -> None:
        self.path = path
        self._most = most
        self._sizes: dict[str, int] = {}

    def save(self, content: bytes, suffix: str) -> str:
        """Write a file and return its path; files that Phoenix deleted no longer count.

        Raises:
            SpillFull: the sum of the files would exceed the limit.
            OSError: the file cannot be written.
        """
        if sum(self._sizes.values()) + len(content) > self._most:
            self._sizes = {path: size for path, size in self._sizes.items() if Path(path).exists()}
            if sum(self._sizes.values()) + len(content) > self._most:
                raise SpillFull(f"{self.path} already holds {self._most >> 20} MB of results")
        descriptor, path = tempfile.mkstemp(suffix, "result-", self.path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:
            with contextlib.suppress(OSError):
                Path(path).unlink()
            raise
        self._sizes[path] = len(content)
        return path
