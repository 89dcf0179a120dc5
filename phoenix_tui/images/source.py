"""Pictures for transcripts: the terminal's graphics protocol, and images decoded elsewhere, drawn as cells of rows."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import re
import struct
import termios
from base64 import standard_b64encode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from math import ceil
from typing import Final, Protocol

from msgspec import Struct
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from engine.ports import StorageError
from engine.records import Attachment
from phoenix_tui.terminal.driver import QuietDriver
from phoenix_tui.terminal.output import PLACEHOLDER
from tools.contract import ImageRejected
from tools.files.own_files import read_own
from tools.images.decoder import Previewer, PreviewKind, PreviewOrder
from tools.shedding import SheddingOrder, shedding

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


_HALF: Final = "▀"
_RGBA: Final = 4
MARKS: Final = "".join(
    map(
        chr,
        (
            *(0x305, 0x30D, 0x30E, 0x310, 0x312, 0x33D, 0x33E, 0x33F, 0x346, 0x34A, 0x34B, 0x34C, 0x350, 0x351, 0x352),
            *(0x357, 0x35B, *range(0x363, 0x370), *range(0x483, 0x488), *range(0x592, 0x596), 0x597, 0x598, 0x599),
            *(*range(0x59C, 0x5A2), 0x5A8, 0x5A9, 0x5AB, 0x5AC, 0x5AF, 0x5C4, *range(0x610, 0x618)),
            *(*range(0x657, 0x65C), 0x65D, 0x65E, *range(0x6D6, 0x6DD), *range(0x6DF, 0x6E3), 0x6E4, 0x6E7, 0x6E8),
            *(0x6EB, 0x6EC, 0x730, 0x732, 0x733, 0x735, 0x736, 0x73A, 0x73D, 0x73F, 0x740, 0x741, 0x743, 0x745),
            *(0x747, 0x749, 0x74A, 0x7EB, 0x7EC, 0x7ED, 0x7EE, 0x7EF, 0x7F0, 0x7F1, 0x7F3),
        ),
    )
)
"""Diacritics; the n-th means row or column n (kitty's rowcolumn-diacritics.txt, its beginning)."""


class Picture(Protocol):
    """An image of some rows."""

    def cells(self, row: int, background: Color) -> Sequence[Segment]:
        """The cells of one row."""
        ...


class BlocksPicture(Struct, frozen=True):
    """Two pixels a cell, one above the other."""

    columns: int
    pixels: bytes
    """RGBA, `columns` wide."""

    def cells(self, row: int, background: Color) -> Sequence[Segment]:
        """The cells of one row; equal neighbours share a segment."""
        wide = self.columns * _RGBA
        upper = self.pixels[2 * row * wide : (2 * row + 1) * wide]
        lower = self.pixels[(2 * row + 1) * wide : (2 * row + 2) * wide]
        made: list[Segment] = []
        start = 0
        for place in range(_RGBA, wide + 1, _RGBA):
            same = place < wide and _same(upper, start, place) and _same(lower, start, place)
            if not same:
                made.append(_halves(_at(upper, start, background), _at(lower, start, background), place - start))
                start = place
        return made


def _same(pixels: bytes, one: int, other: int) -> bool:
    return pixels[one : one + _RGBA] == pixels[other : other + _RGBA]


def _at(pixels: bytes, place: int, background: Color) -> tuple[int, int, int]:
    """A pixel as it looks on the background."""
    red, green, blue, alpha = pixels[place : place + _RGBA]
    if alpha == 255:
        return red, green, blue
    share = alpha / 255
    return (
        round(red * share + background.r * (1 - share)),
        round(green * share + background.g * (1 - share)),
        round(blue * share + background.b * (1 - share)),
    )


def _halves(upper: tuple[int, int, int], lower: tuple[int, int, int], bytes_wide: int) -> Segment:
    count = bytes_wide // _RGBA
    ground = RichColor.from_rgb(*lower)
    if upper == lower:
        return Segment(" " * count, Style(bgcolor=ground))
    return Segment(_HALF * count, Style(color=RichColor.from_rgb(*upper), bgcolor=ground))


class KittyPicture(Struct, frozen=True):
    """An image the terminal holds; its cells are text, so they scroll, are cut and repainted like text."""

    number: int
    """Image id of up to 24 bits: the colour of its cells."""
    columns: int

    def cells(self, row: int, background: Color) -> Sequence[Segment]:
        """The cells of one row."""
        text = "".join(f"{PLACEHOLDER}{MARKS[row]}{MARKS[column]}" for column in range(self.columns))
        colour = RichColor.from_rgb(self.number >> 16, self.number >> 8 & 255, self.number & 255)
        return [Segment(text, Style(color=colour, bgcolor=background.rich_color))]


class SixelPicture(Struct, frozen=True):
    """Blank cells; behind the last one of each row the driver draws that row's sixels over them."""

    columns: int
    marks: tuple[str, ...]
    """Characters that the driver replaces, one for each row."""

    def cells(self, row: int, background: Color) -> Sequence[Segment]:
        """The cells of one row."""
        style = Style(bgcolor=background.rich_color)
        return [Segment(" " * (self.columns - 1), style), Segment(self.marks[row], style)]


SMALL: Final = (48, 12)
LARGE: Final = (100, 36)
"""Columns and rows at most: as it comes, and once it was opened."""
PIXELS_PER_COLUMN: Final = 6
"""A small image is not blown up beyond this."""


class Box(Struct, frozen=True):
    """One stored image at a size in cells."""

    image_id: str
    columns: int
    rows: int


def box_of(image_id: str, size: tuple[int, int], room: int, aspect: float, *, large: bool) -> Box:
    """The cells for an image of `size` pixels in `room` columns; a cell is `aspect` times taller than wide."""
    width, height = max(size[0], 1), max(size[1], 1)
    most_columns, most_rows = LARGE if large else SMALL
    scale = min(
        min(most_columns, room) / width,
        most_rows * aspect / height,
        1 / PIXELS_PER_COLUMN,
    )
    columns = max(round(width * scale), 1)
    return Box(image_id, columns, max(min(ceil(height * scale / aspect - 0.25), most_rows), 1))


KEPT: Final = 32
"""Pictures kept; a terminal's own store holds about 320 MB."""
_CHUNK: Final = 4096
"""Base64 in one piece of kitty's protocol."""
_FIRST_MARK: Final = 0xF0000
_MARKS: Final = 0xFFFD
_FIRST_IMAGE: Final = 0x50_0001
"""Away from the small numbers that other programs give their images."""


class AttachmentReader(Protocol):
    """Finds stored images."""

    async def attachments(self, ids: Sequence[str]) -> Sequence[Attachment]:
        """Existing ones by id, in this order. Raises StorageError."""
        ...


class ImageSource:
    """Makes pictures for this terminal; queries it only when the first image becomes visible."""

    def __init__(
        self,
        terminal: ImageTerminal | None,
        previewer: Previewer,
        store: AttachmentReader,
        setting: str,
        environment: Mapping[str, str],
    ) -> None:
        self._terminal = terminal
        self._previewer = previewer
        self._store = store
        self._way = detect_protocol(setting, environment)
        self._pictures: OrderedDict[tuple[Box, str], tuple[Picture, tuple[str, ...]]] = OrderedDict()
        self._numbers = itertools.count(_FIRST_IMAGE)
        self._marks = itertools.count()
        self._lock = asyncio.Lock()
        self.forgotten = 0
        """Number of times that all pictures were dropped."""
        shedding.add("pictures", SheddingOrder.LOOKS, self.count_kept, self.forget)

    def count_kept(self) -> int:
        return len(self._pictures)

    @property
    def is_off(self) -> bool:
        return self._way is GraphicsProtocol.OFF

    @property
    def aspect(self) -> float:
        return self._cell().aspect

    def ready(self, box: Box, background: str) -> Picture | None:
        found = self._pictures.get((box, background))
        if found is None:
            return None
        self._pictures.move_to_end((box, background))
        return found[0]

    async def load(self, box: Box, background: str) -> None:
        """Make a picture; `background` is the colour behind it, six hexadecimal digits.

        Raises:
            ImageRejected: why it cannot be shown, in one sentence.
        """
        async with self._lock:
            if (box, background) in self._pictures:
                return
            if self._way is None:
                self._way = GraphicsProtocol.BLOCKS if self._terminal is None else await self._terminal.ask()
            way = GraphicsProtocol.BLOCKS if self._terminal is None else self._way
            data = await self._read_stored(box.image_id)
            self._pictures[box, background] = await self._make(way, box, data, background)
            while len(self._pictures) > KEPT:
                _, (picture, marks) = self._pictures.popitem(last=False)
                self._drop_marks(marks)
                if isinstance(picture, KittyPicture) and self._terminal is not None:
                    self._terminal.send(f"\x1b_Ga=d,d=I,q=2,i={picture.number}\x1b\\")

    def forget(self) -> None:
        """Drop all pictures after another program had the terminal."""
        for _, marks in self._pictures.values():
            self._drop_marks(marks)
        self._pictures.clear()
        self.forgotten += 1

    async def _read_stored(self, image_id: str) -> bytes:
        try:
            stored = await self._store.attachments([image_id])
            if not stored:
                raise ImageRejected("This image is no longer stored.")
            return await asyncio.to_thread(read_own, stored[0].path)
        except OSError as error:
            raise ImageRejected(f"This image cannot be read: {error.strerror}.") from error
        except StorageError as error:
            raise ImageRejected(str(error)) from error

    async def _make(
        self, way: GraphicsProtocol, box: Box, data: bytes, background: str
    ) -> tuple[Picture, tuple[str, ...]]:
        cell = self._cell()
        width, height = box.columns * cell.width, box.rows * cell.height
        match way:
            case GraphicsProtocol.KITTY:
                order = PreviewOrder(PreviewKind.PNG, width, height)
                (png,) = await self._previewer.make(data, order)
                number = next(self._numbers)
                if self._terminal is not None:
                    self._terminal.send(kitty_image(number, box, png))
                return KittyPicture(number, box.columns), ()
            case GraphicsProtocol.SIXEL:
                order = PreviewOrder(PreviewKind.SIXEL, width, height, box.rows, background)
                rows = await self._previewer.make(data, order)
                marks = tuple(chr(_FIRST_MARK + next(self._marks) % _MARKS) for _ in rows)
                for mark, row in zip(marks, rows, strict=True):
                    if self._terminal is not None:
                        self._terminal.overlay(mark, f" \x1b7\x1b[{box.columns}D{row.decode('ascii')}\x1b8")
                return SixelPicture(box.columns, marks), marks
            case GraphicsProtocol.BLOCKS | GraphicsProtocol.OFF:
                order = PreviewOrder(PreviewKind.PIXELS, box.columns, 2 * box.rows)
                (pixels,) = await self._previewer.make(data, order)
                return BlocksPicture(box.columns, pixels), ()

    def _drop_marks(self, marks: Sequence[str]) -> None:
        for mark in marks:
            if self._terminal is not None:
                self._terminal.overlay(mark, None)

    def _cell(self) -> CellSize:
        return CellSize() if self._terminal is None else self._terminal.cell()


def kitty_image(number: int, box: Box, png: bytes) -> str:
    """Hand an image over and let it be placed by cells; the terminal answers nothing."""
    content = standard_b64encode(png).decode("ascii")
    chunks = [content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK)]
    parts: list[str] = []
    for place, chunk in enumerate(chunks):
        first = f"a=T,U=1,q=2,f=100,i={number},c={box.columns},r={box.rows}," if place == 0 else ""
        parts.append(f"\x1b_G{first}m={int(place < len(chunks) - 1)};{chunk}\x1b\\")
    return "".join(parts)
