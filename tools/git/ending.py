"""Ends of worktrees: how they stand against their base, merged into it, removed."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tools.clean import clean_line, reveal_name
from tools.contract import ProcessRunner
from tools.files.own_files import write_file
from tools.git.checkouts import (
    GONE,
    Checkout,
    Worktree,
    WorktreeOrigin,
    branch_at,
    checkouts,
    home_of,
    keep_changes,
    origin_of,
    own_folder,
    repository_of,
    worktree_at,
    worktrees,
)
from tools.git.commands import BRANCHES, GitReader, GitWriter, lock_reference, log_change, read_reference, refusal
from tools.git.repository import FOLDER, SHORT_NAME, GitFailure, Repository

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
    if repository.worktree.parent != home_of(repository) or origin_of(repository.own) is None:
        return None
    return await standing_at(runner, repository, repository.worktree.name)


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
    return await _count_commits(reader, found)


async def standings(runner: ProcessRunner, folder: Path) -> list[Standing]:
    """The states of all worktrees of the repository of `folder`. Raises GitFailure."""
    repository = await asyncio.to_thread(repository_of, folder)
    return [await standing_at(runner, repository, one.name) for one in await asyncio.to_thread(worktrees, repository)]


async def _count_commits(reader: GitReader, found: Standing) -> Standing:
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


def _base(common: Path, origin: WorktreeOrigin | None) -> tuple[str, str]:
    if origin is None:
        return "", ""
    newest = read_reference(common, f"{BRANCHES}{origin.branch}") if origin.branch else ""
    return (newest, origin.branch) if newest else (origin.base, "")


UNFINISHED: Final = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "bisect",
}
SHOWN_CONFLICTS: Final = 3


class Merged(Struct, frozen=True):
    """A merge that was made."""

    folder: Path
    branch: str
    before: str
    fast_forward: bool

    @property
    def undo(self) -> str:
        """The command that takes it back."""
        return f"git reset --keep {self.before[:SHORT_NAME]}"


async def merge_worktree(runner: ProcessRunner, found: Standing) -> Merged:
    """Fast-forward the base branch to the worktree's, or make a merge commit, in the clean checkout of the base.

    Hooks, merge drivers and signing do not run.

    Raises:
        GitFailure: nothing was changed; the message says what to do.
    """
    base = await _checkout_of_base(found)
    repository = await asyncio.to_thread(repository_of, base.folder)
    if not found.known or repository.head != found.base:
        raise GitFailure(f"{reveal_name(base.folder)} changed meanwhile; try again.")
    reader = GitReader(runner, repository, repository.worktree)
    await reader.prepare()
    await _check_clean(reader, base)
    writer = GitWriter(runner, repository, reader.for_checkout)
    who = await reader.identity()
    commit = found.head if not found.behind else await _merge_commit(writer, found, who)
    name = f"{BRANCHES}{base.branch}"
    with lock_reference(repository.common, name, found.base) as put:
        await writer.run("read-tree", "-m", "-u", found.base, commit)
        put(commit)
    forward = commit == found.head
    why = f"merge {found.worktree.branch}: {'Fast-forward' if forward else 'Merge made by Phoenix'}"
    author = f"{who.get('GIT_COMMITTER_NAME', 'Phoenix')} <{who.get('GIT_COMMITTER_EMAIL', 'phoenix@localhost')}>"
    for folder, reference in ((repository.common, name), (base.own, "HEAD")):
        await asyncio.to_thread(log_change, folder, reference, (found.base, commit), author, why)
    return Merged(base.folder, base.branch, found.base, forward)


async def _checkout_of_base(found: Standing) -> Checkout:
    worktree = found.worktree
    if found.known and found.checked_out != worktree.branch:
        raise GitFailure(
            f"{worktree.branch} is not checked out in its worktree; run `git switch {worktree.branch}` there."
        )
    if not found.ahead and found.known:
        raise GitFailure(f"There is nothing to merge: the base has every commit of {worktree.branch}.")
    if not found.base_branch:
        raise GitFailure(
            f"{worktree.branch} was made of a commit and not of a branch; switch to a branch there and run: "
            f"git merge {worktree.branch}."
        )
    common = (await asyncio.to_thread(repository_of, worktree.folder)).common
    places = await asyncio.to_thread(lambda: list(checkouts(common)))
    base = next((one for one in places if one.branch == found.base_branch), None)
    if base is None:
        raise GitFailure(
            f"{found.base_branch} is checked out nowhere; run `git switch {found.base_branch}` in the repository, then "
            "merge again."
        )
    if (base.own / "index").is_symlink():
        raise GitFailure(f"{reveal_name(base.own / 'index')} is a link, through which nothing is written; remove it.")
    for name, words in UNFINISHED.items():
        if (base.own / name).exists():
            raise GitFailure(f"A {words} is not finished in {reveal_name(base.folder)}; finish or abort it first.")
    return base


async def _check_clean(reader: GitReader, base: Checkout) -> None:
    head = reader.repository.head
    changed = await reader.ask(
        "diff", "--name-only", "--no-ext-diff", "--ignore-submodules=dirty", "-z", head, "--", most=4096
    )
    staged = await reader.ask("diff", "--cached", "--name-only", "--ignore-submodules=all", "-z", head, "--", most=4096)
    if changed is None or staged is None:
        raise GitFailure(f"Git cannot read {reveal_name(base.folder)}; merge there with git.")
    if reader.is_sparse:
        raise GitFailure(f"{reveal_name(base.folder)} is a sparse checkout; merge there with git.")
    names = [*changed.captured.head.split(b"\0"), *staged.captured.head.split(b"\0")]
    if any(names):
        first = reveal_name(os.fsdecode(next(name for name in names if name)))
        raise GitFailure(
            f"{base.branch} in {reveal_name(base.folder)} has uncommitted changes ({first}); commit or stash them, "
            "then merge again."
        )


async def _merge_commit(writer: GitWriter, found: Standing, who: Mapping[str, str]) -> str:
    if not who:
        raise GitFailure("Git does not know your name; run `git config --global user.name NAME`, and user.email.")
    merged = await writer.attempt("merge-tree", "--write-tree", "--name-only", "-z", found.base, found.head)
    if merged.exit_code == 1:
        raise GitFailure(_conflicts(found, merged.captured.head))
    if merged.exit_code != 0:
        raise GitFailure(f"{refusal(merged)} Merging needs git 2.38 or newer.")
    tree = os.fsdecode(merged.captured.head.split(b"\0")[0]).strip()
    message = f"Merge branch '{found.worktree.branch}' into {found.base_branch}"
    return await writer.name("commit-tree", "-p", found.base, "-p", found.head, "-m", message, tree, environment=who)


def _conflicts(found: Standing, output: bytes) -> str:
    """The sentence about conflicts; behind the tree git names each file once, then an empty name."""
    names = list(dict.fromkeys(output.split(b"\0\0")[0].split(b"\0")[1:]))
    shown = ", ".join(clean_line(os.fsdecode(name)) for name in names[:SHOWN_CONFLICTS])
    more = f" and {len(names) - SHOWN_CONFLICTS} more" if len(names) > SHOWN_CONFLICTS else ""
    return (
        f"The branches conflict in {shown}{more}; merge {found.base_branch} into {found.worktree.branch} in the "
        "worktree, commit, then merge again."
    )


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
    if found.worktree.complete and found.known and not found.checked_out:
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
    if repository.own != worktree.own:
        raise GitFailure(f"{reveal_name(worktree.folder)} changed meanwhile; try again.")
    if found.dirty:
        reader = GitReader(runner, repository, repository.worktree)
        await reader.prepare()
        await keep_changes(GitWriter(runner, repository, reader.for_checkout), worktree.name, found.untracked)
    if worktree.origin is not None:
        record = msgspec.json.encode(worktree.origin)
        await asyncio.to_thread(write_file, home_of(repository) / GONE / f"{worktree.name}.json", record)


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
