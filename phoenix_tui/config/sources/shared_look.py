"""One look for everybody who asks in the same turn of the event loop: what was just compared is not compared again."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from msgspec import Struct, field

from phoenix_tui.config.sources.source_trust import TrustedSources


class SharedLook(Struct, eq=False):
    """Results that hold until the event loop has its next turn.

    The end is scheduled before a look begins. So whatever runs ahead of it was ready before the look, and what it had
    written was seen; whatever becomes ready during a look or later looks anew. A thread never gets a result: whoever
    starts a program of a project looks in a thread, right before.
    """

    _now: dict[Path, TrustedSources] = field(default_factory=dict[Path, TrustedSources])
    _thread: int = 0
    """The thread of the loop while a turn lasts; 0 outside."""

    def of(self, folder: Path) -> TrustedSources | None:
        """The result of a folder, by the path under which it was asked for; None where it has to be looked for."""
        if not self._thread or threading.get_ident() != self._thread:
            return None
        return self._now.get(folder)

    def begin(self) -> None:
        """Begin a look; without a loop its result is not shared."""
        if self._thread:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._thread = threading.get_ident()
        loop.call_soon(self.forget)

    def keep(self, folder: Path, found: TrustedSources) -> None:
        """Keep the result of a look until the next turn."""
        if threading.get_ident() == self._thread:
            self._now[folder] = found

    def forget(self) -> None:
        """Look anew from here on."""
        self._thread = 0
        self._now.clear()
