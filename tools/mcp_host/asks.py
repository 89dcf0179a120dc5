"""Questions of servers that a person answers, or a model for sampling. Each waits for an answer or its own end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Literal

from msgspec import Raw

from tools.mcp_host.limits import MOST_ASKS
from tools.mcp_host.protocol import NOTHING, Ask, AskClosed, Event


class Asks:
    """All open questions of the helper."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self._send = send
        self._open: dict[int, asyncio.Future[Raw]] = {}
        self._server_of: dict[int, str] = {}
        self._by_server: Counter[str] = Counter()
        self._next = 0

    def waiting(self, server: str) -> bool:
        """True while a question of this server is open: its calls then have all the time they need."""
        return self._by_server[server] > 0

    async def ask(self, server: str, kind: Literal["form", "url", "sampling"], params: Raw) -> Raw | None:
        """The answer, or None where this server has too many questions."""
        if self._by_server[server] >= MOST_ASKS:
            return None
        self._next += 1
        number = self._next
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._open[number], self._server_of[number] = answer, server
        self._by_server[server] += 1
        try:
            self._send(Ask(ask=number, server=server, kind=kind, params=params))
            return await answer
        except asyncio.CancelledError:
            self._send(AskClosed(ask=number))
            raise
        finally:
            del self._open[number], self._server_of[number]
            self._by_server[server] -= 1

    def drop(self, server: str) -> None:
        """Withdraw the questions of a server whose connection ended: a call that waits for an answer fails at once."""
        for number, answer in tuple(self._open.items()):
            if self._server_of[number] == server and not answer.done():
                answer.set_result(NOTHING)
                self._send(AskClosed(ask=number))

    def answer(self, number: int, result: Raw) -> bool:
        """Give an answer; False for a question that is closed."""
        waiting = self._open.get(number)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(result)
        return True
