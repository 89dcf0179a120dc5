"""Answers a question beside a conversation when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.records import SideExchange


@dataclass
class FakeSide:
    """Keeps what it was asked."""

    answer: str = ""
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    earlier: tuple[SideExchange, ...] = ()
    """Exchanges given with the newest question."""
    asked: list[str] = field(default_factory=list[str])
    suggests: str = ""
    suggested: int = 0
    """Number of requests for a suggestion."""

    async def ask(self, question: str, earlier: Sequence[SideExchange] = ()) -> str:
        self.earlier = tuple(earlier)
        self.asked.append(question)
        await self.answered.wait()
        return self.answer

    async def suggestion(self) -> str:
        self.suggested += 1
        return self.suggests
