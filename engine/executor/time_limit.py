"""Remaining time of a run, without the time that its user takes for an answer."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from engine.executor.inbox import Inbox, InboxEntry, Priority


class TimeLimit(Struct, eq=False):
    """The limit of the run under way; none between runs."""

    _inbox: Inbox | None = None
    _entry: InboxEntry | None = None
    """Entry for the inbox when the time is up."""
    _timer: asyncio.TimerHandle | None = None
    _left: float | None = None
    """Seconds left while it is paused."""

    def begin(self, seconds: float, inbox: Inbox, entry: InboxEntry) -> None:
        """A run begins that may take so long; 0: any time."""
        self.end()
        self._left, self._inbox, self._entry = seconds or None, inbox, entry
        self.go_on()

    def pause(self) -> None:
        """Pause while the user is asked."""
        if self._timer is not None:
            self._left = max(self._timer.when() - asyncio.get_running_loop().time(), 0.0)
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """The answer is there; nothing changes where the time runs, or the run is over."""
        if self._left is not None:
            self._timer = asyncio.get_running_loop().call_later(self._left, self.up)
            self._left = None

    def up(self) -> None:
        """Put the entry of the run into its inbox: the time is up."""
        if self._inbox is not None and self._entry is not None:
            self._inbox.put(Priority.OUTCOME, self._entry)

    def end(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._left = None

    @property
    def left(self) -> float | None:
        """Seconds left while it is paused; None while it runs, or without a limit."""
        return self._left

    @property
    def runs(self) -> bool:
        """True while its time runs."""
        return self._timer is not None
