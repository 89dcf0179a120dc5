"""Choices of a host that hold for every turn, and the wait until a turn may begin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from engine.executor.requests import RunCaps
from phoenix_tui.cli.control.fallback import Fallback
from phoenix_tui.cli.structured import StructuredAnswer
from tools.contract import JsonObject


async def _at_once() -> str:
    """Wait for nothing."""
    return ""


@dataclass(slots=True)
class TurnSettings:
    """Choices of the host that hold for every turn."""

    caps: RunCaps
    replay: bool = False
    waits_for_agents: bool = True
    structured: StructuredAnswer | None = None
    """The answer of `--json-schema`; None without that flag."""
    fallback: Fallback | None = None
    notices: tuple[JsonObject, ...] = ()
    """Frames behind the first init frame."""
    ready: Callable[[], Awaitable[str]] = _at_once
    """Waits until a turn may begin; returns why it cannot."""


@dataclass(slots=True)
class TurnStart:
    """The begin of a turn, which an interruption ends before there is a run to stop."""

    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by an interruption of the present turn."""
    _ready: asyncio.Future[str] | None = None

    async def wait(self, ready: Callable[[], Awaitable[str]]) -> str:
        """Reason why the turn cannot begin; empty where it can, or is interrupted.

        What an interruption leaves unready goes on: the next turn waits for the same.
        """
        if self._ready is None or self._ready.done():
            self._ready = asyncio.ensure_future(ready())
        stopped = asyncio.ensure_future(self.interrupted.wait())
        await asyncio.wait((self._ready, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        return self._ready.result() if self._ready.done() else ""

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._ready is not None:
            self._ready.cancel()
