"""Graphics protocol of this terminal: known from the settings, the environment or its replies."""

from __future__ import annotations

import asyncio
import fcntl
import re
import struct
import termios
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Final

from msgspec import Struct

from phoenix_tui.terminal.driver import QuietDriver

QUESTION: Final = "\x1b[>0q\x1b[c"
"""Queries for its name (XTVERSION) and type (DA1), which every terminal answers: plain CSI, so that none prints it."""
ANSWER_SECONDS: Final = 1.0
"""Seconds for the answer: a slow connection."""
_NAME: Final = re.compile(r"\x1bP>\|([^\x1b]*)")
_ATTRIBUTES: Final = re.compile(r"\x1b\[\?([\d;]*)c")
_KITTY: Final = re.compile(r"kitty\((\d+)\.(\d+)|ghostty ")
_PLACEHOLDERS_SINCE: Final = (0, 28)
"""First version of kitty with images in cells."""
_SIXEL: Final = "4"


class GraphicsProtocol(StrEnum):
    """Ways to show images."""

    KITTY = "kitty"
    SIXEL = "sixel"
    BLOCKS = "blocks"
    OFF = "off"


class CellSize(Struct, frozen=True):
    """The pixels of one cell."""

    width: int = 10
    height: int = 20

    @property
    def aspect(self) -> float:
        return self.height / self.width


def detect_protocol(setting: str, environment: Mapping[str, str]) -> GraphicsProtocol | None:
    """Protocol known without a query; None when the terminal must be asked."""
    if setting in {way.value for way in GraphicsProtocol}:
        return GraphicsProtocol(setting)
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR") or term in {"", "dumb", "linux"}:
        return GraphicsProtocol.OFF
    if "TMUX" in environment or "STY" in environment or term.startswith(("screen", "tmux")):
        return GraphicsProtocol.BLOCKS  # a multiplexer in between hides the terminal's abilities
    if term in {"xterm-kitty", "xterm-ghostty"}:
        return GraphicsProtocol.KITTY
    return None


def protocol_of(replies: str) -> GraphicsProtocol | None:
    """Protocol from a terminal's replies; None until they are complete."""
    attributes = _ATTRIBUTES.search(replies)
    if attributes is None:
        return None
    name = _NAME.search(replies)
    kitty = _KITTY.match(name[1]) if name is not None else None
    if kitty is not None and (kitty[1] is None or (int(kitty[1]), int(kitty[2])) >= _PLACEHOLDERS_SINCE):
        return GraphicsProtocol.KITTY
    return GraphicsProtocol.SIXEL if _SIXEL in attributes[1].split(";")[1:] else GraphicsProtocol.BLOCKS


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
        self._driver.write_own(sequence)

    def overlay(self, mark: str, sequence: str | None) -> None:
        """Draw a sequence at every occurrence of a mark; None ends that."""
        overlays = self._driver.overlays = self._driver.overlays or {}
        if sequence is None:
            overlays.pop(mark, None)
        else:
            overlays[mark] = sequence
