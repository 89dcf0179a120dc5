"""Folders that git takes for repositories, by git's own rule: valid contents decide, no name does (SECURITY S1).

Git looks at each folder from the current one upwards: first for a valid `.git` in it, a folder or a file that names
one, then whether the folder itself is a git folder. Nothing here starts git or follows its configuration.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from tools.files.own_files import read_regular
from tools.git.pointers import first_line, named_folder

HEAD: Final = "HEAD"
LONGEST_HEAD: Final = 256
"""Bytes of HEAD that git looks at."""
_HEAD: Final = re.compile(rb"ref:\s*refs/|[0-9a-fA-F]{40}")


def is_git_folder(folder: Path) -> bool:
    """True where git takes `folder` itself for a git folder: HEAD is valid, objects and refs exist in it or behind
    `commondir`.
    """
    if not is_head(folder / HEAD):
        return False
    common = folder / first_line(folder / "commondir", follow=True)
    return os.access(common / "objects", os.X_OK) and os.access(common / "refs", os.X_OK)


def may_be_git_folder(folder: Path) -> bool:
    """True where git takes `folder` for a git folder, or may do so elsewhere: through a link such as `/proc/self/cwd`
    it sees other files than this process, and another mode may be set later.
    """
    head = folder / HEAD
    if not (is_head(head) or head.is_symlink()):
        return False
    parts = (folder / "objects", folder / "refs")
    return os.path.lexists(folder / "commondir") or all(map(os.path.lexists, parts))


def is_head(path: Path) -> bool:
    """True for a HEAD that git takes: a link below `refs`, a reference or the name of an object."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode) and os.readlink(path).startswith("refs/"):  # noqa: PTH115 - a string
            return True
    except OSError:
        return False
    return _HEAD.match(read_regular(path, LONGEST_HEAD) or b"") is not None


def git_folder_at(folder: Path) -> Path | None:
    """The git folder that git chooses at `folder` without looking further up, unresolved; None where it looks on."""
    pointer = folder / ".git"
    try:
        status: os.stat_result | None = pointer.stat()
    except (OSError, ValueError):
        status = None
    if status is not None and stat.S_ISREG(status.st_mode):
        target = named_folder(pointer, follow=True)  # git ends with an error where it cannot use the file
        return folder / target if target and is_git_folder(folder / target) else None
    if status is not None and is_git_folder(pointer):
        return pointer
    return folder if is_git_folder(folder) else None


def find_git_folder(folder: Path) -> tuple[Path, Path] | None:
    """The folder at which git finds a repository from `folder` upwards, and its git folder; None outside of one."""
    for place in (folder, *folder.parents):
        found = git_folder_at(place)
        if found is not None:
            return place, found
    return None
