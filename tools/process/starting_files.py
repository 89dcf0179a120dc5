"""Files of a workspace that start by themselves: kept as they were before the commands of now, compared, restored."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.clean import reveal_name
from tools.files.links import real_path
from tools.files.location import Location, open_folder
from tools.files.own_files import make_folder, new_file
from tools.files.self_starting import FolderKind, starts_in
from tools.process.folder_index import FolderIndex, MissingError, Stamp, is_file, names_in, stamp_at, stamp_of
from tools.process.helper import MOST_ANSWER

MOST_CONTENT: Final = 4 * 1024 * 1024
"""Bytes of a self-starting file that are kept to be restored; a release of yarn in `.yarn` has three million."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HOLD: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOVED: Final = "its folder was moved meanwhile"


class KeptFile(NamedTuple):
    """A self-starting file as it was: its content, None where it is too large, or where its link leads."""

    stamp: Stamp
    content: bytes | None
    link: str = ""
    mode: int = 0o644

    @property
    def runs(self) -> bool:
        """True where it may be run."""
        return bool(self.mode & 0o111)

    def equals(self, other: KeptFile | None) -> bool:
        """True where both say the same, whenever they were written."""
        same = other is not None and self[1:3] == other[1:3] and self.runs == other.runs
        return same and self.content is not None

    @property
    def mark(self) -> str:
        """Name of the content; where that is not kept, of the stamp."""
        import hashlib  # noqa: PLC0415 - only where a file changed

        said = self.stamp if self.content is None else (self.link, self.runs)
        return hashlib.sha256(f"{said}".encode("utf-8", "surrogateescape") + (self.content or b"")).hexdigest()

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


def read_kept(top: str, name: str, most: int) -> KeptFile | None:
    """The file `name` below `top`, its content if it has at most `most` bytes; None where it cannot be reached."""
    place = _place(top, name)
    try:
        with open_folder(place) as folder:
            return _read_in(place.parts[-1], folder, most)
    except OSError:
        return None


def put_back(top: str, name: str, before: KeptFile | None, known: Stamp | None, aside: Path) -> Stamp | None:
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


def _put_back(place: Location, before: KeptFile | None, known: Stamp | None, aside: Path) -> Stamp | None:
    leaf = place.parts[-1]
    if before is None or known is not None:
        try:
            with open_folder(place) as folder:
                _keep_aside(leaf, folder, known, aside)
                if before is None:
                    os.unlink(leaf, dir_fd=folder)
                    return None
        except FileNotFoundError:
            if known is not None:
                raise ChangedAgainError from None
            return None
    with open_folder(place, create=True) as folder:
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
    with open_folder(place) as folder:
        _move_folder(place.parts[-1], folder)
        _replace(place.parts[-1], content, 0o644, folder)


def remove_folders(top: str, names: Iterable[str]) -> None:
    """Remove those that are empty."""
    for name in names:
        place = _place(top, name)
        with suppress(OSError), _openable(place), open_folder(place) as folder:
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


def _read_in(leaf: str, folder: int, most: int) -> KeptFile:
    status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
    stamp, mode = stamp_of(status), stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return KeptFile(stamp, b"", os.readlink(leaf, dir_fd=folder))
    if stat.S_ISREG(status.st_mode) and status.st_size <= most:
        with suppress(OSError), os.fdopen(os.open(leaf, _READ, dir_fd=folder), "rb") as file:
            content = file.read(most + 1)
            if stamp_of(os.fstat(file.fileno())) == stamp and len(content) <= most:
                return KeptFile(stamp, content, "", mode)
    return KeptFile(stamp, None, "", mode)


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


LONGEST_CHANGE: Final = 400  # bytes of one change in an answer, without its path
MOST_KEPT: Final = 64 * 1024 * 1024
MOST_UNKEPT: Final = 100
"""Files that are too large to be kept; each takes a mount."""
MOST_BEHIND: Final = 1_000
"""Links behind links that are followed; beyond them not all is judged."""

UNKNOWN: Final = KeptFile((0, 0, 0, 0), None)
"""A self-starting file that may have been there before a command, with unknown content: it is never removed."""


class StartingFiles:
    """Self-starting files of one working directory."""

    def __init__(self, index: FolderIndex) -> None:
        self.index = index
        self.starters: dict[str, KeptFile] = {}
        self.pending: dict[str, KeptFile | None] = {}
        """Files that a command changed, as they were before; until they are kept or taken back."""
        self.awaited: set[str] = set()
        """Paths that links of the home folder lead to, and that were missing before a command."""
        self.made_folders: dict[str, list[str]] = {}
        """Folders that came with those files."""
        self.is_known = False
        """True once all of it was looked at: a file that is not known then was not there."""
        self.unjudged = ""
        """Reason why not all could be judged, as a clause."""
        self._kept_bytes = 0

    def accept(self, since: int) -> None:
        """Take what is there for the user's own, except for what came at `since` or later."""
        now = self._read_all(all_links=True)
        for name, kept in now.items():
            if name not in self.pending and not self.index.is_later(name, since):
                self.starters[name] = kept
            elif name not in self.starters and not self.is_known:
                self.starters[name] = UNKNOWN
        for name in self.starters.keys() - now.keys():
            if not self._is_removed_later(name, since):
                del self.starters[name]

    def judge(self, since: int, *, anew: bool) -> list[dict[str, Any]]:
        """Self-starting files that changed since the commands of now began; each is reported once."""
        self.unjudged = ""
        now, changed, room = self._read_all(anew=anew), list[dict[str, Any]](), MOST_ANSWER // 2
        for path in sorted(now.keys() | self.starters.keys()):
            before, after = self.starters.get(path), now.get(path)
            if before == after or (before is not None and before.equals(after)):
                if after is not None:
                    self.starters[path] = after
                continue
            has_stamp_of_before = before is not None and after is not None and before.stamp == after.stamp
            if after is not None and not has_stamp_of_before and not self.index.is_later(path, since):
                self.starters[path] = after  # the user's own change
                self._forget_before(path)
                continue
            if after is None and not self._is_removed_later(path, since):
                del self.starters[path]
                self._forget_before(path)
                continue
            if (room := room - LONGEST_CHANGE - 6 * len(path)) < 0:  # the next look goes on with them
                self.unjudged = "more files that start by themselves changed than one answer holds"
                break
            if path not in self.pending:
                self.pending[path] = before if self.is_known or before is not None else UNKNOWN
                self.made_folders[path] = self.index.find_new_above(path)
            if after is None:
                self.starters.pop(path, None)
            else:
                self.starters[path] = after
            was = self.pending[path]
            if was == after or (was is not None and was.equals(after)):
                del self.pending[path]
                continue
            changed.append({
                "path": os.path.relpath(path, self.index.top),
                "kind": "created" if was is None else "removed" if after is None else "changed",
                "hashes": after.names() if after is not None and (was is None or was.runs == after.runs) else [],
                "restorable": was is None or was.content is not None,
                "mark": self._mark_of(path),
            })
        return changed

    def unkept(self) -> list[str]:
        """Files that could not be restored, since they are too large: no command may change them."""
        found = (path for path, kept in self.starters.items() if kept.content is None and kept != UNKNOWN)
        return [path for path in found if path not in self.pending and is_file(path)][:MOST_UNKEPT]

    def keep(self, marks: Mapping[str, str]) -> list[str]:
        """Take changes for the user's own, each with the mark that it was reported with.

        Returns a clause for each that was reported with another content since, which waits for an answer of its own.
        """
        said: list[str] = []
        for name, mark in marks.items():
            path = f"{self.index.top}/{name}"
            if mark == self._mark_of(path):
                self._forget_before(path)
            elif path in self.pending:
                said.append(f"another command changed {reveal_name(name)} since, which is asked about on its own")
        return said

    def take_back(self, marks: Mapping[str, str], aside: str) -> list[str]:
        """Restore the files as they were before; their present contents go to the folder `aside`.

        Returns a sentence for each that could not be restored.
        """
        return [sentence for name, mark in marks.items() if (sentence := self._take_one_back(name, mark, aside))]

    def _mark_of(self, path: str) -> str:
        known = self.starters.get(path)
        return known.mark if known is not None else ""

    def _forget_before(self, path: str) -> None:
        self.pending.pop(path, None)
        self.made_folders.pop(path, None)

    def _take_one_back(self, name: str, mark: str, aside: str) -> str:
        path = f"{self.index.top}/{name}"
        shown = reveal_name(name)
        if path not in self.pending:
            return f"it is not known any more how {shown} was before, so it stays as it is"
        if mark != self._mark_of(path):
            return f"{shown} was changed again since, so it stays as it is"
        before, reported = self.pending[path], self.starters.get(path)
        if before is not None and before.content is None:
            return f"{shown} cannot be restored, so it stays as it is"
        known = reported.stamp if reported is not None else None
        try:
            stamp = put_back(self.index.top, name, before, known, Path(aside) / name)
        except ChangedAgainError:
            return f"{shown} was changed again since, so it stays as it is"
        except OSError as error:
            return f"{shown} could not be restored ({error.strerror})"
        del self.pending[path]
        if before is None or stamp is None:
            remove_folders(self.index.top, self.made_folders.pop(path, ()))
            self.starters.pop(path, None)
        else:
            self.starters[path] = before._replace(stamp=stamp)
        return ""

    def _read_all(self, *, all_links: bool = False, anew: bool = False) -> dict[str, KeptFile]:
        """Self-starting files as they are, with files behind links; those of new links only with `all_links`: their
        files were not compared before. With `anew` files are read that have the stamp of before.
        """
        self._kept_bytes = 0
        now: dict[str, KeptFile] = {}
        found = dict.fromkeys(self.index.starters())
        for path in tuple(found):
            known = self.starters.get(path)
            if all_links or (path not in self.pending and known is not None and known.stamp == stamp_at(path)):
                found.update(dict.fromkeys(self._find_behind(path)))
        found.update(dict.fromkeys(path for awaited in self.awaited for path in self._find_awaited(awaited)))
        found.update((path, None) for path in self.starters if path not in found and is_file(path))
        for path in found:
            known = self.starters.get(path)
            stamp = stamp_at(path)
            if stamp is None:
                continue
            is_same = known is not None and known.stamp == stamp
            kept = self._read_one(path) if anew or not is_same else None
            if is_same and (kept is None or kept.content is None):
                kept = known
            elif kept is None and stamp_at(path) == stamp:  # its folder can be entered, but not read
                kept = KeptFile(stamp, None)
            if kept is not None:
                now[path] = kept
                self._kept_bytes += len(kept.content or b"")
        if stamp_at(self.index.top) is None:  # moved since it was read
            raise MissingError(self.index.top)
        return now

    def _find_behind(self, path: str) -> list[str]:
        """Files in the workspace that a link at `path` makes start by themselves, through further links too."""
        inside, waiting, real = f"{self.index.top}/", [path], dict[str, None]()
        found: list[str] = []
        while waiting:
            link = waiting.pop()
            target = real_path(link) if os.path.islink(link) else ""
            if target in real or not target.startswith(inside) or "/.git/" in f"{target}/":
                continue
            if len(real) >= MOST_BEHIND:
                self.unjudged = "files that start by themselves are behind more links than are followed"
                break
            real[target] = None
            if not os.path.isdir(target):
                found.append(target)
                continue
            for folder in self._folders_below(target):
                found += [f"{folder}/{name}" for name in names_in(folder) if starts_in(name, FolderKind.SETTINGS)]
                waiting += [f"{folder}/{name}" for name in self.index.folders[folder].links]
        return found

    def _folders_below(self, top: str) -> list[str]:
        return [folder for folder in self.index.folders if f"{folder}/".startswith(f"{top}/")]

    def _find_awaited(self, path: str) -> list[str]:
        """The file at a place that a link of the home folder leads to, those of a folder there, or a link above."""
        for above in reversed((Path(path), *Path(path).parents)):
            if above.is_relative_to(self.index.top) and above.is_symlink():
                return [str(above)]
        if is_file(path):
            return [path]
        return [f"{folder}/{name}" for folder in self._folders_below(path) for name in names_in(folder)]

    def _read_one(self, path: str) -> KeptFile | None:
        room = MOST_CONTENT if self._kept_bytes < MOST_KEPT else -1
        return read_kept(self.index.top, path[len(self.index.top) :], room)

    def _is_removed_later(self, path: str, since: int) -> bool:
        """True where the folder of a file that is gone changed at `since` or later."""
        while (path := path.rpartition("/")[0]) and not os.path.lexists(path):
            pass
        stamp = stamp_at(path)
        return stamp is not None and stamp[3] >= since
