"""Worktrees in words: the sign of one beside its branch, and its row in a list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from phoenix_tui.text.labels import short_path
from tools.clean import clean_line
from tools.git.repository import FOLDER, PREFIX
from tools.wording import one_line, pluralize

if TYPE_CHECKING:
    from tools.git.ending import Standing

LONGEST_BRANCH: Final = 24
"""Cells of a branch with its sign in the title row."""
INCOMPLETE: Final = "incomplete, left by a crash"
UNKNOWN: Final = "git cannot read it"


def is_in_worktree(folder: Path) -> bool:
    """True for a folder below the worktrees of a repository, by its path alone."""
    return FOLDER in folder.parts[:-2]


def repository_beside(folder: Path) -> Path | None:
    """The repository of a folder below its worktrees, by its path alone; None for any other folder."""
    if not is_in_worktree(folder):
        return None
    at = folder.parts.index(FOLDER)
    return Path(*folder.parts[:at], folder.parts[at + 1])


def place_words(folder: Path, sign: str = "") -> str:
    """A working directory as lists show it: a worktree as its repository, its branch and its sign."""
    if not is_in_worktree(folder):
        return short_path(folder)
    at = folder.parts.index(FOLDER)
    return f"{folder.parts[at + 1]} ({PREFIX}{folder.parts[at + 2]}{f' {sign}' if sign else ''})"


def sign_of(found: Standing) -> str:
    """Commits ahead of the base and behind it, and a star for what is not committed: `+2 -1 *`."""
    ahead = f"+{found.ahead}" if found.ahead else ""
    behind = f"-{found.behind}" if found.behind else ""
    return " ".join(filter(None, (ahead, behind, "*" if found.dirty else "")))


def branch_with(branch: str, sign: str) -> str:
    """A branch and its sign, of which the branch gives way."""
    return f"{one_line(branch, LONGEST_BRANCH - len(sign) - 1)} {sign}" if sign else branch


def facts_of(found: Standing) -> tuple[str, ...]:
    if not found.worktree.complete:
        return (INCOMPLETE,)
    if not found.known:
        return (UNKNOWN,)
    of = f" of {clean_line(found.base_branch)}" if found.base_branch else ""
    commits = f"{found.ahead} ahead{of}, {found.behind} behind"
    return commits, count_uncommitted(found) or "all committed"


def count_uncommitted(found: Standing) -> str:
    changed = f"{pluralize(found.changed, 'changed file')}" if found.changed else ""
    new = f"{pluralize(len(found.untracked), 'untracked file')}" if found.untracked else ""
    return " and ".join(filter(None, (changed, new)))
