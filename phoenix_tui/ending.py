"""How Phoenix ends: by a key, by a signal or by a fault, and the words that are printed afterwards."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from phoenix_tui.crash import crash_note

if TYPE_CHECKING:
    from textual.app import App

    from phoenix_tui.screens.readiness import Readiness
    from phoenix_tui.surface import Services

SIGNAL_EXIT: Final = 128
"""What a shell adds to the number of a signal."""


class Ending:
    """Keeps what is open and gives the screen back, once."""

    def __init__(self, app: App[Any], ready: Readiness, keep_report: Callable[[BaseException], str] | None) -> None:
        self._app = app
        self._ready = ready
        self._keep_report = keep_report
        self._begun = False
        self.services: Services | None = None
        """What is closed last; None while it opens."""
        self.note = ""
        """What is printed after the screen is gone: how to come back."""
        self.crash_note = ""
        """What is printed instead after a crash."""

    def heed_signals(self) -> None:
        """SIGTERM and SIGHUP end Phoenix as a key does."""
        if not self._app.is_headless and sys.platform != "win32":
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, partial(self.begin, SIGNAL_EXIT + number))

    def begin(self, return_code: int) -> None:
        """Keep the draft, stop every run, close the store, leave the screen."""
        # Not exclusive: a second signal would cancel what the first one has begun.
        self._app.run_worker(self._finish(return_code), group="finish")

    def crashed(self, error: Exception) -> bool:
        """Keep a report of the first fault; False for those behind it."""
        if self.crash_note:
            return False
        report = self._keep_report(error) if self._keep_report is not None else "none was asked for"
        self.crash_note = crash_note(error, report, self._way_back())
        return True

    def _way_back(self) -> str:
        bench = self._ready.bench
        kept = self.services is not None and self.services.kept
        conversation = bench.desk.conversation if bench is not None and kept else None
        has_messages = conversation is not None and conversation.record.message_count
        return f"phoenix --resume {conversation.id}" if conversation is not None and has_messages else ""

    async def _finish(self, return_code: int) -> None:
        if self._begun:
            return
        self._begun = True
        bench = self._ready.bench
        if bench is None and self._ready.late is not None:
            self._ready.late.keep()
        if bench is not None:
            self.note = self._way_back()
            await bench.desk.put_away()
            bench.desk.overview.stop()
            bench.around.close()
            await bench.clipboard.close()
        if self.services is not None:
            await self.services.engine.close()
        self._app.exit(return_code=return_code)
