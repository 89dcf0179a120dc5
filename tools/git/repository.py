"""Locations of a repository's files, found without git and its configuration (SECURITY V2)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.files.own_files import read_regular
from tools.git.pointers import first_line
from tools.git.shape import git_folder_at

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
    real = folder.resolve()
    for place in (real, *real.parents):
        own = _git_folder(place / ".git")
        if own is not None:
            common = _common(own)
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
    real = folder.resolve()
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


def _common(own: Path) -> Path:
    return own / first_line(own / "commondir", follow=True)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
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
        said = read_small(own / path).strip() or read_small(common / path).strip() or _packed(common, name)
    return ""


def _packed(common: Path, name: bytes) -> bytes:
    found = re.search(
        rb"^([0-9a-f]{40,64}) " + re.escape(name) + rb"$",
        read_small(common / "packed-refs", MOST_REFERENCES),
        re.MULTILINE,
    )
    return found[1] if found else b""
