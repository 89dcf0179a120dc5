"""Opening beneath a folder without following a link, whatever changes meanwhile (FAULTS 62).

A `Location` is resolved first, so none of its parts is a link when it is made. Each part is then opened from
the folder before it with O_NOFOLLOW: a link put in its place between check and opening fails instead of
leading out. This holds for resolved paths what openat2(RESOLVE_BENEATH) would, on every POSIX system.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from tools.failure import ToolFailure
from tools.files.location import Location

# O_PATH passes through folders that may be entered but not listed; it exists on Linux only.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK opening a named pipe would wait for its other end forever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def opened_folder(location: Location, *, create: bool = False) -> Generator[int, None, None]:
    """Give a descriptor of the folder that holds `location`, making missing folders if asked.

    Raises:
        OSError: a part is missing, is no folder, or has become a link.
    """
    folder = os.open(location.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in location.parts[:-1]:
            inner = _entered(part, folder, create)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


@contextmanager
def opened_file(location: Location) -> Generator[BinaryIO, None, None]:
    """Open a regular file for reading bytes.

    Raises:
        OSError: it cannot be opened.
        ToolFailure: it is a folder, a pipe, a device or a socket.
    """
    if not location.parts:
        raise ToolFailure(f"{location.shown} is a folder, not a file; use list_files.")
    with opened_folder(location) as folder:
        descriptor = os.open(location.parts[-1], _FILE, dir_fd=folder)
    try:
        _require_regular(os.fstat(descriptor).st_mode, location.shown)
    except ToolFailure:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def _require_regular(mode: int, name: str) -> None:
    if stat.S_ISDIR(mode):
        raise ToolFailure(f"{name} is a folder, not a file; use list_files.")
    if not stat.S_ISREG(mode):
        raise ToolFailure(f"{name} is not a regular file but a pipe, device or socket.")


def _entered(part: str, folder: int, create: bool) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):  # another process makes it at the same time
        os.mkdir(part, dir_fd=folder)
    return os.open(part, _FOLDER, dir_fd=folder)
