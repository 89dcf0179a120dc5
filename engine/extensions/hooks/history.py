"""The newest runs of hooks, for people who look why something happened."""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct, field

from engine.ports.extensions import HookReply

MOST: Final = 20
LONGEST: Final = 16_384
"""Characters that are kept of each input and output."""


class HookRun(Struct, frozen=True):
    """One run of a hook."""

    at: float
    """Unix time of its end."""
    conversation_id: str
    reply: HookReply


class HookHistory(Struct, eq=False):
    """The last runs of this process, newest last."""

    _runs: deque[HookRun] = field(default_factory=lambda: deque[HookRun](maxlen=MOST))

    def add(self, run: HookRun) -> None:
        """Keep a run."""
        self._runs.append(run)

    @property
    def runs(self) -> tuple[HookRun, ...]:
        """All of them, newest first."""
        return tuple(reversed(self._runs))
