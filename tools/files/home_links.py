"""Files of a folder that start by themselves because a link in the home folder leads to them: dotfiles repositories."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.files.self_starting import INSTALLED, VERSION_CONTROL

MOST_ENTRIES: Final = 40_000
"""Entries of the home folder and of its hidden folders that are looked at, the upper ones first."""
MOST_IN_ONE: Final = 4_000
"""Entries of one hidden folder, or of one in `.config` or `.local`: a larger one holds data, and delays no other."""
LONGEST_LOOK: Final = 1.0
"""Seconds after which a look is cut."""
DEEPEST: Final = 7
"""Folders on top of each other below the home folder."""
JUST_NOW: Final = 100_000_000
"""Nanoseconds: a folder that changed so shortly before it was read may change again within one tick of its clock."""
_FIRST: Final = (".config", ".local", ".ssh", ".cargo", "bin")
"""Folders of settings and programs, looked at before the other ones of their level."""
_SHARED: Final = frozenset({".config", ".local"})
_PASSED: Final = frozenset({*INSTALLED, *VERSION_CONTROL, "trash"})


class _Folder(Struct, frozen=True):
    """Entries of a folder as of its change time."""

    changed: int
    folders: tuple[str, ...]
    links: tuple[str, ...]
    entries: int


_known: Final[dict[str, _Folder]] = {}
"""Folders by path, read again only where their change time has moved."""


def linked_from_home(workspace: Path, home: Path) -> dict[Path, Path]:
    """The links of a home folder that lead into a resolved `workspace`, by their resolved targets.

    Every link counts that begins with a dot at the home folder's top, or lies below a hidden folder or `bin`, whatever
    its name: what reads it is not known. A link to the workspace itself makes nothing in it start. Reads the disk, some
    milliseconds.
    """
    top, root = os.path.realpath(home), f"{workspace}/"
    found: dict[Path, Path] = {}
    for link in _links(top, str(workspace), set()):
        target = os.path.realpath(link)
        if target.startswith(root):
            found.setdefault(Path(target), Path(link))
    return found


def folders_cut_short(home: Path) -> list[str]:
    """Folders of the home folder that hold more than is looked at, by their names; links deep in them are not known."""
    cut: set[str] = set()
    deque(_links(os.path.realpath(home), None, cut), maxlen=0)
    return sorted(cut)


def _links(home: str, workspace: str | None, cut: set[str]) -> Iterator[str]:
    """Links level by level; those of the upper levels come first, so a look misses the deepest of folders `cut` short.

    With the home folder in the workspace only the folders that are looked at first count: every link leads into it.
    """
    end, left = time.monotonic() + LONGEST_LOOK, MOST_ENTRIES
    top = _read(home)
    yield from (f"{home}/{name}" for name in top.links if name.startswith("."))
    is_inside = workspace is not None and f"{home}/".startswith(f"{workspace}/")
    others = (one for one in top.folders if one.startswith(".") and not is_inside and one not in _FIRST)
    waiting = deque((f"{home}/{name}", 1, name) for name in (*_FIRST, *others) if not _is_passed(name))
    seen: dict[str, int] = {}
    deepest = 3 if is_inside else DEEPEST
    while waiting and left > 0 and time.monotonic() < end:
        path, depth, part = waiting.popleft()
        if path == workspace:
            continue
        if seen.get(part, 0) > MOST_IN_ONE:
            cut.add(part)
            continue
        folder = _read(path)
        seen[part] = seen.get(part, 0) + folder.entries
        left -= folder.entries + 1
        yield from (f"{path}/{name}" for name in folder.links)
        if depth < deepest:
            splits = depth == 1 and part in _SHARED
            inner = (name for name in folder.folders if not _is_passed(name))
            waiting += ((f"{path}/{name}", depth + 1, f"{part}/{name}" if splits else part) for name in inner)
    cut.update(part for _, _, part in waiting)


def _is_passed(name: str) -> bool:
    """True for folders of version control, of packages of others and of copies, which hold no settings."""
    folded = name.casefold()
    return folded in _PASSED or "cache" in folded


def _read(path: str) -> _Folder:
    """The entries of a folder; none where it cannot be read."""
    try:
        changed = os.stat(path).st_mtime_ns  # noqa: PTH116 - one call for each of many folders
        known = _known.get(path)
        if known is not None and known.changed == changed:
            return known
        with os.scandir(path) as entries:
            found = list(islice(entries, MOST_ENTRIES))
    except OSError:
        return _Folder(0, (), (), 0)
    links = tuple(one.name for one in found if one.is_symlink())
    folders = tuple(one.name for one in found if one.is_dir(follow_symlinks=False))
    folder = _Folder(changed, folders, links, len(found))
    if time.time_ns() - changed > JUST_NOW and len(_known) < MOST_ENTRIES:
        _known[path] = folder
    return folder
