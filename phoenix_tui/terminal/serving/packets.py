"""Packets for the server of a tab, written by a separate thread: a tab that reads nothing blocks no other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final

MOST_WAITING: Final = 24
"""Frames that may wait for the server, as for a terminal (`driver.py`)."""
TO_THE_END: Final = 1.0
"""Seconds for the last writes at the end; a tab that reads needs milliseconds."""


class PacketWriter:
    """Takes whole packets in order; droppable ones are dropped while too many wait."""

    def __init__(self, fileno: int, when_empty: Callable[[], None]) -> None:
        self._fileno = fileno
        self._when_empty = when_empty
        self._packets: SimpleQueue[bytes] = SimpleQueue()
        self._put = self._written = 0
        self._dropped = False
        """True when the listener is to be called once the queue is empty."""
        self._ended: Event | None = None
        # A daemon: a write to an unread pipe never ends.
        self._thread = Thread(target=self._write, name="phoenix-web", daemon=True)
        self._thread.start()

    def put(self, packet: bytes) -> None:
        """Write this packet, however long that takes."""
        self._put += 1
        self._packets.put(packet)

    def offer(self, packet: bytes) -> bool:
        """Write this packet, or drop it if too many wait: `when_empty` is called, on the thread, when none does.

        Returns:
            Whether it will be written.
        """
        if self._put - self._written < MOST_WAITING:
            self.put(packet)
            return True
        self._dropped = True
        if self._put == self._written:  # the last one was written since
            self._tell()
        return False

    def end(self) -> None:
        """Wait until all is written, but not for a server that does not read."""
        self._ended = Event()
        self.put(b"")
        self._ended.wait(TO_THE_END)

    def _write(self) -> None:
        while packet := self._packets.get():
            with contextlib.suppress(OSError):  # the server may be gone
                while packet:
                    packet = packet[os.write(self._fileno, packet) :]
            self._written += 1
            if self._dropped and self._put == self._written:
                self._tell()
        if self._ended is not None:
            self._ended.set()

    def _tell(self) -> None:
        self._dropped = False
        self._when_empty()
