"""Place of the paths of a call (inside, outside, protected, of keys, Phoenix's own), and the project of a rule."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.contract import ToolClass, ToolRequest, ToolSpec
from tools.files.links import real_path
from tools.files.protected import describe_protection_within, is_secret, secret_paths
from tools.git.repository import first_line, has_repository, read_git_pointer

SYSTEM: Final = tuple(map(Path, ("/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/nix/store")))
"""Folders of programs and their settings: every sandboxed command may read them."""


class PathPlace(Struct, frozen=True):
    """The working directory, Phoenix's own paths, and those of them that reading tools may use freely."""

    working_dir: Path
    readable: tuple[Path, ...] = ()
    """Folders of Phoenix's own where long output is spilled."""
    own: tuple[Path, ...] = ()
    """Settings, keys and records: no tool opens them."""
    home: Path = Path("/nonexistent")

    def outside(self, spec: ToolSpec, request: ToolRequest) -> list[Path]:
        """The paths of a call outside."""
        inside = (self.working_dir, *self.readable) if spec.tool_class is ToolClass.READ else (self.working_dir,)
        return [path for path in request.paths if not _is_in(path, inside)]

    def reads_system(self, spec: ToolSpec, request: ToolRequest) -> bool:
        """True for a call that reads outside, nothing but what the sandbox shows to commands without a question."""
        is_read = spec.tool_class is ToolClass.READ
        return is_read and all(_is_in(path, SYSTEM) for path in self.outside(spec, request))

    def own_path(self, spec: ToolSpec, request: ToolRequest) -> str:
        """The first path of a call that is Phoenix's own, empty where none is."""
        open_to_it = self.readable if spec.tool_class is ToolClass.READ else ()
        own = (*self.own, Path(f"/proc/{os.getpid()}"))  # its environment and memory hold keys
        return next((str(path) for path in request.paths if _is_in(path, own) and not _is_in(path, open_to_it)), "")

    def find_guard(self, spec: ToolSpec, request: ToolRequest) -> str:
        """Reason why a person must see this call in every mode and under every rule; empty without one."""
        for path in request.paths:
            if is_secret(path, self.home):
                verb = "reads" if spec.tool_class is ToolClass.READ else "changes"
                return f"{verb} {path}, a folder of keys"
            if spec.tool_class is ToolClass.EDIT and (
                part := describe_protection_within(path, self.working_dir, self.home)
            ):
                return f"changes {part}, which programs outside the sandbox act on"
        return ""

    def list_passed_over(self, request: ToolRequest) -> tuple[Path, ...]:
        """Paths that a call passes over where it meets them, unless it named one of them or one inside it."""
        every = (*self.own, *secret_paths(self.home))
        return tuple(path for path in every if not _is_in_any(request.paths, path))


def _is_in(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _is_in_any(paths: tuple[Path, ...], folder: Path) -> bool:
    return any(path.is_relative_to(folder) for path in paths)


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
