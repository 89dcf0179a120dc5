"""The folders of a workspace as they were read last: a later look reads again only those that changed.

Nothing is left out by its name: git and editors find a folder by what is in it. A folder's change time tells whether an
entry came, went or was renamed; programs cannot set that time. A file's own change time tells whether it was written.
Runs in the helper process of `tools.process.workspace_look`.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final, TypeAlias

from tools.clean import reveal_name
from tools.files.self_starting import FolderKind, place_of, starts_in
from tools.wording import both_ends

LONGEST_NAME: Final = 200
"""Characters of a path that a reason names."""
MOST_FOLDERS: Final = 1_000_000
"""Folders of one workspace, 250 bytes each; beyond them a look is unfinished."""
RACY_NS: Final = 50_000_000
"""A folder changed so shortly before it was read may change again within the same tick of the file system's clock."""
OTHER_CONTROL: Final = {
    ".hg": ("hgrc", "hgrc-not-shared", "sharedpath"),
    ".jj": ("repo/config.toml", "config.toml", "workspace-config.toml", "repo/workspace-config.toml"),
    ".bzr": ("branch/branch.conf", "branch/location", "repository/repository.conf"),
    "_darcs": ("prefs/defaults",),
    ".pijul": ("config",),
}
"""Files that make other version systems run programs, below the folder that makes one a repository."""
Stamp: TypeAlias = tuple[int, int, int, int]
"""Device, inode, size and change time of an entry, links not followed; the change time differs after every change."""


class UnfinishedError(Exception):
    """Raised where a look ends before it has seen every folder; the message is a clause with the reason."""


class MissingError(UnfinishedError):
    """Raised where the top is not there: nothing can be said of what is in it."""

    def __init__(self, top: str) -> None:
        name = both_ends(reveal_name(top), LONGEST_NAME)
        super().__init__(f"{name} was moved or removed; move it back, or start Phoenix again")


class Folder:
    """One folder as it was read; a class with slots, since there may be a million."""

    __slots__ = ("control", "fresh", "inner", "links", "rules", "stamp", "starters")

    def __init__(self, stamp: Stamp, fresh: bool) -> None:
        self.stamp = stamp
        self.fresh = fresh
        """True where it came while a command ran: what is in it may be that command's, whatever its change time."""
        self.inner: tuple[str, ...] = ()
        self.starters: tuple[str, ...] = ()
        self.links: tuple[str, ...] = ()
        """Symbolic links."""
        self.control = False
        """True where an entry makes git look at it: `.git` or HEAD."""
        self.rules: tuple[str, ...] = ()
        """Folders of other version systems in it."""


class FolderIndex:
    """The folders below one path; `is_git` for a folder of git, where no file starts by itself."""

    def __init__(self, top: str, *, is_git: bool = False) -> None:
        self.top = top
        self.folders: dict[str, Folder] = {}
        self._is_git = is_git

    def read(self, since: int, until: float) -> None:
        """Read what changed. A folder that is new, or another one than before, and changed at `since` (nanoseconds of
        the clock) or later is fresh.

        Raises:
            MissingError: the top is not there.
            UnfinishedError: there are too many folders, one cannot be read, or the monotonic time `until` is over.
        """
        before, after = self.folders, dict[str, Folder]()
        waiting = [self.top]
        unreadable = ""
        while waiting:
            path = waiting.pop()
            if len(after) >= MOST_FOLDERS:
                raise UnfinishedError(f"it has more than {MOST_FOLDERS:,} folders")
            if not len(after) % 1000 and time.monotonic() > until:
                raise UnfinishedError("it took too long")
            try:
                folder = self._read_again(path, before.get(path), since)
            except (FileNotFoundError, NotADirectoryError):
                if path == self.top and not self._is_git:
                    raise MissingError(path) from None
                continue
            except OSError as error:
                unreadable = (
                    unreadable or f"{both_ends(reveal_name(path), LONGEST_NAME)} cannot be read ({error.strerror})"
                )
                continue
            after[path] = folder
            waiting += [f"{path}/{name}" for name in folder.inner]
        self.folders = after
        if unreadable:
            raise UnfinishedError(unreadable)

    def settle(self) -> None:
        """Take every folder for one that was there before the next command."""
        for folder in self.folders.values():
            folder.fresh = False

    def is_fresh(self, path: str) -> bool:
        """True where a folder above `path` is fresh."""
        while len(path) > len(self.top):
            path = path.rpartition("/")[0]
            folder = self.folders.get(path)
            if folder is not None and folder.fresh:
                return True
        return False

    def is_later(self, path: str, since: int) -> bool:
        """True where an entry changed at `since` or later, or a folder above it is fresh."""
        stamp = stamp_at(path)
        return (stamp is not None and stamp[3] >= since) or self.is_fresh(path)

    def starters(self) -> Iterator[str]:
        """Paths of files that start by themselves."""
        return (f"{path}/{name}" for path, folder in self.folders.items() for name in folder.starters)

    def candidates(self) -> Iterator[str]:
        """Folders at which git may find a repository."""
        return (path for path, folder in self.folders.items() if folder.control)

    def links(self) -> Iterator[str]:
        """Paths of symbolic links."""
        return (f"{path}/{name}" for path, folder in self.folders.items() for name in folder.links)

    def new_links(self, since: int) -> Iterator[str]:
        """Paths of symbolic links in folders that changed at `since` or later, or are fresh."""
        for path, folder in self.folders.items():
            if folder.links and (not 0 < folder.stamp[3] < since or folder.fresh or self.is_fresh(path)):
                yield from (f"{path}/{name}" for name in folder.links)

    def other_control(self) -> Iterator[str]:
        """Existing files that make another version system than git run programs."""
        for path, folder in self.folders.items():
            for name in folder.rules:
                if os.path.islink(f"{path}/{name}"):
                    yield f"{path}/{name}"
                    continue
                for file in OTHER_CONTROL[name.casefold()]:
                    if os.path.lexists(f"{path}/{name}/{file}"):
                        yield f"{path}/{name}/{file}"

    def _read_again(self, path: str, known: Folder | None, since: int) -> Folder:
        """The folder as it is, read only where it changed. Raises OSError."""
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError
        stamp = stamp_of(status)
        if known is not None and known.stamp == stamp:
            return known
        is_same = known is not None and known.stamp[:2] == stamp[:2]
        fresh = known.fresh if known is not None and is_same else status.st_ctime_ns >= since and path != self.top
        is_settled = abs(time.time_ns() - status.st_ctime_ns) > RACY_NS
        folder = Folder(stamp if is_settled else (*stamp[:3], 0), fresh)
        with _list_folder(path, status) as entries:
            self._note(path, folder, entries)
        return folder

    def _note(self, path: str, folder: Folder, entries: Iterator[os.DirEntry[str]]) -> None:
        place = FolderKind.QUIET if self._is_git else place_of(path[len(self.top) + 1 :])
        inner, starters, links, rules = list[str](), list[str](), list[str](), list[str]()
        for entry in entries:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                folded = name.casefold()
                folder.control = folder.control or folded == ".git"
                if folded in OTHER_CONTROL:
                    rules.append(name)
                inner.append(name)
                continue
            if name.casefold() in OTHER_CONTROL:  # a link to a folder
                rules.append(name)
            if name in {"HEAD", ".git"} or name.casefold() in {"head", ".git"}:
                folder.control = True
            if entry.is_symlink():
                links.append(name)
            if place is not FolderKind.QUIET and (starts_in(name, place) or _leads_to_settings(entry, place)):
                starters.append(name)
        folder.inner, folder.starters = tuple(inner), tuple(starters)
        folder.links, folder.rules = tuple(links), tuple(rules)

    def find_new_above(self, path: str) -> list[str]:
        """Folders above a file that came while a command ran, the innermost first."""
        found: list[str] = []
        while (path := path.rpartition("/")[0]) != self.top:
            folder = self.folders.get(path)
            if folder is not None and folder.fresh:
                found.append(path[len(self.top) :])
        return found


def _leads_to_settings(entry: os.DirEntry[str], place: FolderKind) -> bool:
    """True for a link that stands for a folder whose files start by themselves, or for one that may come."""
    above = ".x/" if place is FolderKind.SETTINGS else ""
    is_hidden = entry.is_symlink() and place_of(f"{above}{entry.name}") is FolderKind.SETTINGS
    if entry.name.startswith(".#"):  # a lock of Emacs, which leads nowhere
        return False
    return is_hidden and not os.path.isfile(entry.path)


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of an entry by its status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def stamp_at(path: str) -> Stamp | None:
    """The stamp of the entry at `path`; None where there is none."""
    try:
        return stamp_of(os.lstat(path))
    except (OSError, ValueError):
        return None


def names_in(path: str) -> list[str]:
    """Names of the regular files in a folder; empty where it cannot be read."""
    with suppress(OSError), os.scandir(path) as entries:
        return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    return []


def is_file(path: str) -> bool:
    """True for a regular file that no link stands for or leads to."""
    try:
        return os.path.realpath(path) == path and stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def wall_mark(path: str) -> str:
    """A text that differs once another entry stands at `path`. The number of a removed file is given to the next one,
    but with a later change time; whoever keeps the mark of a folder keeps the folder open.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return ""
    stamp = stamp_of(status)
    return repr(stamp[:2] if stat.S_ISDIR(status.st_mode) else stamp)


@contextmanager
def _list_folder(path: str, status: os.stat_result) -> Generator[Iterator[os.DirEntry[str]]]:
    """List a folder, also where a command removed its owner's right to read it: git needs only the right to enter.

    Raises:
        OSError: it cannot be listed.
    """
    entries: AbstractContextManager[Iterator[os.DirEntry[str]]]
    try:
        entries = os.scandir(path)
    except PermissionError:
        if status.st_uid != os.geteuid():  # a command of this user cannot have put anything there
            yield iter(())
            return
        entries = _scan_closed(path, stat.S_IMODE(status.st_mode), stamp_of(status)[:2])
    with entries as listed:
        yield listed


def _scan_closed(path: str, mode: int, same_as: tuple[int, int]) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """List a folder that its owner has closed to himself, and leave it closed. Raises OSError."""
    held = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if stamp_of(os.fstat(held))[:2] != same_as:
            raise NotADirectoryError  # a link that came meanwhile led to another one
        same = f"/proc/self/fd/{held}"
        os.chmod(same, mode | stat.S_IRWXU)
        try:
            return os.scandir(path)
        finally:
            os.chmod(same, mode)
    finally:
        os.close(held)
