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


class PromptFile(Struct, frozen=True):
    """Text of one file, already within its budget."""

    kind: PromptFileKind
    path: Path
    text: str
    imported_by: Path | None = None
    """The file that names it as `@path`."""


class InstructionFiles(Protocol):
    """Reader of the files of the user and of trusted folders; nothing of an untrusted folder is read."""

    def of(self, folder: Path) -> tuple[PromptFile, ...]:
        """Files for the system prompt of a conversation in `folder`."""
        ...

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """Instruction files of the folders between `folder` and a file or folder below it, the outer ones first."""
        ...


class NoInstructions(Struct, frozen=True):
    """No such files."""

    def of(self, folder: Path) -> tuple[PromptFile, ...]:
        """None."""
        del folder
        return ()

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """None."""
        del folder, path
        return ()
