"""Programs that Phoenix talks with over their streams, checks by language servers, and work that the engine ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tools.displays import EditCheck
from tools.lsp.problems import CheckPlace, EditBegun, LanguageServerView


class EditChecker(Protocol):
    """Tells the new errors of an edit. Nothing of it raises or waits longer than its bound."""

    async def begin(self, place: CheckPlace, path: Path) -> EditBegun | None:
        """Keep a file as it is before an edit; None, at once, where no server would look at it."""
        ...

    async def finish(self, begun: EditBegun, shown: str) -> Sequence[EditCheck]:
        """Checks of the edit that was made, one of each server that has an answer or a reason to have none."""
        ...

    def late(self, conversation_id: str) -> Sequence[EditCheck]:
        """Checks of earlier edits that came since the last question; each is given once."""
        ...

    def forget_conversation(self, conversation_id: str) -> None:
        """Forget a conversation that closes."""
        ...


class LanguageServers(Protocol):
    """The language servers of folders, for front ends."""

    @property
    def notices(self) -> Sequence[str]:
        """Sentences about settings that are left out, once the servers were listed."""
        ...

    async def views(self, place: CheckPlace) -> Sequence[LanguageServerView]:
        """All servers that are known or configured, those that run first."""
        ...

    async def restart(self, place: CheckPlace, name: str) -> None:
        """End a server; its next use starts it again, however often it has ended."""
        ...

    def is_allowed(self, folder: Path) -> bool:
        """True where the user lets servers run what the project in a folder contains."""
        ...

    async def allow(self, folder: Path, *, allowed: bool) -> None:
        """Keep the user's answer about a folder; servers of it end, and start again by it.

        Raises:
            OSError: it cannot be written.
        """
        ...


class Closable(Protocol):
    """Work that ends with the engine."""

    async def close(self) -> None:
        """End it; returns within a few seconds."""
        ...
