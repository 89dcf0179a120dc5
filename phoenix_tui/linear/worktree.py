"""/worktree in lines: a new conversation in a git worktree of its own."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.worktree import worktree
from phoenix_tui.linear.context import LineCommand

RUNS: Final[dict[str, LineCommand]] = {"worktree": worktree}
