"""Packets between Phoenix and the proxy: those that the other end cannot take yet wait, so that none is lost."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque

MOST_WAITING = 4096
"""Packets that wait; the questions and accounts of all connections are fewer."""


class Outbox:
    """The sending half of a socket of packets, which does not block."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self._waiting: deque[tuple[bytes, list[int]]] = deque()

    @property
    def is_empty(self) -> bool:
        """True where nothing waits."""
        return not self._waiting

    def send(self, packet: bytes, descriptor: int = -1) -> None:
        """Send a packet, with a copy of a descriptor; it waits for those before it.

        Raises:
            OSError: the other end is gone, or takes nothing any more.
        """
        if len(self._waiting) >= MOST_WAITING:
            raise BlockingIOError
        self._waiting.append((packet, [os.dup(descriptor)] if descriptor >= 0 else []))
        if len(self._waiting) == 1:
            self._flush()

    def close(self) -> None:
        """Give up what waits."""
        asyncio.get_running_loop().remove_writer(self.control)
        while self._waiting:
            self._drop_first()

    def _flush(self) -> None:
        while self._waiting:
            packet, descriptors = self._waiting[0]
            try:
                socket.send_fds(self.control, [packet], descriptors)
            except BlockingIOError:
                asyncio.get_running_loop().add_writer(self.control, self._flush_later)
                return
            self._drop_first()
        asyncio.get_running_loop().remove_writer(self.control)

    def _flush_later(self) -> None:
        try:
            self._flush()
        except OSError:  # the other end is gone, which reading tells too
            self.close()

    def _drop_first(self) -> None:
        for descriptor in self._waiting.popleft()[1]:
            os.close(descriptor)
