"""The last resort for a Phoenix that received a signal to end and does not: the zygote sees its signals in any case.

Phoenix has faulthandler write its stack into a pipe when a signal comes. That happens in C, inside the signal's
handler, so it needs neither the event loop nor the interpreter's lock.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time

from tools.process.zygote import wire

PATIENCE = 2.0
"""Seconds after a signal until Phoenix must have begun to end."""
STOPPED_BEHIND = 0.3
"""Seconds after a signal until Phoenix receives SIGCONT, in case it stopped itself before it took the signal."""
FINISHING = 9.0
"""Seconds it then has: runs get 2, programs 2.5, snapshots of files 1, and a disk may be slow."""
LOOK_EVERY = 5.0
"""Seconds between two looks at Phoenix's memory."""
READ = 1 << 16
PAGE = os.sysconf("SC_PAGESIZE")


class Deadline:
    """Kills Phoenix when its time is up, or its memory exceeds the limit."""

    def __init__(self, phoenix: socket.socket, pid: int) -> None:
        self._phoenix = phoenix
        self._pid = pid
        self._due: float | None = None
        self._goes_on: float | None = None
        """Monotonic time at which Phoenix receives SIGCONT."""
        self._begun = False
        self._most = 0
        """Bytes of memory; 0: any."""
        self.last_words = b""
        """Message about a Phoenix that was killed for its memory."""

    @property
    def wait(self) -> float | None:
        """Milliseconds until something must be looked at; None while there is nothing."""
        times = [time for time in (self._due, self._goes_on) if time is not None]
        if times:
            return max(0.0, min(times) - time.monotonic()) * 1000
        return LOOK_EVERY * 1000 if self._most else None

    def forward_signal(self, descriptor: int) -> bool:
        """A signal has come to Phoenix: let its thread know; False when the pipe is at its end."""
        with contextlib.suppress(BlockingIOError):
            if not os.read(descriptor, READ):
                return False
        number = wire.ALARMS[descriptor]
        with contextlib.suppress(OSError):
            self._phoenix.send(bytes([number]), socket.MSG_DONTWAIT)
        if self._due is None:
            self._due = time.monotonic() + PATIENCE
            self._goes_on = time.monotonic() + STOPPED_BEHIND
        return True

    def handle_message(self, word: bytes) -> None:
        """Handle a message of Phoenix: it began an orderly end, or it states its memory limit."""
        if word == wire.BEGUN and self._due is not None and not self._begun:
            self._begun, self._due = True, time.monotonic() + FINISHING
        elif word == wire.BOUND:
            (self._most,) = wire.MEMORY.unpack(self._phoenix.recv(wire.MEMORY.size, socket.MSG_WAITALL))

    def keep(self) -> None:
        """Resume Phoenix, or kill it, if it is time."""
        if self._goes_on is not None and time.monotonic() >= self._goes_on:
            self._goes_on = None
            if _is_stopped(self._pid):
                self._send(signal.SIGCONT)
        late = self._due is not None and time.monotonic() >= self._due
        too_large = self._most > 0 and _resident(self._pid) > self._most
        if late or too_large:
            if too_large:
                may = int(self._most / wire.BEYOND) >> 20
                self.last_words = b"phoenix: Stopped: the limit is %d MB. Raise memory_limit in config.toml.\r\n" % may
            self._due, self._most = None, 0
            self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if os.getppid() == self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"T"]
    except OSError:  # gone, or a system without it
        return False


def _resident(pid: int) -> int:
    if sys.platform != "linux":
        return 0
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0
