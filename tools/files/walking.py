"""The files under a folder, without what ignore files exclude, in a steady order.

`git ls-files` is not asked: a repository's own configuration can make it start programs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from tools.files.globs import compiled
from tools.files.ignoring import allowed, blocks_rules, blocks_rules_above, is_unicode

MOST_WALKED = 200_000
"""Files after which a walk stops."""


class WalkedFiles(Struct, frozen=True):
    """Files found by a walk, sorted; `complete` is False when it stopped early."""

    files: tuple[str, ...]
    """Absolute paths."""
    complete: bool = True


def walk(
    folder: Path,
    *,
    glob: str = "",
    ignored: bool = False,
    hidden: bool = True,
    most: int = MOST_WALKED,
    leave_out: Container[str] = frozenset[str](),
    without: Iterable[Path] = (),
) -> WalkedFiles:
    """List the regular files under `folder`, at most `most`; `.git` is left out and no link is followed.

    `ignored` includes what ignore files exclude, `hidden` what begins with a dot; no folder in `leave_out` is entered,
    and the paths in `without` are passed over.

    Raises:
        ToolInputError: the glob is malformed.
    """
    wanted = matcher(glob)
    found: list[str] = []
    base = len(os.path.join(folder, ""))  # noqa: PTH118 - ends in exactly one slash, also for the root
    passed_over = frozenset(map(os.fspath, without))
    for path in _files(os.fspath(folder), passed_over, ignored=ignored, hidden=hidden, leave_out=leave_out):
        if wanted(path[base:]):
            found.append(path)
            if len(found) >= most:
                return WalkedFiles(tuple(sorted(found)), complete=False)
    return WalkedFiles(tuple(sorted(found)))


def _files(
    root: str, passed_over: frozenset[str], *, ignored: bool, hidden: bool, leave_out: Container[str]
) -> Iterator[str]:
    """Paths of regular files; a folder that cannot be read is passed over."""
    waiting = [(root, ignored or blocks_rules_above(os.fsencode(root)))]
    while waiting:
        folder, asks_nobody = waiting.pop()
        listing = _listing(folder)
        asks_nobody = asks_nobody or blocks_rules(os.fsencode(folder), listing)
        for entry in _left(folder, listing, asks_nobody=asks_nobody):
            if entry.name == ".git" or (not hidden and entry.name.startswith(".")) or entry.path in passed_over:
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in leave_out:
                    waiting.append((entry.path, asks_nobody))
            elif entry.is_file(follow_symlinks=False):
                yield entry.path


def _left(folder: str, listing: Mapping[bytes, os.DirEntry[str]], *, asks_nobody: bool) -> Iterable[os.DirEntry[str]]:
    """Entries that no ignore file excludes; all of them with `asks_nobody`."""
    left = None if asks_nobody else allowed(os.fsencode(folder), len(listing))
    if left is None:
        return listing.values()
    return [entry for name, entry in listing.items() if name in left or not is_unicode(name)]


def _listing(folder: str) -> dict[bytes, os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return {os.fsencode(entry.name): entry for entry in entries}
    except OSError:
        return {}


def matcher(glob: str) -> Callable[[str], bool]:
    """A test for relative paths: a glob without a slash looks at names, one with a slash at whole paths.

    Raises:
        ToolInputError: the glob is malformed.
    """
    if not glob:
        return _anything
    pattern = compiled(glob.removeprefix("./").removeprefix("/"))
    if "/" in glob:
        return pattern.matches
    return lambda path: pattern.matches(path.rpartition("/")[2])


def _anything(_path: str) -> bool:
    return True
