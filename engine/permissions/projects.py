"""The project that a permission rule belongs to: a repository, or a folder that lies in none."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 4_096 + 16
"""Of a file that names a folder: the longest path, and the word before it."""


def project_of(working_dir: Path) -> Path:
    """The folder whose rules hold in `working_dir`.

    The nearest repository around it, for a worktree that its repository knows, the repository's own folder; the
    working directory itself where there is none. A repository that is the home folder, or lies around it, counts
    as none: its rules would hold in everything that was ever unpacked there. Nor does one of another user.
    """
    folder = Path(os.path.realpath(working_dir))
    home = Path(os.path.realpath(Path.home()))
    for candidate in (folder, *folder.parents):
        if candidate != folder and home.is_relative_to(candidate):
            break
        if os.path.lexists(candidate / ".git"):
            return _main_of(candidate) if candidate == folder or _is_mine(candidate) else folder
    return folder


def _is_mine(folder: Path) -> bool:
    try:
        return all(os.lstat(path).st_uid == os.getuid() for path in (folder, folder / ".git"))
    except OSError:
        return False


def _main_of(top: Path) -> Path:
    """The main working tree of a worktree at `top`, or `top`.

    Any folder can hold a file `.git` that claims to belong to a repository. It counts only where that repository
    names this very folder.
    """
    control = _target(top / ".git", "gitdir: ", top)
    if control is None or control.parent.name != "worktrees":
        return top
    back = _target(control / "gitdir", "", control)
    main = control.parent.parent
    if back != top / ".git" or main.name != ".git" or not _is_mine(main.parent):
        return top
    return main.parent


def _target(file: Path, before: str, base: Path) -> Path | None:
    """The resolved path that a small regular file names behind `before`."""
    text = _first_line(file)
    if not text.startswith(before) or "\0" in text:
        return None
    named = base / text.removeprefix(before)
    return Path(os.path.realpath(named.parent)) / named.name if named.name == ".git" else Path(os.path.realpath(named))


def _first_line(file: Path) -> str:
    """Empty for anything but a small regular file, so that a pipe or device holds nothing up."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.fsdecode(os.read(descriptor, MOST_BYTES)).removesuffix("\n")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
