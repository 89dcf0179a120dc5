"""Merges a worktree's branch into the branch it was made of, in the checkout of that branch."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.clean import clean_line, reveal_name
from tools.contract import ProcessRunner
from tools.git.checkouts import Checkout, checkouts, repository_of
from tools.git.failure import GitFailure
from tools.git.reading import GitReader
from tools.git.references import BRANCHES, locked_reference, log_change
from tools.git.repository import SHORT_NAME
from tools.git.standing import Standing
from tools.git.writing import GitWriter, refusal

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
    with locked_reference(repository.common, name, found.base) as put:
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
