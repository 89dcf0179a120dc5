"""Takes back a worktree that was made just now and is not needed; work that is in it already is kept."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tools.contract import ProcessRunner
from tools.git.checkouts import GONE, home_of, repository_of
from tools.git.failure import GitFailure
from tools.git.making import Made
from tools.git.references import BRANCHES, drop_new_reference
from tools.git.removing import remove_worktree
from tools.git.standing import standing_at


async def undo_worktree(runner: ProcessRunner, made: Made) -> None:
    """Remove a worktree with the branch that was made with it; one that existed before, or has work in it, stays.

    Raises:
        GitFailure: it cannot be removed.
    """
    worktree = made.worktree
    if not made.is_new or worktree.origin is None:
        return
    repository = await asyncio.to_thread(repository_of, worktree.folder)
    found = await standing_at(runner, repository, worktree.name)
    if found.ahead or found.dirty or not found.known or found.checked_out != worktree.branch:
        raise GitFailure(f"The worktree {worktree.name} has work in it; /worktree remove {worktree.name} removes it.")
    await remove_worktree(runner, found)
    await asyncio.to_thread(drop_new_reference, repository.common, f"{BRANCHES}{worktree.branch}", worktree.origin.base)
    with suppress(OSError):
        (home_of(repository) / GONE / f"{worktree.name}.json").unlink()
