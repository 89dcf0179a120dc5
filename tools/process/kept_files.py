"""Files of a workspace as they were, read and restored beneath it through no link.

A command that still runs may put a link in the place of any folder at any time, and this process reads and writes
beyond the limits of that command. So each path is entered from the top, one descriptor behind the other.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from tools.files.location import Location
from tools.files.opening import opened_folder
from tools.files.own_files import make_folder, new_file
from tools.process.folder_index import Stamp, stamp_of

MOST_CONTENT: Final = 4 * 1024 * 1024
"""Bytes of a self-starting file that are kept to be restored; a release of yarn in `.yarn` has three million."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HOLD: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOVED: Final = "its folder was moved meanwhile"


class Kept(NamedTuple):
    """A self-starting file as it was: its content, None where it is too large, or where its link leads."""

    stamp: Stamp
    content: bytes | None
    link: str = ""
    mode: int = 0o644

    @property
    def runs(self) -> bool:
        """True where it may be run."""
        return bool(self.mode & 0o111)

    def equals(self, other: Kept | None) -> bool:
        """True where both say the same, whenever they were written."""
        same = other is not None and self[1:3] == other[1:3] and self.runs == other.runs
        return same and self.content is not None

    def names(self) -> list[str]:
        """Names that git would give the content, with line ends as they are and as git stores them."""
        import hashlib  # noqa: PLC0415 - only where a file changed

        if self.content is None or self.link:
            return []
        texts = dict.fromkeys((self.content, self.content.replace(b"\r\n", b"\n")))
        kinds = (hashlib.sha1, hashlib.sha256)
        return [kind(b"blob %d\0" % len(text) + text).hexdigest() for text in texts for kind in kinds]


class ChangedAgainError(Exception):
    """Raised where a file is another one than the caller knows."""


def read_kept(top: str, name: str, most: int) -> Kept | None:
    """The file `name` below `top`, its content if it has at most `most` bytes; None where it cannot be reached."""
    place = _place(top, name)
    try:
        with opened_folder(place) as folder:
            return _read_in(place.parts[-1], folder, most)
    except OSError:
        return None


def put_back(top: str, name: str, before: Kept | None, known: Stamp | None, aside: Path) -> Stamp | None:
    """Make the file `name` as it was `before`, and keep its present content at `aside`; None stands for no file.

    Returns its stamp.

    Raises:
        ChangedAgainError: its stamp is not the one that is `known`.
        OSError: it cannot be restored.
    """
    place = _place(top, name)
    with _openable(place) as is_hidden:
        if is_hidden and known is None and (found := read_kept(top, name, 0)) is not None:
            known = found.stamp  # it was there, behind a closed folder
        return _put_back(place, before, known, aside)


def _put_back(place: Location, before: Kept | None, known: Stamp | None, aside: Path) -> Stamp | None:
    leaf = place.parts[-1]
    if before is None or known is not None:
        try:
            with opened_folder(place) as folder:
                _keep_aside(leaf, folder, known, aside)
                if before is None:
                    os.unlink(leaf, dir_fd=folder)
                    return None
        except FileNotFoundError:
            if known is not None:
                raise ChangedAgainError from None
            return None
    with opened_folder(place, create=True) as folder:
        if known is None:
            _keep_aside(leaf, folder, known, aside)
        if before.link:
            with suppress(FileNotFoundError):
                os.unlink(leaf, dir_fd=folder)
            os.symlink(before.link, leaf, dir_fd=folder)
        else:
            _replace(leaf, before.content or b"", before.mode, folder)
        stamp = stamp_of(os.stat(leaf, dir_fd=folder, follow_symlinks=False))
    found = read_kept(str(place.root), "/".join(place.parts), 0)
    if found is None or found.stamp[:2] != stamp[:2]:
        raise OSError(errno.ESTALE, _MOVED)
    return stamp


def write_beneath(top: str, name: str, content: bytes) -> None:
    """Write a file of a folder that exists; a folder in its place stays beside it. Raises OSError."""
    place = _place(top, name)
    with opened_folder(place) as folder:
        _move_folder(place.parts[-1], folder)
        _replace(place.parts[-1], content, 0o644, folder)


def remove_folders(top: str, names: Iterable[str]) -> None:
    """Remove those that are empty."""
    for name in names:
        place = _place(top, name)
        with suppress(OSError), _openable(place), opened_folder(place) as folder:
            os.rmdir(place.parts[-1], dir_fd=folder)


def _place(top: str, name: str) -> Location:
    return Location(Path(top), tuple(filter(None, name.split("/"))), name)


@contextmanager
def _openable(place: Location) -> Generator[bool]:
    """Give the owner his rights on each folder above a file, of which a command may have taken them, for a while; True
    where one hid what is in it.
    """
    with ExitStack() as undoing:
        is_hidden = False
        with suppress(OSError):  # a folder is missing, or a link
            folder = os.open(place.root, _HOLD)
            undoing.callback(os.close, folder)
            for part in (*place.parts[:-1], ""):
                mode = stat.S_IMODE(os.fstat(folder).st_mode)
                is_hidden = is_hidden or not mode & stat.S_IXUSR
                if mode & stat.S_IRWXU != stat.S_IRWXU:
                    held = Path(f"/proc/self/fd/{folder}")
                    with suppress(OSError):  # it is of another owner
                        held.chmod(mode | stat.S_IRWXU)
                        undoing.callback(held.chmod, mode)
                if part:
                    folder = os.open(part, _HOLD | os.O_NOFOLLOW, dir_fd=folder)
                    undoing.callback(os.close, folder)
        yield is_hidden


def _read_in(leaf: str, folder: int, most: int) -> Kept:
    status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
    stamp, mode = stamp_of(status), stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return Kept(stamp, b"", os.readlink(leaf, dir_fd=folder))
    if stat.S_ISREG(status.st_mode) and status.st_size <= most:
        with suppress(OSError), os.fdopen(os.open(leaf, _READ, dir_fd=folder), "rb") as file:
            content = file.read(most + 1)
            if stamp_of(os.fstat(file.fileno())) == stamp and len(content) <= most:
                return Kept(stamp, content, "", mode)
    return Kept(stamp, None, "", mode)


def _keep_aside(leaf: str, folder: int, known: Stamp | None, aside: Path) -> None:
    """Copy a regular file to `aside`, or rename a folder that came in the place of a file that is gone.

    Raises:
        ChangedAgainError: it is not the one that is known.
        OSError: it is not there though it is known, or cannot be kept.
    """
    try:
        status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        if known is None:
            return
        raise
    if known is None and stat.S_ISDIR(status.st_mode):
        _move_folder(leaf, folder)
        return
    if stamp_of(status) != known:
        raise ChangedAgainError
    if stat.S_ISREG(status.st_mode):
        reading = os.fdopen(os.open(leaf, _READ, dir_fd=folder), "rb")
        make_folder(aside.parent)
        with reading, os.fdopen(new_file(aside), "wb") as writing:
            shutil.copyfileobj(reading, writing)


def _move_folder(leaf: str, folder: int) -> None:
    """Rename a folder that stands in the place of a file. Raises OSError."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode):
            os.rename(leaf, f"{leaf[:200]}-set-aside-{os.urandom(3).hex()}", src_dir_fd=folder, dst_dir_fd=folder)


def _replace(leaf: str, content: bytes, mode: int, folder: int) -> None:
    part = f".phoenix-{os.urandom(4).hex()}.part"
    try:
        with os.fdopen(os.open(part, _NEW, mode, dir_fd=folder), "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
        os.rename(part, leaf, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(part, dir_fd=folder)
        raise
