"""The worktrees of a folder's repository, as the doctor reports them; starts no process."""

from __future__ import annotations

from pathlib import Path

from phoenix_tui.cli.findings import Finding, Health
from phoenix_tui.text.trust_text import join_words
from tools.git.checkouts import repository_of, worktrees
from tools.git.failure import GitFailure
from tools.process.programs import find_program
from tools.wording import counted

TOPIC = "git worktree"


def worktree_finding(folder: Path) -> Finding:
    """Finding about git and the worktrees beside the repository of `folder`."""
    if not find_program("git", folder):
        return Finding(TOPIC, Health.NOTE, "no git in a folder of PATH that only you can write; --worktree needs one")
    try:
        found = worktrees(repository_of(folder))
    except GitFailure as failure:
        return Finding(TOPIC, Health.OK, f"not here: {failure}")
    left = [one.name for one in found if not one.complete]
    if left:
        text = f"{join_words(left)} left by a crash; /worktree NAME makes it anew, /worktree remove NAME removes it"
        return Finding(TOPIC, Health.NOTE, text)
    return Finding(TOPIC, Health.OK, f"{counted(len(found), 'worktree')} of this repository")
