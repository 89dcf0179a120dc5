"""Programs that Phoenix talks with over their streams, checks by language servers, and work that the engine ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tools.displays import EditCheck
from tools.lsp.problems import CheckPlace, EditBegun


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


class Closable(Protocol):
    """Work that ends with the engine."""

    async def close(self) -> None:
        """End it; returns within a few seconds."""
        ...
