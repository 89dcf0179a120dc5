"""Terminal interface for images, through Phoenix's own driver."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from contextlib import suppress

from phoenix_tui.images.graphics import ANSWER_SECONDS, QUESTION, CellSize, GraphicsProtocol, protocol_of
from phoenix_tui.terminal.driver import QuietDriver


class ImageTerminal:
    """Queries the terminal's abilities, and sends images that cells cannot contain."""

    def __init__(self, driver: QuietDriver) -> None:
        self._driver = driver

    def cell(self) -> CellSize:
        """The pixels of a cell; an estimate where the terminal does not report them."""
        with suppress(OSError):
            answer = fcntl.ioctl(self._driver.fileno, termios.TIOCGWINSZ, b"\0" * 8)
            rows, columns, width, height = struct.unpack("HHHH", answer)
            if rows and columns and width >= columns and height >= rows:
                return CellSize(max(width // columns, 1), max(height // rows, 1))
        return CellSize()

    async def ask(self) -> GraphicsProtocol:
        """Query the terminal's protocol; half blocks without an answer."""
        replies: list[str] = []
        told: asyncio.Future[GraphicsProtocol] = asyncio.get_running_loop().create_future()

        def listen(reply: str) -> None:
            replies.append(reply)
            way = protocol_of("".join(replies))
            if way is not None and not told.done():
                told.set_result(way)

        self._driver.replies.append(listen)
        try:
            self._driver.write_own(QUESTION)
            async with asyncio.timeout(ANSWER_SECONDS):
                return await told
        except TimeoutError:
            return GraphicsProtocol.BLOCKS
        finally:
            self._driver.replies.remove(listen)

    def send(self, sequence: str) -> None:
        """Send an image that cells will name."""
        self._driver.write_own(sequence)

    def overlay(self, mark: str, sequence: str | None) -> None:
        """Draw a sequence at every occurrence of a mark; None ends that."""
        overlays = self._driver.overlays = self._driver.overlays or {}
        if sequence is None:
            overlays.pop(mark, None)
        else:
            overlays[mark] = sequence
