"""Pictures for transcripts: stored images, decoded in the image process, kept while they are visible."""

from __future__ import annotations

import asyncio
import itertools
from base64 import standard_b64encode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from engine.ports import StorageError
from engine.records import Attachment
from phoenix_tui.images.boxes import Box
from phoenix_tui.images.graphics import CellSize, GraphicsProtocol, known_way
from phoenix_tui.images.pictures import BlocksPicture, KittyPicture, Picture, SixelPicture
from tools.contract import ImageRejected
from tools.files.own_files import read_own
from tools.images.previewing import Previewer, PreviewKind, PreviewOrder
from tools.shedding import SheddingOrder, shedding

KEPT: Final = 32
"""Pictures kept; a terminal's own store holds about 320 MB."""
_CHUNK: Final = 4096
"""Base64 in one piece of kitty's protocol."""
_FIRST_MARK: Final = 0xF0000
_MARKS: Final = 0xFFFD
_FIRST_IMAGE: Final = 0x50_0001
"""Away from the small numbers that other programs give their images."""


class CellTerminal(Protocol):
    """Part of the terminal that images need (`images.terminal.ImageTerminal`)."""

    def cell(self) -> CellSize:
        """The pixels of a cell."""
        ...

    async def ask(self) -> GraphicsProtocol:
        """Query the graphics protocol."""
        ...

    def send(self, sequence: str) -> None:
        """Send an image."""
        ...

    def overlay(self, mark: str, sequence: str | None) -> None:
        """Draw a sequence at every occurrence of a mark; None ends that."""
        ...


class AttachmentReader(Protocol):
    """Finds stored images."""

    async def attachments(self, ids: Sequence[str]) -> Sequence[Attachment]:
        """Existing ones by id, in this order. Raises StorageError."""
        ...


class ImageSource:
    """Makes pictures for this terminal; queries it only when the first image becomes visible."""

    def __init__(
        self,
        terminal: CellTerminal | None,
        previewer: Previewer,
        store: AttachmentReader,
        setting: str,
        environment: Mapping[str, str],
    ) -> None:
        self._terminal = terminal
        self._previewer = previewer
        self._store = store
        self._way = known_way(setting, environment)
        self._pictures: OrderedDict[tuple[Box, str], tuple[Picture, tuple[str, ...]]] = OrderedDict()
        self._numbers = itertools.count(_FIRST_IMAGE)
        self._marks = itertools.count()
        self._lock = asyncio.Lock()
        self.forgotten = 0
        """Number of times that all pictures were dropped."""
        shedding.add("pictures", SheddingOrder.LOOKS, self.kept, self.forget)

    def kept(self) -> int:
        """Number of pictures in memory."""
        return len(self._pictures)

    @property
    def is_off(self) -> bool:
        """True when images are not shown at all."""
        return self._way is GraphicsProtocol.OFF

    @property
    def aspect(self) -> float:
        """Height of a cell divided by its width."""
        return self._cell().aspect

    def ready(self, box: Box, background: str) -> Picture | None:
        """A picture that was made already."""
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
            way = await self._known()
            data = await self._stored(box.image_id)
            self._pictures[box, background] = await self._make(way, box, data, background)
            self._drop_oldest()

    def forget(self) -> None:
        """Drop all pictures after another program had the terminal."""
        for _, marks in self._pictures.values():
            self._drop_marks(marks)
        self._pictures.clear()
        self.forgotten += 1

    async def _stored(self, image_id: str) -> bytes:
        try:
            stored = await self._store.attachments([image_id])
            if not stored:
                raise ImageRejected("This image is no longer stored.")
            return await asyncio.to_thread(read_own, stored[0].path)
        except OSError as error:
            raise ImageRejected(f"This image cannot be read: {error.strerror}.") from error
        except StorageError as error:
            raise ImageRejected(str(error)) from error

    async def _known(self) -> GraphicsProtocol:
        if self._way is None:
            self._way = GraphicsProtocol.BLOCKS if self._terminal is None else await self._terminal.ask()
        return GraphicsProtocol.BLOCKS if self._terminal is None else self._way

    async def _make(
        self, way: GraphicsProtocol, box: Box, data: bytes, background: str
    ) -> tuple[Picture, tuple[str, ...]]:
        cell = self._cell()
        width, height = box.columns * cell.width, box.rows * cell.height
        match way:
            case GraphicsProtocol.KITTY:
                order = PreviewOrder(PreviewKind.PNG, width, height)
                (png,) = await self._previewer.make(data, order)
                return self._kitty(box, png), ()
            case GraphicsProtocol.SIXEL:
                order = PreviewOrder(PreviewKind.SIXEL, width, height, box.rows, background)
                rows = await self._previewer.make(data, order)
                return self._sixel(box, rows)
            case GraphicsProtocol.BLOCKS | GraphicsProtocol.OFF:
                order = PreviewOrder(PreviewKind.PIXELS, box.columns, 2 * box.rows)
                (pixels,) = await self._previewer.make(data, order)
                return BlocksPicture(box.columns, pixels), ()

    def _kitty(self, box: Box, png: bytes) -> Picture:
        number = next(self._numbers)
        if self._terminal is not None:
            self._terminal.send(kitty_image(number, box, png))
        return KittyPicture(number, box.columns)

    def _sixel(self, box: Box, rows: Sequence[bytes]) -> tuple[Picture, tuple[str, ...]]:
        marks = tuple(chr(_FIRST_MARK + next(self._marks) % _MARKS) for _ in rows)
        for mark, row in zip(marks, rows, strict=True):
            if self._terminal is not None:
                self._terminal.overlay(mark, f" \x1b7\x1b[{box.columns}D{row.decode('ascii')}\x1b8")
        return SixelPicture(box.columns, marks), marks

    def _drop_oldest(self) -> None:
        while len(self._pictures) > KEPT:
            _, (picture, marks) = self._pictures.popitem(last=False)
            self._drop_marks(marks)
            if isinstance(picture, KittyPicture) and self._terminal is not None:
                self._terminal.send(f"\x1b_Ga=d,d=I,q=2,i={picture.number}\x1b\\")

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
