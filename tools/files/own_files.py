"""Files and folders that Phoenix keeps for itself: 0600 and 0700 under any umask, never through a planted link.

Every file that Phoenix writes for itself goes through here (`tests/test_shape.py` finds another way). Only regular
files are read: a pipe or a device cannot block a reader. `OSError.strerror` completes "NAME cannot be read: …".
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
OTHERS: Final = 0o077
"""Bits of a mode that let other users in."""
NOT_REGULAR: Final = "it is not a regular file"
MOST_SETTINGS: Final = 1024 * 1024
"""Bytes of a file that a user writes by hand; 10,000 lines have half of that."""
A_LINK: Final = "it is a symbolic link"
SHARED: Final = "it is a folder for all users, such as the one of temporary files"
FOREIGN: Final = "it belongs to another user"
NO_TEXT: Final = "it is not UTF-8 text"
NO_NAME: Final = "it is not a valid file name"
OLD_PART: Final = 600.0
"""Seconds without a change after which a part of a file is a leftover."""
_PART: Final = re.compile(r"\..+\.[0-9a-f]{8}\.part|.+\.[0-9a-f]{32}\.part")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ANY: Final = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def make_folder(folder: Path) -> None:
    """Make `folder` and its missing parents, each 0700; a folder that exists is closed to other users.

    Raises:
        OSError: it cannot be made, is something else, or it or the link to it belongs to another user.
    """
    _make_missing(folder)
    descriptor = _open_folder(folder)
    try:
        status = os.fstat(descriptor)
        _refuse_foreign(status, folder)
        if status.st_mode & stat.S_ISVTX:
            raise OSError(errno.EPERM, SHARED, str(folder))
        if status.st_mode & OTHERS:
            with suppress(PermissionError):  # our file, on a file system without modes
                os.fchmod(descriptor, FOLDER_MODE)
    finally:
        os.close(descriptor)


def open_file(path: Path, how: int) -> int:
    """Open a private file, made where it is missing; `how` are flags such as O_WRONLY | O_APPEND, never O_TRUNC.

    Raises:
        OSError: it cannot be opened, is a link or no regular file, or belongs to another user.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_NOFOLLOW | _ANY | how, FILE_MODE)
    except OSError as error:
        raise _explain_error(error, path) from None
    try:
        status = os.fstat(descriptor)
        _refuse_irregular(status, path)
        _refuse_foreign(status, path)
        if stat.S_IMODE(status.st_mode) != FILE_MODE:
            with suppress(PermissionError):  # as above
                os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def new_file(path: Path) -> int:
    """Make a private file, open for reading and writing; raises FileExistsError where anything has its name."""
    return open_file(path, os.O_RDWR | os.O_EXCL)


def write_file(path: Path, content: str | bytes) -> None:
    """Replace `path`, or a link there, by a private file, atomically: with all of `content`, or not at all.

    Raises:
        OSError: the folder cannot be written.
    """
    make_folder(path.parent)
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    descriptor = new_file(part)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove_parts(folders: Iterable[Path]) -> list[Path]:
    """Remove what a killed process left of the files that it was replacing in these folders; returns their paths.

    Only files of `write_file`, and of a new database, that nothing has written to for `OLD_PART` seconds.
    """
    removed: list[Path] = []
    for folder in folders:
        with suppress(OSError):
            for part in folder.glob("*.part"):
                with suppress(OSError):
                    found = part.lstat()
                    if (
                        _PART.fullmatch(part.name)
                        and stat.S_ISREG(found.st_mode)
                        and time.time() - found.st_mtime > OLD_PART
                    ):
                        part.unlink()
                        removed.append(part)
    return removed


def close_to_others(path: Path) -> None:
    """Remove the access of other users to a regular file of this user that may have been created by hand.

    Raises:
        OSError: it is gone, or cannot be changed.
    """
    descriptor = os.open(path, os.O_RDONLY | _ANY)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_mode & OTHERS:
            os.fchmod(descriptor, FILE_MODE)
    finally:
        os.close(descriptor)


def is_open_to_all(folder: Path) -> bool:
    """True where every user may rename and replace the entries of `folder`."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` last through a power cut."""
    _sync(folder, _FOLDER)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    _sync(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_file(path: Path, most: int = 0, *, follow: bool = True) -> bytes:
    """The content of a regular file of at most `most` bytes (0: any size); with `follow` behind links too.

    Raises:
        OSError: it is gone, larger, or something else.
    """
    content = read_start(path, most + 1 if most else -1, follow=follow)
    if most and len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {_size(most)}", str(path))
    return content


def read_text(path: Path, most: int) -> str:
    """The text of a regular file of at most `most` bytes of UTF-8, links followed.

    Raises:
        OSError: it is gone, larger, no text, or something else.
    """
    try:
        return read_file(path, most).decode("utf-8")
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, NO_TEXT, str(path)) from None


def read_own(path: Path) -> bytes:
    """The content of a regular file of any size, never behind a link; raises OSError."""
    return read_file(path, follow=False)


def read_regular(path: Path, limit: int, *, follow: bool = True) -> bytes | None:
    """The first `limit` bytes of a regular file; None for anything else."""
    try:
        return read_start(path, limit, follow=follow)
    except OSError:
        return None


def read_start(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """The first `limit` bytes of a regular file (-1: all); raises OSError as `open_own` does."""
    with os.fdopen(open_own(path, follow=follow), "rb") as file:
        return file.read(limit)


def read_given(path: Path, most: int) -> bytes:
    """Read the first `most` bytes of a path of the command line: a file, or a pipe that the shell has opened for
    Phoenix.

    Raises:
        OSError: it is gone, or something else; a pipe of any other name may never be written to.
    """
    if path == Path("/dev/stdin") or path.parent in {Path("/dev/fd"), Path("/proc/self/fd")}:
        with path.open("rb") as file:
            return file.read(most)
    return read_start(path, most)


def open_own(path: Path, *, follow: bool = False) -> int:
    """Open a regular file for reading, without waiting for anybody.

    Raises:
        OSError: it is gone, is a link and `follow` is not set, or is something else.
    """
    try:
        # Opening a device may have effects, so the target of a name is checked first.
        _refuse_irregular(path.stat(follow_symlinks=follow), path)
        descriptor = os.open(path, os.O_RDONLY | _ANY | (0 if follow else os.O_NOFOLLOW))
    except OSError as error:
        raise _explain_error(error, path) from None
    except ValueError:
        raise OSError(errno.EINVAL, NO_NAME, repr(str(path))) from None
    try:
        _refuse_irregular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def look_at_lock(path: Path) -> Generator[tuple[int, bool]]:
    """Open a private file for reading, and lock it; False beside its descriptor while another process has the lock.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = open_own(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = True
        except BlockingIOError:
            is_free = False
        yield descriptor, is_free
    finally:
        os.close(descriptor)


def _make_missing(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_missing(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(FOLDER_MODE)
        if stat.S_IMODE(folder.lstat().st_mode) != FOLDER_MODE:
            folder.chmod(FOLDER_MODE)  # a umask took the user's own rights


def _open_folder(folder: Path) -> int:
    try:
        return os.open(folder, _FOLDER | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR} or not stat.S_ISLNK((link := folder.lstat()).st_mode):
            raise
    if link.st_uid:  # a file of root is the administrator's
        _refuse_foreign(link, folder)
    return os.open(folder, _FOLDER)


def _refuse_irregular(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, A_LINK if stat.S_ISLNK(status.st_mode) else NOT_REGULAR, str(path))


def _refuse_foreign(status: os.stat_result, path: Path) -> None:
    """Raise where another user could change or replace it; root may be asked to work in anybody's folders."""
    if os.geteuid() not in {status.st_uid, 0}:
        raise PermissionError(errno.EPERM, FOREIGN, str(path))


def _explain_error(error: OSError, path: Path) -> OSError:
    if error.errno == errno.ELOOP:
        return OSError(errno.ELOOP, A_LINK, str(path))
    if error.errno == errno.ENXIO:  # a pipe without a reader, a socket
        return OSError(errno.EINVAL, NOT_REGULAR, str(path))
    return error


def _size(count: int) -> str:
    return f"{count // 1024**2} MB" if count >= 1024**2 else f"{count // 1024} kB"
