"""Instruction files whose text a test sets."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from engine.ports.extensions import FileOwner, PromptFile, PromptFileKind


class FixedInstructions(Struct, frozen=True):
    """One AGENTS.md for every folder."""

    text: str
    path: Path = Path("/work/AGENTS.md")

    def of(self, folder: Path, window: int = 0) -> tuple[PromptFile, ...]:
        """The file."""
        del folder, window
        return (PromptFile(PromptFileKind.INSTRUCTIONS, self.path, self.text, owner=FileOwner.USER),)

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """None."""
        del folder, path
        return ()
