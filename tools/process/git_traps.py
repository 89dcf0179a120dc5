"""Traps of a sandboxed command for a git that runs outside the sandbox, found and set aside when the command ends.

No mount can keep a command from making a repository in a sub-folder, or a link in the part of `.git` that git itself
writes. Yet `git status` at the top looks into every submodule of the index and starts the `core.fsmonitor` it finds
there, and `git commit` appends to `.git/logs/HEAD` wherever that leads.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from tools.clean import reveal_name
from tools.files.location import Location
from tools.files.opening import opened_folder
from tools.files.own_files import read_regular
from tools.git.pointers import first_line, named_folder
from tools.process.git_index import submodules
from tools.process.nested import NestedControl

Traps: TypeAlias = dict[Path, tuple[object, ...]]
"""Traps by path, with the values that reveal a change."""
MOST_CONFIG: Final = 256 * 1024
MOST_REPOSITORIES: Final = 5_000
MOST_LINKS: Final = 200_000
"""Entries of a git folder that are looked at for links."""
SAMPLE: Final = ".sample"
_SECTION: Final = re.compile(
    rb"\[(core|remote|branch|submodule|user|extensions|init|lfs|gc|advice)( \"[^\"\\\n]*\")?\]"
)
_SETTING: Final = re.compile(
    rb"(repositoryformatversion|filemode|bare|logallrefupdates|symlinks|ignorecase|precomposeunicode|autocrlf|eol"
    rb"|worktree|url|pushurl|fetch|push|mirror|promisor|partialclonefilter|tagopt|prune|remote|merge|rebase|active"
    rb"|name|email|objectformat|refstorage|partialclone|worktreeconfig|preciousobjects|compatobjectformat"
    rb"|defaultbranch|auto|autodetach|access|detachedhead)"
    rb"\s*=[^\\\n]*",
    re.IGNORECASE,
)
"""Settings that git itself writes into a new repository; none names a program or another file of settings."""
TOO_MANY: Final = "there are too many repositories or files of git here to see whether git may run in all of them"
HEAD: Final = "HEAD"
PARTS: Final = ("config", "config.worktree")
LOOSE: Final = re.compile(r"[0-9a-f]{2}")
"""Folders of loose objects: git makes files in them, and never overwrites one."""


class GitWatch:
    """Looks before the first of the commands that run at once in a workspace, and after each. Called from threads."""

    def __init__(self) -> None:
        self.nested = NestedControl()
        self._lock = threading.Lock()
        self._watched: dict[Path, _Watched] = {}

    def begin(self, workspace: Path, roots: tuple[Path, ...]) -> None:
        """Note the present traps: they are the user's own, or made by a command with permission."""
        with self._lock:
            watched = self._watched.get(workspace)
            if watched is None:
                self._watched[workspace] = watched = _Watched(roots, self._look(workspace, roots)[0])
            watched.commands += 1

    def end(self, workspace: Path) -> tuple[str, ...]:
        """Set aside traps created since `begin`; returns a sentence for each."""
        with self._lock:
            watched = self._watched.get(workspace)
            if watched is None:
                return ()
            watched.commands -= 1
            if not watched.commands:
                del self._watched[workspace]
            found, whole = self._look(workspace, watched.roots)
            said = set_aside(found, watched.before, watched.roots)
            return tuple(said if whole else [*said, TOO_MANY])

    def _look(self, workspace: Path, roots: tuple[Path, ...]) -> tuple[Traps, bool]:
        """Traps armed now, and False when there are too many folders to look at all of them."""
        nested = [path for path in self.nested.find(workspace) if path.name in {".git", HEAD}]
        top = workspace / ".git"
        found: Traps = {}
        waiting, seen = [top, *nested], set[Path]()
        folders: dict[Path, None] = {}
        for pointer in waiting:
            if pointer in seen or len(seen) >= MOST_REPOSITORIES:
                continue
            seen.add(pointer)
            if pointer != top and pointer.name == ".git" and pointer.is_symlink():
                found[pointer] = _stamp(pointer)
                continue
            folder = git_folder(pointer)
            if folder is None or not any(folder.is_relative_to(root) for root in roots):
                continue
            if pointer != top:
                found.update({part: _stamp(part) for part in _armed_parts(folder)})
            if pointer.name == ".git":
                waiting += [pointer.parent / name / ".git" for name in submodules(folder)]
            folders[folder] = None
        folders.update(dict.fromkeys(root for root in roots if (root / HEAD).is_file()))
        whole = len(seen) < MOST_REPOSITORIES
        for folder in folders:
            whole = links(folder, found) and whole
        return found, whole


class _Watched(Struct, eq=False):
    """One workspace while commands run in it."""

    roots: tuple[Path, ...]
    before: Traps
    commands: int = 0


def links(git_folder: Path, found: Traps) -> bool:
    """Add the symbolic links in a git folder, except for a HEAD as git once made it: it writes through each of them.

    False where the folder has too many entries to look at.
    """
    waiting, seen = [os.fspath(git_folder)], 0
    objects = os.path.join(git_folder, "objects")  # noqa: PTH118 - strings, for the sake of speed
    for folder in waiting:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                seen += 1
                if entry.is_symlink():
                    if not _is_old_head(entry):
                        found[Path(entry.path)] = _stamp(Path(entry.path))
                elif entry.is_dir() and not (folder == objects and LOOSE.fullmatch(entry.name)):
                    waiting.append(entry.path)
        if seen > MOST_LINKS:
            return False
    return True


def set_aside(found: Traps, before: Traps, roots: tuple[Path, ...]) -> list[str]:
    """Set aside traps that changed since `before`; one sentence for each."""
    return [
        sentence
        for path, look in sorted(found.items())
        if before.get(path) != look and (sentence := _take_away(path, roots))
    ]


def _take_away(path: Path, roots: tuple[Path, ...]) -> str:
    """Remove a link, rename anything else; no link is followed, whatever a command that still runs puts in between."""
    root = next((root for root in roots if path.is_relative_to(root)), None)
    if root is None:
        return ""
    name, aside = path.name, f"{path.name}-set-aside-{secrets.token_hex(3)}"
    shown = reveal_name(path.relative_to(root))
    try:
        with opened_folder(Location(root, path.relative_to(root).parts, "")) as folder:
            with suppress(OSError):  # a command may have removed its owner's access
                Path(f"/proc/self/fd/{folder}").chmod(stat.S_IMODE(os.fstat(folder).st_mode) | stat.S_IRWXU)
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                target = os.readlink(name, dir_fd=folder)
                os.unlink(name, dir_fd=folder)
                return f"the link {shown} to {reveal_name(target)} was removed: git would write or load what it names"
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{shown} could not be renamed ({error.strerror}): git would start programs that it names"
    return f"{shown} was renamed to {aside}: git would start programs that it names, outside the sandbox"


def git_folder(pointer: Path) -> Path | None:
    """The resolved git folder behind a path that git takes for a repository."""
    if pointer.name != ".git":
        return pointer.parent.resolve()
    if pointer.is_dir():
        return pointer.resolve()
    target = named_folder(pointer)
    with suppress(OSError, ValueError, RuntimeError):
        return (pointer.parent / target).resolve() if target else None
    return None


def _armed_parts(folder: Path) -> Iterator[Path]:
    """Parts of a git folder that name programs, or that lead to another folder which may."""
    for name in PARTS:
        if os.path.lexists(folder / name) and not _is_plain(folder / name):
            yield folder / name
    hooks = folder / "hooks"
    with suppress(OSError):
        if hooks.is_symlink() or any(not name.endswith(SAMPLE) for name in os.listdir(hooks)):  # noqa: PTH208 - names
            yield hooks
    moved = folder / "commondir"
    if os.path.lexists(moved) and not (folder.parent.name == "worktrees" and first_line(moved) == "../.."):
        yield moved


def _is_plain(config: Path) -> bool:
    """True for settings as git itself writes them; anything else may have any meaning."""
    content = read_regular(config, MOST_CONFIG + 1, follow=False)
    if content is None or len(content) > MOST_CONFIG or b"\r" in content:
        return False
    lines = (line.strip() for line in content.split(b"\n"))
    return all(
        not line or line[:1] in {b"#", b";"} or _SECTION.fullmatch(line) or _SETTING.fullmatch(line) for line in lines
    )


def _is_old_head(entry: os.DirEntry[str]) -> bool:
    if entry.name != "HEAD":
        return False
    with suppress(OSError):
        target = os.readlink(entry.path)  # noqa: PTH115 - a string
        return target.startswith("refs/") and ".." not in target.split("/")
    return False


def _stamp(path: Path) -> tuple[object, ...]:
    """Differs after every change: the time of the inode's change cannot be set."""
    try:
        status = path.lstat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns
