"""Files that become part of a system prompt, and the reader of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct


class PromptFileKind(StrEnum):
    """Use of a file in the prompt; the value names it there."""

    BOOTSTRAP = "BOOTSTRAP.md"
    SOUL = "SOUL.md"
    IDENTITY = "IDENTITY.md"
    USER = "USER.md"
    TOOLS = "TOOLS.md"
    INSTRUCTIONS = "AGENTS.md"


class FileOwner(StrEnum):
    """Owner of a file; the value is the word of hooks."""

    USER = "User"
    PROJECT = "Project"
    LOCAL = "Local"
    """The user's own in a project, which its repository does not have."""


class PromptFile(Struct, frozen=True):
    """Text of one file, already within its budget."""

    kind: PromptFileKind
    path: Path
    text: str
    imported_by: Path | None = None
    """The file that names it as `@path`."""
    owner: FileOwner = FileOwner.PROJECT
    scope: tuple[str, ...] = ()
    """Globs of the files that it is for; empty: those of its folder, or all."""


class InstructionFiles(Protocol):
    """Reader of the files of the user and of trusted folders; nothing of an untrusted folder is read."""

    def of(self, folder: Path, window: int = 0) -> tuple[PromptFile, ...]:
        """Files for the system prompt of a conversation in `folder`; `window`: tokens of its model, 0 while unknown."""
        ...

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """Instruction files of the folders between `folder` and a file or folder below it, the outer ones first, then
        those that name the file by a glob.
        """
        ...


class NoInstructions(Struct, frozen=True):
    """No such files."""

    def of(self, folder: Path, window: int = 0) -> tuple[PromptFile, ...]:
        """None."""
        del folder, window
        return ()

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """None."""
        del folder, path
        return ()
