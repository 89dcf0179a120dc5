"""Removes a worktree so that it can be made again: its branch stays, and what was not committed becomes a commit."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tools.clean import reveal_name
from tools.contract import ProcessRunner
from tools.files.own_files import write_file
from tools.git.checkouts import GONE, home_of, own_folder, repository_of
from tools.git.failure import GitFailure
from tools.git.reading import GitReader
from tools.git.snapshots import keep_changes
from tools.git.standing import Standing
from tools.git.worktree_names import FOLDER
from tools.git.writing import GitWriter

MODULES: Final = "modules"
LEAVING: Final = ".leaving-"


async def remove_worktree(runner: ProcessRunner, found: Standing) -> None:
    """Remove the worktree as it was found, its branch not.

    Raises:
        GitFailure: it cannot be made again afterwards, or cannot be removed.
    """
    worktree = found.worktree
    await asyncio.to_thread(_check_place, found)
    if worktree.complete:
        if not found.known:
            raise GitFailure(f"Git cannot say what is in {reveal_name(worktree.folder)}; look there, then remove it.")
        await _keep(runner, found)
    await asyncio.to_thread(_delete, found)


def _check_place(found: Standing) -> None:
    folder, own = found.worktree.folder, found.worktree.own
    home = folder.parent
    if home.parent.name != FOLDER or not folder.is_dir():
        raise GitFailure(f"There is no worktree at {reveal_name(folder)}.")
    own_folder(home.parent)
    own_folder(home)
    if own is None and any(folder.iterdir()):
        raise GitFailure(f"{reveal_name(folder)} was not made by Phoenix, or git has forgotten it; delete it by hand.")
    if own is not None and (own / MODULES).exists():
        raise GitFailure(
            f"{reveal_name(folder)} has submodules with git folders of their own; push their commits, then run: "
            "git worktree remove --force in it."
        )
    if _is_detached(found):
        raise GitFailure(
            f"{reveal_name(folder)} is on no branch, so its commits would be lost; run `git switch -c NAME` there."
        )
    nested = next((name for name in found.untracked if name.endswith("/")), "")
    if nested:
        raise GitFailure(f"{reveal_name(folder / nested)} is a repository of its own; move it elsewhere first.")


async def _keep(runner: ProcessRunner, found: Standing) -> None:
    """Keep what is needed to make it again."""
    worktree = found.worktree
    repository = await asyncio.to_thread(repository_of, worktree.folder)
    if repository.own != worktree.own or repository.common != await asyncio.to_thread(_common_of, worktree.folder):
        raise GitFailure(f"{reveal_name(worktree.folder)} changed meanwhile; try again.")
    if found.dirty:
        reader = GitReader(runner, repository, repository.worktree)
        await reader.prepare()
        await keep_changes(GitWriter(runner, repository, reader.for_checkout), worktree.name, found.untracked)
    if worktree.origin is not None:
        record = msgspec.json.encode(worktree.origin)
        await asyncio.to_thread(write_file, home_of(repository) / GONE / f"{worktree.name}.json", record)


def _is_detached(found: Standing) -> bool:
    """True where commits of a worktree may be on no branch."""
    return found.worktree.complete and found.known and not found.checked_out


def _common_of(folder: Path) -> Path:
    return repository_of(folder).common


def _delete(found: Standing) -> None:
    """Rename the folder first: what is left after a crash has no name of a worktree."""
    folder, own = found.worktree.folder, found.worktree.own
    leaving = folder.with_name(f"{LEAVING}{folder.name}-{os.urandom(3).hex()}")
    try:
        folder.rename(leaving)
        if own is not None:
            shutil.rmtree(own)
        shutil.rmtree(leaving, onerror=_open_and_retry)
    except OSError as error:
        where = reveal_name(Path(os.fsdecode(error.filename or leaving)))
        why = f"cannot be deleted: {error.strerror}; delete {reveal_name(leaving)} by hand"
        raise GitFailure(f"{where} {why}.") from error


def _open_and_retry(delete: Callable[..., object], path: str, error: object) -> None:
    """Give the owner of a read-only folder, such as a cache of modules, its access back."""
    with suppress(OSError):
        for place in (Path(path).parent, Path(path)):
            if stat.S_ISDIR(place.lstat().st_mode):
                place.chmod(stat.S_IRWXU)
    if Path(path).is_dir() and not Path(path).is_symlink():
        shutil.rmtree(path)
    else:
        delete(path)
