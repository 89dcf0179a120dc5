"""File operations beneath a folder that never follow a link, whatever changes meanwhile (FAULTS 62).

Paths are bytes relative to the folder. Each part is opened from the one before it with O_NOFOLLOW.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress

from engine.ports.files import FileKind

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK opening a named pipe would wait for its other end forever.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
TEMPORARY = b".phoenix-restore-"
"""Prefix of the files that a restore writes next to others; no snapshot covers them."""


def open_root(root: bytes) -> int:
    """A descriptor of the folder itself. Raises OSError."""
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextmanager
def holder(root: int, path: bytes, *, create: bool = False) -> Generator[tuple[int, bytes], None, None]:
    """A descriptor of the folder that holds `path`, and its name there; missing folders are made if asked.

    Raises:
        OSError: a part is missing, is no folder, is a link, climbs or is no name.
    """
    *parts, name = path.split(b"/")
    if not {b"", b".", b".."}.isdisjoint((*parts, name)) or b"\0" in path:
        raise OSError(errno.EINVAL, "no path in this folder", os.fsdecode(path))
    folder = os.dup(root)
    try:
        for part in parts:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def kind_of(mode: int) -> FileKind | None:
    """Kind of a path by its mode; None for kinds that are never touched."""
    if stat.S_ISREG(mode):
        return FileKind.FILE
    if stat.S_ISDIR(mode):
        return FileKind.FOLDER
    return FileKind.LINK if stat.S_ISLNK(mode) else None


def read_file(folder: int, name: bytes, most: int) -> tuple[os.stat_result, bytes] | None:
    """A regular file's state and its bytes; None where it is larger than `most` or changes while it is read.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    descriptor = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise OSError(f"{os.fsdecode(name)} is not a regular file")
        if before.st_size > most:
            return None
        content = _read_all(descriptor, before.st_size)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    same = (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    return (after, content) if same and len(content) == after.st_size else None


def _read_all(descriptor: int, most: int) -> bytes:
    """Read at most `most` + 1 bytes; a file of the expected length takes one call."""
    first = os.read(descriptor, most + 1)
    if len(first) in {most, most + 1} or not first:
        return first
    parts, left = [first], most + 1 - len(first)
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def write_file(folder: int, name: bytes, content: bytes, mode: int, temporary: bytes) -> None:
    """Put a whole file in place: the old one or the new one, never a mixture."""
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def set_mode(folder: int, name: bytes, mode: int) -> None:
    """Change the mode of a file or folder, never of a link's target.

    Raises:
        OSError: it is gone, or a link.
    """
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)  # it may not be readable
    try:
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            raise OSError(errno.ELOOP, "it is a link", os.fsdecode(name))
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101 - a Path of it would be resolved by name
    finally:
        os.close(descriptor)


def write_link(folder: int, name: bytes, target: bytes, temporary: bytes) -> None:
    """Put a symbolic link in place, whatever its target is."""
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    os.symlink(target, temporary, dir_fd=folder)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
