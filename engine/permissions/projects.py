"""The project of a permission rule: a repository, or a folder outside any."""

from __future__ import annotations

import os
from pathlib import Path

from tools.files.links import real_path
from tools.git.repository import first_line, has_repository, read_git_pointer


def project_of(working_dir: Path) -> Path:
    """Find the folder whose rules apply in `working_dir`.

    The nearest repository around it, for a worktree that its repository knows, the repository's own folder; the
    working directory itself where there is none. A repository that is the home folder, or lies around it, counts
    as none: its rules would hold in everything that was ever unpacked there. Nor does one of another user.
    """
    return _main_of(top_of(working_dir))


def top_of(working_dir: Path) -> Path:
    """Find the working tree around `working_dir` whose rules apply there; for a worktree its own folder."""
    folder = Path(real_path(working_dir))
    home = Path(real_path(Path.home()))
    for candidate in (folder, *folder.parents):
        if candidate != folder and home.is_relative_to(candidate):
            break
        if has_repository(candidate):
            return candidate if candidate == folder or _is_mine(candidate) else folder
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
    control = _resolve(read_git_pointer(top / ".git"), top)
    if control is None or control.parent.name != "worktrees":
        return top
    back = _resolve(first_line(control / "gitdir"), control)
    main = control.parent.parent
    if back != top / ".git" or main.name != ".git" or not _is_mine(main.parent):
        return top
    return main.parent


def _resolve(text: str, base: Path) -> Path | None:
    """The resolved path that a file names, but for a last part `.git`, which is compared as it is named."""
    if not text:
        return None
    named = base / text
    return Path(real_path(named.parent)) / named.name if named.name == ".git" else Path(real_path(named))
