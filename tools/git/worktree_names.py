"""Names of the worktrees that Phoenix makes."""

from __future__ import annotations

from typing import Final

FOLDER: Final = ".phoenix-worktrees"
"""Folder beside the repository, where nothing that is committed can stand in its place."""
PREFIX: Final = "phoenix/"
"""Beginning of the name of every branch that is made with a worktree."""
