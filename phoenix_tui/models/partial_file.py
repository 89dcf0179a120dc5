"""A file that arrives in pieces: kept when interrupted, locked while it grows, published only when its digest fits."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO, TypeAlias

from phoenix_tui.models.known import MEBIBYTE
from tools.files.own_files import make_folder, open_file, open_own

BLOCK = 4 * MEBIBYTE
ReportProgress: TypeAlias = Callable[[int, int], None]
"""Bytes so far, bytes in all."""


class ModelFileError(Exception):
    """A model file could not be fetched or used; the message is one sentence for the user."""


class PartialFile:
    """`.NAME.partial` beside the file it will become. Methods block; call them in a thread."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name}.partial")

    @property
    def size(self) -> int:
        """Bytes fetched so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Hold the file against a second fetch of the same model.

        Raises:
            ModelFileError: another process is fetching it.
        """
        make_folder(self.target.parent)
        descriptor = open_file(self.path, os.O_RDWR)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ModelFileError(
                    f"Another process is already downloading {self.target.name}; wait for it to finish."
                ) from None
            yield
        finally:
            os.close(descriptor)

    def append(self, data: bytes) -> None:
        """Add to the end."""
        with os.fdopen(open_file(self.path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(data)

    def append_from(self, source: IO[bytes], skip: int) -> None:
        """Append the content of `source` after its first `skip` bytes."""
        with os.fdopen(open_file(self.path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            remaining = skip
            while block := source.read(BLOCK):
                file.write(block[remaining:])
                remaining = max(0, remaining - len(block))

    def restart(self) -> None:
        """Drop the content."""
        os.truncate(self.path, 0)

    def digest(self, stopped: Callable[[], bool]) -> str:
        """SHA-256 in hexadecimal; empty when `stopped` returned True first."""
        return file_digest(self.path, stopped)

    def publish(self) -> None:
        """Become the target, whole and at once."""
        with os.fdopen(open_file(self.path, os.O_RDWR), "rb+") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)

    def discard(self) -> None:
        """Remove it."""
        self.path.unlink(missing_ok=True)


def file_digest(path: Path, stopped: Callable[[], bool]) -> str:
    """SHA-256 of a file in hexadecimal; empty when `stopped` returned True first."""
    found = hashlib.sha256()
    with os.fdopen(open_own(path, follow=True), "rb") as file:
        while block := file.read(BLOCK):
            if stopped():
                return ""
            found.update(block)
    return found.hexdigest()
