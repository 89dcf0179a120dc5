"""Replacing a file whole: after any crash it holds the old or the new content, never a mixture (FAULTS 32)."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress

from tools.failure import ToolFailure
from tools.files.location import Location
from tools.files.opening import opened_folder


def replace_file(location: Location, content: bytes) -> os.stat_result:
    """Write `content` beside `location`, sync it, and rename it into place; returns the new file's state.

    Missing folders are made. Mode bits and owner of an existing file stay; a hard link's other names keep the
    old content.

    Raises:
        OSError: nothing changed.
        ToolFailure: the file is read-only or no regular file.
    """
    name = location.parts[-1]
    temporary = f".phoenix-{secrets.token_hex(8)}.tmp"
    with opened_folder(location, create=True) as folder:
        before = _existing(location, folder)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                if before is not None:
                    _adopt(descriptor, before)
                stream.flush()
                os.fsync(descriptor)
                after = os.fstat(descriptor)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        _sync_folder(folder)
    return after


def _existing(location: Location, folder: int) -> os.stat_result | None:
    name = location.parts[-1]
    try:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(state.st_mode):
        raise ToolFailure(f"{location.shown} is not a regular file.")
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolFailure(f"{location.shown} is read-only; it is unchanged.")
    return state


def _adopt(descriptor: int, before: os.stat_result) -> None:
    """Give the new file the owner and the mode bits of the old; the owner first, it clears set-id bits."""
    with suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: int) -> None:
    listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(listing)
    finally:
        os.close(listing)
