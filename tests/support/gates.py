"""Pauses of a scripted provider that wait for a test's word instead of for time."""

from __future__ import annotations

import asyncio
from collections import defaultdict


class Gates(defaultdict[float, asyncio.Event]):
    """Every pause waits for its gate, which bears its seconds as a name."""

    def __init__(self) -> None:
        super().__init__(asyncio.Event)

    async def wait(self, seconds: float) -> None:
        """Wait for the gate of this pause."""
        if seconds:
            await self[seconds].wait()
