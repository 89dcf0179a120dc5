"""State of a worktree beside its base: commits ahead and behind, and uncommitted changes. Read only, in the sandbox."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tools.contract import ProcessRunner
from tools.git.checkouts import Origin, Worktree, branch_at, home_of, origin_of, repository_of, worktree_at, worktrees
from tools.git.failure import GitFailure
from tools.git.reading import GitReader
from tools.git.references import BRANCHES, read_reference
from tools.git.repository import Repository

MOST_NAMES: Final = 16 * 1024 * 1024
"""Bytes of the names of untracked files."""


class Standing(Struct, frozen=True):
    """One worktree as it is now."""

    worktree: Worktree
    head: str = ""
    """Newest commit."""
    base: str = ""
    """Newest commit of the branch it was made of; the commit itself where that is gone or was none."""
    base_branch: str = ""
    """Empty where its base is no branch, or no longer one."""
    checked_out: str = ""
    """Branch that is checked out in it; empty for none."""
    ahead: int = 0
    behind: int = 0
    changed: int = 0
    """Tracked files that differ from the newest commit, submodules left out."""
    untracked: tuple[str, ...] = ()
    """Files that git does not know and does not ignore."""
    known: bool = True
    """False where git could not say."""

    @property
    def dirty(self) -> bool:
        """True where something is not committed."""
        return bool(self.changed or self.untracked)


async def standing_of(runner: ProcessRunner, folder: Path) -> Standing | None:
    """The state of the worktree that `folder` is in; None where that is none of Phoenix's."""
    try:
        repository = await asyncio.to_thread(repository_of, folder)
    except GitFailure:
        return None
    return await standing_at(runner, repository, repository.worktree.name) if _is_ours(repository) else None


async def standing_at(runner: ProcessRunner, repository: Repository, name: str) -> Standing:
    """The state of the worktree of this name."""
    worktree = await asyncio.to_thread(worktree_at, repository, name)
    if not worktree.complete:
        return Standing(worktree, known=False)
    own = await asyncio.to_thread(repository_of, worktree.folder)
    base, branch = _base(own.common, worktree.origin)
    found = Standing(worktree, own.head, base, branch, checked_out=branch_at(own.own))
    reader = GitReader(runner, own, own.worktree)
    await reader.prepare()
    return await _counted(reader, found)


async def standings(runner: ProcessRunner, folder: Path) -> list[Standing]:
    """The states of all worktrees of the repository of `folder`. Raises GitFailure."""
    repository = await asyncio.to_thread(repository_of, folder)
    return [await standing_at(runner, repository, one.name) for one in await asyncio.to_thread(worktrees, repository)]


async def _counted(reader: GitReader, found: Standing) -> Standing:
    if not found.head:
        return Standing(found.worktree, known=False)
    counts = await reader.ask("rev-list", "--left-right", "--count", f"{found.base}...{found.head}", most=64)
    differs = ("diff", "--name-only", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "-z", found.head)
    changed = await reader.ask(*differs, "--", most=MOST_NAMES)
    others = ("ls-files", "--others", "--exclude-standard", *reader.exclude(), "-z")
    untracked = await reader.ask(*others, most=MOST_NAMES)
    sides = counts.captured.head.split() if counts is not None else []
    if len(sides) != 2 or changed is None or untracked is None or untracked.captured.dropped:
        return replace(found, known=False)
    return replace(
        found,
        ahead=int(sides[1]),
        behind=int(sides[0]),
        changed=changed.captured.head.count(b"\0"),
        untracked=tuple(os.fsdecode(name) for name in untracked.captured.head.split(b"\0") if name),
    )


def _base(common: Path, origin: Origin | None) -> tuple[str, str]:
    if origin is None:
        return "", ""
    newest = read_reference(common, f"{BRANCHES}{origin.branch}") if origin.branch else ""
    return (newest, origin.branch) if newest else (origin.base, "")


def _is_ours(repository: Repository) -> bool:
    return repository.worktree.parent == home_of(repository) and origin_of(repository.own) is not None
