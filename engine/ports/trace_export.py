"""Interface of the queue of ended spans that wait to be exported."""

from __future__ import annotations

from typing import Protocol


class Closable(Protocol):
    """Work that ends with the engine."""

    async def close(self) -> None:
        """End it; returns within a few seconds."""
        ...
