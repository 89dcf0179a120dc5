"""Enforcement of a sandbox by this system, and care for the folders that its commands ran in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from tools.contract import Enforcement, SelfStarting


class SandboxProbe(Protocol):
    """Knows what this system can enforce, and looks after the folders that commands ran in."""

    async def enforcement(self) -> Enforcement:
        """Level of sandbox enforcement; the first call starts a program."""
        ...

    async def trouble(self, folder: Path) -> str:
        """Reason why a program outside the sandbox should not start in `folder` now, as a clause; empty for none."""
        ...

    async def sift_changes(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[SelfStarting, ...]:
        """The self-starting files among `changes` that are not as the user's own history has them; others are kept."""
        ...

    async def keep_changes(self, folder: Path, names: Sequence[str]) -> None:
        """Take changed files for the user's own."""
        ...

    async def take_back(self, folder: Path, names: Sequence[str]) -> tuple[str, ...]:
        """Restore changed files as they were; what a command wrote is kept elsewhere.

        Returns sentences: where that is, and which files could not be restored.
        """
        ...


class NoSandbox:
    """A system without a sandbox."""

    async def enforcement(self) -> Enforcement:
        """Enforce nothing."""
        return Enforcement.NONE

    async def trouble(self, folder: Path) -> str:
        """Know of no command."""
        return ""

    async def sift_changes(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[SelfStarting, ...]:
        """Leave all of them to the user."""
        return tuple(changes)

    async def keep_changes(self, folder: Path, names: Sequence[str]) -> None:
        """Keep what is there."""

    async def take_back(self, folder: Path, names: Sequence[str]) -> tuple[str, ...]:
        """Restore nothing: nothing is known of the files."""
        return ("The files stay as they are: it is not known how they were before.",)


NO_SANDBOX: Final = NoSandbox()
