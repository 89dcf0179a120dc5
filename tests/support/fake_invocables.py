"""A folder without skills and command files that was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from engine.ports.extensions import Invocable, InvocableCatalogue, WaitingInvocable


class NoInvocables:
    """Implements `phoenix_tui.features.custom_commands.InvocablesApi`."""

    def __init__(self) -> None:
        self.found = InvocableCatalogue()
        self.used: Mapping[str, float] = {}

    def catalogue(self, folder: Path) -> InvocableCatalogue:
        """The catalogue, with nothing in it."""
        return self.found

    async def look(self, folder: Path) -> None:
        """Find nothing."""

    async def switch(self, skill: Invocable, *, on: bool) -> None:
        """Switch nothing: there is none."""

    async def accept(self, folder: Path, waiting: WaitingInvocable) -> None:
        """Accept nothing: there is none."""
