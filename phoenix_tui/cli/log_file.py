"""The file of the log: private, of bounded size, and shared by every Phoenix of the user."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from tools.files.own_files import make_folder, open_file

LONGEST: Final = 256 * 1024
"""Bytes of a record up to which it is written as one."""


class PrivateFile(RotatingFileHandler):
    """A rotating file without access for other users, which several processes write and rotate.

    Each record is one append, so lines do not mix. Whoever rotates holds a lock on the folder, and the others go on
    with the new file at their next record; where the lock is taken, the file grows by that record.
    """

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        make_folder(path.parent)
        descriptor = open_file(path, os.O_WRONLY | os.O_APPEND)
        return TextIOWrapper(os.fdopen(descriptor, "ab", LONGEST), encoding="utf-8", errors="replace")

    def shouldRollover(self, record: logging.LogRecord) -> int:
        """1 where this record would make the file too large. The file is the present one, whoever made it."""
        self._follow()
        if self.stream is None:
            return 0
        length = len(f"{self.format(record)}\n".encode("utf-8", "replace"))
        return int(bool(size := os.fstat(self.stream.fileno()).st_size) and size + length > self.maxBytes)

    def doRollover(self) -> None:
        """Rotate, unless another process is at it or has done it."""
        with self._alone() as is_alone:
            if is_alone and not self._follow():
                super().doRollover()

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop a record that cannot be written: a message on stderr would be in the middle of a screen."""
        del record

    def _follow(self) -> bool:
        """True where another process has put a new file in the place of this one; it is open then."""
        opened: TextIOWrapper | None = self.stream
        if opened is not None:
            ours = os.fstat(opened.fileno())
            try:
                there = os.stat(self.baseFilename)  # noqa: PTH116 - for every record
            except FileNotFoundError:
                there = None
            if there is not None and os.path.samestat(ours, there):
                return False
            self.stream = None
            opened.close()
        self.stream = self._open()
        return True

    @contextmanager
    def _alone(self) -> Generator[bool]:
        """True for the one process that holds the lock."""
        descriptor = os.open(Path(self.baseFilename).parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(descriptor)
