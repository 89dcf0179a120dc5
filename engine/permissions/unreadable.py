"""Files that rules deny to read, found on disk: hidden from commands, passed over by walks, known by their inode."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from engine.permissions.denials import Denials, DenyRule, path_patterns
from engine.permissions.globs import LONGEST, WILDCARDS, glob_matches
from engine.permissions.rules import covers
from tools.files.links import real_path

READING: Final = ("read_file", "search")
"""Tools whose rules that deny are about the content of files, whichever tool or command would read it."""
MOST_ENTRIES: Final = 300_000
"""Entries of folders that are held against patterns with a wildcard in one look."""
MOST_FILES: Final = 2_000
"""Files that are hidden; each takes a mount."""
JUST_NOW: Final = 100_000_000
"""Nanoseconds: a folder that changed so shortly before it was read may change again within one tick of its clock."""
_Identity: TypeAlias = tuple[int, int]


class Unreadable(Struct, frozen=True):
    """Files and folders that rules deny to read."""

    paths: tuple[Path, ...] = ()
    """Resolved, other names of the same file included."""
    rules: tuple[tuple[_Identity, str], ...] = ()
    """Device and inode of each, and the rule."""
    is_whole: bool = True
    """False where the look was cut short, or a file has names elsewhere: then nothing says that all are hidden."""

    @property
    def is_any(self) -> bool:
        """True where commands must not read something."""
        return bool(self.paths) or not self.is_whole

    def rule_about(self, paths: Iterable[Path]) -> str:
        """The rule that denies reading one of these paths by whatever name, or what is below; empty for none."""
        known = dict(self.rules)
        for path in paths:
            for one in (path, *path.parents) if known else ():
                if rule := known.get(_identity(one) or (0, 0), ""):
                    return rule
        return ""


EVERYTHING_READABLE: Final = Unreadable()


class _Folder(Struct, frozen=True):
    """Entries of a folder as of its change time."""

    changed: int
    folders: tuple[str, ...]
    files: tuple[tuple[str, int], ...]
    """Name and inode of each entry that is no folder."""


class DeniedFiles:
    """Looks for the files of rules; folders are read again only where their change time has moved. Blocks."""

    def __init__(self) -> None:
        self._folders: dict[str, _Folder] = {}
        self._left = 0

    def look(self, denials: Denials, working_dir: Path) -> Unreadable:
        """The files that rules deny to read now."""
        wanted = list(_about_content(denials, working_dir))
        is_short = not any(len(one.rule.pattern) > LONGEST for one in denials.rules)
        if not wanted:
            return EVERYTHING_READABLE if is_short else Unreadable(is_whole=False)
        self._left = MOST_ENTRIES
        found: dict[str, str] = {}
        for rule, pattern in wanted:
            for path in self._matching(pattern):
                found.setdefault(real_path(path), str(rule))
        names = self._other_names(found, working_dir)
        paths = tuple(Path(path) for path in sorted({*found, *names})[:MOST_FILES])
        rules = tuple((one, rule) for path, rule in found.items() if (one := _identity(Path(path))) is not None)
        whole = is_short and self._left > 0 and len(found) <= MOST_FILES and self._has_all_names(found, names)
        return Unreadable(paths, rules, whole)

    def _matching(self, pattern: str) -> Iterator[str]:
        plain = pattern.removesuffix("/*")  # the whole folder, with what will be there
        pattern = pattern if WILDCARDS.search(plain) else plain or "/"
        wild = WILDCARDS.search(pattern)
        if wild is None:
            if os.path.lexists(pattern):
                yield pattern
            return
        for path, _ in self._walk(pattern[: pattern.rfind("/", 0, wild.start())] or "/", pattern):
            if glob_matches(pattern, path):
                yield path

    def _walk(self, top: str, pattern: str = "") -> Iterator[tuple[str, int]]:
        """Entries below a folder with their inodes, but for those below a folder that the pattern means."""
        waiting = [real_path(top)]
        wild = WILDCARDS.search(pattern)
        plain = pattern[: wild.start()] if wild is not None else ""  # of a.b* nothing below c/ can begin so
        while waiting and self._left > 0:
            folder = waiting.pop()
            known = self._read(folder)
            self._left -= len(known.folders) + len(known.files)
            yield from ((f"{folder.rstrip('/')}/{name}", inode) for name, inode in known.files)
            for name in known.folders:
                path = f"{folder.rstrip('/')}/{name}"
                if pattern and glob_matches(pattern, path):
                    yield path, 0
                elif f"{path}/".startswith(plain[: len(path) + 1]):
                    waiting.append(path)

    def _read(self, folder: str) -> _Folder:
        try:
            changed = os.stat(folder).st_mtime_ns  # noqa: PTH116 - one call for each of many folders
            known = self._folders.get(folder)
            if known is not None and known.changed == changed:
                return known
            with os.scandir(folder) as entries:
                both = [(one.name, one.inode(), one.is_dir(follow_symlinks=False)) for one in entries]
        except OSError:
            return _Folder(0, (), ())
        found = _Folder(
            changed,
            tuple(name for name, _, is_folder in both if is_folder),
            tuple((name, inode) for name, inode, is_folder in both if not is_folder),
        )
        self._folders.pop(folder, None)
        if len(self._folders) < MOST_ENTRIES and time.time_ns() - changed > JUST_NOW:
            self._folders[folder] = found
        return found

    def _other_names(self, found: dict[str, str], working_dir: Path) -> set[str]:
        """Hard links of the files inside the working directory."""
        linked = {_inode(path) for path in found if _names_of(path) > 1}
        return {path for path, inode in self._walk(str(working_dir)) if inode in linked} if linked else set()

    def _has_all_names(self, found: dict[str, str], names: set[str]) -> bool:
        every = [_inode(path) for path in {*found, *names}]
        return all(_names_of(path) <= every.count(_inode(path)) for path in found)


def build_closed_test(denials: Denials, working_dir: Path) -> Callable[[Path], bool]:
    """Test of a file by its name and by what its links lead to: True where rules deny to read it."""
    patterns = {pattern.rstrip("/") for _, pattern in _about_content(denials, working_dir)}

    def is_closed(path: Path) -> bool:
        names = {str(path), real_path(path)} if patterns else ()
        return any(glob_matches(one, name) or glob_matches(f"{one}/*", name) for name in names for one in patterns)

    return is_closed


def _about_content(denials: Denials, working_dir: Path) -> Iterator[tuple[DenyRule, str]]:
    for one in denials.rules:
        about = any(covers(one.rule.tool, tool, widely=True) for tool in READING)
        if about and not one.asks and one.rule.pattern.strip() != "*" and len(one.rule.pattern) <= LONGEST:
            for pattern in path_patterns(one.rule, working_dir):
                yield one, pattern


def _identity(path: Path) -> _Identity | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _names_of(path: str) -> int:
    """Names that a file has; 1 for a folder, and for what is gone."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a string
    except OSError:
        return 1
    return 1 if os.path.isdir(path) else status.st_nlink  # noqa: PTH112 - a string


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - a string
    except OSError:
        return 0
