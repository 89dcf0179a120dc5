"""End of Phoenix: by a key, by a signal or by a fault, and the messages printed afterwards."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from phoenix_tui.lifecycle.containment import cause_of
from phoenix_tui.lifecycle.crash import CrashReports, crash_note
from phoenix_tui.lifecycle.stop_signals import BY_USER, END_SIGNALS, SIGNAL_EXIT, listen
from phoenix_tui.lifecycle.watchdogs import LoopWatch
from phoenix_tui.terminal import foreground_programs

if TYPE_CHECKING:
    from textual.app import App

    from phoenix_tui.lifecycle.launch import Services
    from phoenix_tui.lifecycle.watchdogs import MemoryLimit
    from phoenix_tui.workspace.startup import Startup
    from tools.process.link import ZygoteLink

log = logging.getLogger(__name__)


class ScreenShutdown:
    """Stores the open state and gives the screen back, once."""

    def __init__(self, app: App[Any], ready: Startup, reports: CrashReports | None) -> None:
        self._app = app
        self._ready = ready
        self._reports = reports
        self._begun = False
        self.wanted = False
        """True once it was requested, even before it begins."""
        self._watch: LoopWatch | None = None
        self.services: Services | None = None
        """Services closed last; None while they open."""
        self.note = ""
        """Message printed after the screen is gone: the command to resume."""
        self.crash_note = ""
        """Message printed instead after a crash."""
        self.last_words = ""
        """Message printed before either, when memory was the reason."""

    def heed_signals(
        self,
        link: ZygoteLink,
        limit: MemoryLimit,
        tell: Callable[[str], None],
        numbers: Sequence[signal.Signals] = END_SIGNALS,
    ) -> None:
        """Let these signals end Phoenix as a key does; a thread and the zygote end a process that handles none."""
        link.disarm()
        listen(asyncio.get_running_loop(), numbers, lambda number: self.begin(SIGNAL_EXIT + number))
        link.arm(numbers)
        self._watch = LoopWatch(link, limit, tell)

    def stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.stop()
            self.last_words = self._watch.last_words

    def begin(self, return_code: int) -> None:
        """Keep the draft, stop every run, close the store, leave the screen."""
        self.wanted = True
        if self._watch is not None:
            self._watch.end_begins()
        # Not exclusive: a second signal would cancel the work of the first one.
        self._app.run_worker(self._finish(return_code), group="finish")

    def report_crash(self, error: Exception) -> bool:
        """Keep a report of the first fault; False for later ones, and while Phoenix ends anyway.

        A screen removed while it is still being built has widgets without their targets.
        """
        if self._begun and logging.getLogger().handlers:  # without any it would go to the terminal
            log.warning("a fault while Phoenix ended", exc_info=error)
        if self.crash_note or self._begun:
            return False
        fault = cause_of(error)
        report = self._reports.write(fault) if self._reports is not None else "none was asked for"
        self.crash_note = crash_note(fault, report, self._way_back())
        return True

    @property
    def under_way(self) -> bool:
        """True once it has begun: nothing may cut it short."""
        return self._begun

    def _way_back(self) -> str:
        ctx = self._ready.ctx
        kept = self.services is not None and self.services.kept
        conversation = ctx.active.conversation if ctx is not None and kept else None
        has_messages = conversation is not None and conversation.record.message_count
        return f"phoenix --resume {conversation.id}" if conversation is not None and has_messages else ""

    async def _finish(self, return_code: int) -> None:
        if self._begun:
            return
        self._begun = True
        try:
            await self._put_away(BY_USER if not return_code else "")
        finally:
            self._app.exit(return_code=return_code)

    async def _put_away(self, reason: str) -> None:
        ctx = self._ready.ctx
        if (borrower := foreground_programs.borrower()) is not None:
            await borrower.end()
        if ctx is not None:
            from phoenix_tui.terminal.lending import end_editors  # noqa: PLC0415 - loaded with the commands

            await end_editors()
        if ctx is None and self._ready.slow_start is not None:
            self._ready.slow_start.keep()
        if ctx is not None:
            from engine.machine.states import is_busy  # noqa: PLC0415 - loaded with the services

            self.note = self._way_back()
            here = ctx.active.conversation
            interrupted = not reason and here is not None and is_busy(here.state)
            await ctx.active.put_away()
            ctx.active.index.stop()
            ctx.environment.close(interrupted=interrupted)
            await ctx.clipboard.close()
        if self.services is not None:
            from phoenix_tui.cli.faults import fault_of  # noqa: PLC0415 - not before the first frame

            try:
                await self.services.engine.close(reason)
            except Exception as error:  # noqa: BLE001 - the edge of the screen, which closes
                self.last_words = fault_of(error).sentence
