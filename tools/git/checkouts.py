"""Worktrees that Phoenix made, as git lists them, and commits that keep their contents."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tools.clean import reveal_name
from tools.files.own_files import read_file, read_regular, write_file
from tools.git.commands import BRANCHES, GitWriter, is_name, read_reference, set_reference
from tools.git.repository import (
    FOLDER,
    PREFIX,
    GitFailure,
    Repository,
    find_repository,
    first_line,
    read_git_pointer,
    read_small,
)

RECORD: Final = "phoenix.json"
GONE: Final = ".removed"
"""Folder of the records of those that were removed."""
MAKING: Final = ".making"
"""Folder of a file for each name, locked while its worktree is made."""
LOCK: Final = "locked"
"""File that keeps git from pruning a working tree, made first and removed last."""
MOST_CHECKOUTS: Final = 1_000
MOST_RECORD: Final = 4_096
_OBJECT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class WorktreeOrigin(Struct, frozen=True):
    """Base of a worktree, kept in its git folder, which a command in it can write: checked when read."""

    base: str
    """Commit."""
    branch: str = ""
    """Branch of that commit; empty where it was made of a commit or tag."""


class Checkout(Struct, frozen=True):
    """One working tree of a repository."""

    folder: Path
    own: Path
    branch: str = ""
    """Short name; empty when it is detached."""


class Worktree(Struct, frozen=True):
    """One that Phoenix made, or began to make."""

    name: str
    folder: Path
    own: Path | None = None
    """Git folder; None where there is none yet."""
    origin: WorktreeOrigin | None = None
    complete: bool = False

    @property
    def branch(self) -> str:
        """The branch that was made with it."""
        return f"{PREFIX}{self.name}"


def repository_of(folder: Path) -> Repository:
    """The repository of `folder`, in which worktrees can be made.

    A pointer to a git folder counts only where that folder names it back: the contents of a folder could name any.

    Raises:
        GitFailure: there is none, or none of a kind that Phoenix writes to.
    """
    found = find_repository(folder)
    if found is None:
        raise GitFailure(
            f"{reveal_name(folder)} is in no git repository with files; run `git init`, or choose another."
        )
    if found.unreadable:
        raise GitFailure(found.unreadable)
    pointer = found.worktree / ".git"
    own, common = found.own.resolve(), found.common.resolve()
    if pointer.is_symlink() or (pointer.is_dir() and own != common):
        raise GitFailure(
            f"The git folder of {reveal_name(found.worktree)} is elsewhere; start in that repository itself."
        )
    if not pointer.is_dir() and not _names_back(own, common, pointer):
        raise GitFailure(
            f"{reveal_name(found.worktree)} is a submodule, or a worktree that its repository does not know; "
            "start in a repository of its own."
        )
    return Repository(found.worktree, own, common, found.head)


def home_of(repository: Repository) -> Path:
    """The folder of all worktrees that Phoenix makes of this repository."""
    common = repository.common
    top = common.parent if common.name == ".git" else common
    return top.parent / FOLDER / top.name


def checkouts(common: Path) -> Iterator[Checkout]:
    """All working trees, the main one first; those whose folder is gone are left out."""
    if common.name == ".git":
        yield Checkout(common.parent, common, branch_at(common))
    for own in _list_linked(common):
        pointer = Path(first_line(own / "gitdir", follow=False))
        if pointer.is_absolute() and _names_back(own, common, pointer) and pointer.exists():
            yield Checkout(pointer.parent, own, branch_at(own))


def worktrees(repository: Repository) -> list[Worktree]:
    """Worktrees of Phoenix, by name, with those that a crash left incomplete."""
    home = home_of(repository)
    try:
        names = sorted(entry.name for entry in os.scandir(home) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [worktree_at(repository, name) for name in names[:MOST_CHECKOUTS] if not name.startswith(".")]


def worktree_at(repository: Repository, name: str) -> Worktree:
    """The worktree of this name, as far as it is there."""
    folder = home_of(repository) / name
    target = "" if folder.is_symlink() else read_git_pointer(folder / ".git")
    own = Path(target)
    if not target or not own.is_absolute() or not _names_back(own, repository.common, folder / ".git"):
        return Worktree(name, folder)
    complete = (own / "index").is_file() and not (own / LOCK).exists()
    return Worktree(name, folder, own, origin_of(own), complete)


def origin_of(own: Path) -> WorktreeOrigin | None:
    """The record in a git folder; None where it is not there or says something that no record says."""
    return _origin(own / RECORD)


def read_kept_origin(home: Path, name: str) -> WorktreeOrigin | None:
    """The record of a worktree that was removed."""
    return _origin(home / GONE / f"{name}.json")


def _origin(path: Path) -> WorktreeOrigin | None:
    try:
        found = msgspec.json.decode(read_regular(path, MOST_RECORD, follow=False) or b"", type=WorktreeOrigin)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    valid = _OBJECT.fullmatch(found.base) and (not found.branch or is_name(found.branch))
    return found if valid else None


def branch_at(own: Path) -> str:
    """Branch that HEAD names in a git folder; empty when it is detached."""
    said = os.fsdecode(read_small(own / "HEAD").strip())
    return said.removeprefix("ref:").strip().removeprefix(BRANCHES) if said.startswith("ref:") else ""


def own_folder(path: Path) -> None:
    """Make a folder of this user, 0700; a link or a folder of another user in its place is refused.

    Raises:
        GitFailure: it cannot be used.
    """
    try:
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        status = path.lstat()
    except OSError as error:
        raise GitFailure(
            f"{reveal_name(path)} cannot be made: {error.strerror}; a worktree lies beside its repository, so that "
            "folder must be writable."
        ) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise GitFailure(f"{reveal_name(path)} is no folder of yours but a link or another's; remove it.")


def _list_linked(common: Path) -> list[Path]:
    try:
        return sorted(entry for entry in (common / "worktrees").iterdir() if entry.is_dir())[:MOST_CHECKOUTS]
    except OSError:
        return []


def _names_back(own: Path, common: Path, pointer: Path) -> bool:
    """True where the git folder `own` of a linked working tree belongs to `common` and names this `.git` file."""
    back = first_line(own / "gitdir", follow=False)
    if own.parent != common / "worktrees" or own.is_symlink() or not back:
        return False
    named = own / back
    return named.name == ".git" and Path(os.path.realpath(named.parent)) == Path(os.path.realpath(pointer.parent))


LARGEST: Final = 256 * 1024 * 1024
"""Bytes of an index: some two million files."""
REMOVED: Final = "refs/phoenix/removed/"
WHO: Final = {
    "GIT_AUTHOR_NAME": "Phoenix",
    "GIT_AUTHOR_EMAIL": "phoenix@localhost",
    "GIT_COMMITTER_NAME": "Phoenix",
    "GIT_COMMITTER_EMAIL": "phoenix@localhost",
}
MESSAGE: Final = "Uncommitted changes of a worktree that was removed"


async def keep_changes(writer: GitWriter, name: str, untracked: tuple[str, ...]) -> None:
    """Keep the changes of tracked files and these untracked ones. Raises GitFailure."""
    repository = writer.repository
    index = home_of(repository) / MAKING / f"{name}.index"  # where no command in the worktree can put a link
    write_file(index, read_file(repository.own / "index", LARGEST, follow=False))
    try:
        changed = await writer.run("diff-files", "--name-only", "--ignore-submodules=all", "-z", index=index)
        names = [*filter(None, changed.split("\0")), *untracked]
        listed = b"".join(os.fsencode(each) + b"\0" for each in names)
        await writer.run("update-index", "--add", "--remove", "-z", "--stdin", index=index, stdin=listed)
        tree = await writer.name("write-tree", index=index)
    finally:
        with suppress(OSError):
            index.unlink()
    before = read_reference(repository.common, f"{REMOVED}{name}")
    parents = [word for parent in dict.fromkeys((repository.head, before)) if parent for word in ("-p", parent)]
    commit = await writer.name("commit-tree", *parents, "-m", MESSAGE, tree, environment=WHO)
    set_reference(repository.common, f"{REMOVED}{name}", commit, before)


async def put_back(writer: GitWriter, name: str) -> str:
    """Put kept changes into a worktree that was just checked out; a sentence, empty where there are none."""
    repository = writer.repository
    kept = read_reference(repository.common, f"{REMOVED}{name}")
    if not kept or kept == repository.head:
        return ""
    parent = await writer.attempt("rev-parse", "--verify", "--quiet", f"{kept}^1")
    if os.fsdecode(parent.captured.head).strip() != repository.head:
        return f"Changes that were not committed when it was removed are in {REMOVED}{name}; the branch moved since."
    await writer.run("read-tree", "--reset", "-u", kept)
    await writer.run("read-tree", "--reset", repository.head)
    await writer.attempt("update-index", "-q", "--refresh")
    set_reference(repository.common, f"{REMOVED}{name}", repository.head, kept)
    return "The changes that were not committed when it was removed are back."
