"""Repositories as they lie on disk: where they begin, the files that point to them, their shape; nothing runs git."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.files.links import follow_links
from tools.files.own_files import read_regular

LONGEST: Final = 4_096 + 16
"""Bytes: the longest path that Linux takes, and the word before it."""
WORD: Final = b"gitdir: "


def first_line(path: Path, *, follow: bool = False) -> str:
    """The first line of a file such as `commondir`, without blanks around it; empty for anything else."""
    content = read_regular(path, LONGEST, follow=follow) or b""
    line = content.partition(b"\n")[0].strip()
    return "" if b"\0" in line else os.fsdecode(line)


def read_git_pointer(pointer: Path, *, follow: bool = False) -> str:
    """The git folder that a `.git` file names, unresolved and perhaps relative; empty for anything else.

    Read as git reads it: the name goes on to the end of the file, lines and blanks included, or to a null byte.
    """
    content, null, _ = (read_regular(pointer, LONGEST + 1, follow=follow) or b"").partition(b"\0")
    if len(content) > LONGEST or not content.startswith(WORD):
        return ""
    return os.fsdecode((content if null else content.rstrip(b"\r\n")).removeprefix(WORD))


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
    if not (is_head(head) or os.path.islink(head)):
        return False
    parts = (folder / "objects", folder / "refs")
    return os.path.lexists(folder / "commondir") or all(map(os.path.lexists, parts))


def is_head(path: Path) -> bool:
    """True for a HEAD that git takes: a link below `refs`, a reference or the name of an object."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode) and os.readlink(path).startswith("refs/"):
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
        target = read_git_pointer(pointer, follow=True)  # git ends with an error where it cannot use the file
        return folder / target if target and is_git_folder(folder / target) else None
    if status is not None and is_git_folder(pointer):
        return pointer
    return folder if is_git_folder(folder) else None


SMALL: Final = 4096
"""Bytes of a file that holds one line: HEAD, a reference, a pointer."""
MOST_REFERENCES: Final = 64 * 1024 * 1024
"""Bytes of packed references; a million of them have that many."""
MOST_STEPS: Final = 5
"""Symbolic references one behind the other, as git follows them."""
SHORT_NAME: Final = 7
"""Characters of the name of a commit that are shown."""
NAME: Final = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
EMPTY_TREES: Final = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""Names of a tree without files, with which a repository without commits is compared."""


class Repository(Struct, frozen=True):
    """One working tree and the files of git that describe it."""

    worktree: Path
    own: Path
    """The git folder of this working tree: HEAD and index."""
    common: Path
    """The one it shares with other working trees: objects, references, configuration."""
    head: str = ""
    """Name of the newest commit; empty before the first."""
    unreadable: str = ""
    """Reason why it cannot be read without git, as a sentence."""

    @property
    def objects_by(self) -> str:
        """The hash that names objects."""
        return "sha256" if len(self.head) == 64 else "sha1"

    @property
    def compared_with(self) -> str:
        """Commit that uncommitted changes are compared with."""
        return self.head or EMPTY_TREES[self.objects_by]


def find_repository(folder: Path) -> Repository | None:
    """Find the repository of `folder`, None outside one; reads some hundred bytes and starts no process."""
    real = follow_links(folder)
    for place in (real, *real.parents):
        own = _git_folder(place / ".git")
        if own is not None:
            common = own / first_line(own / "commondir", follow=True)
            if _is_folder(common / "reftable"):
                sentence = "This repository keeps its references in tables (reftable), which Phoenix does not read."
                return Repository(place, own, common, unreadable=sentence)
            return Repository(place, own, common, _head(own, common))
    return None


def has_repository(folder: Path) -> bool:
    """True where git takes `folder` for the top of a working tree, by its own rule: an empty `.git`, as other programs
    leave one behind, makes none.
    """
    return _git_folder(folder / ".git") is not None


def branch_of(folder: Path) -> str:
    """The checked-out branch at `folder`, the short name of a commit when detached; empty outside a repository."""
    real = follow_links(folder)
    for place in (real, *real.parents):
        own = _git_folder(place / ".git")
        if own is not None:
            said = read_small(own / "HEAD").strip()
            name = os.fsdecode(said.removeprefix(b"ref:").strip()).removeprefix("refs/heads/")
            return name[:SHORT_NAME] if NAME.fullmatch(said) else name if said.startswith(b"ref:") else ""
    return ""


def read_small(path: Path, limit: int = SMALL) -> bytes:
    """The beginning of a regular file, empty for anything else: no pipe or device is opened."""
    return read_regular(path, limit) or b""


def _git_folder(pointer: Path) -> Path | None:
    """The git folder that a `.git` is, or names; None where git looks further up."""
    found = git_folder_at(pointer.parent)
    return found if found != pointer.parent else None


def _is_folder(path: Path) -> bool:
    try:
        return os.path.isdir(path)
    except (OSError, ValueError):
        return False


def _head(own: Path, common: Path) -> str:
    """The commit that HEAD names; empty where nothing does yet."""
    said = read_small(own / "HEAD").strip()
    for _ in range(MOST_STEPS):
        if not said.startswith(b"ref:"):
            return said.decode("ascii") if NAME.fullmatch(said) else ""
        name = said[4:].strip()
        if not name.startswith(b"refs/") or b".." in name or b"\0" in name:
            return ""
        path = os.fsdecode(name)
        said = read_small(own / path).strip() or read_small(common / path).strip() or _find_packed(common, name)
    return ""


def _find_packed(common: Path, name: bytes) -> bytes:
    found = re.search(
        rb"^([0-9a-f]{40,64}) " + re.escape(name) + rb"$",
        read_small(common / "packed-refs", MOST_REFERENCES),
        re.MULTILINE,
    )
    return found[1] if found else b""


FOLDER: Final = ".phoenix-worktrees"
"""Folder beside the repository, where nothing that is committed can stand in its place."""
PREFIX: Final = "phoenix/"
"""Beginning of the name of every branch that is made with a worktree."""


class GitFailure(Exception):
    """Raised when something cannot be done; the message is one sentence for the user that names the fix."""
