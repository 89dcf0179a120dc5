"""Small pictures of stored images, made by the image process and believed only as far as their sizes fit."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from tools.contract import Command, Finished, ImageRejected, ProcessRunner

TIMEOUT = 20.0
MOST_BYTES = 16 * 1024 * 1024
"""Of an answer: a large photo as sixels has about two."""
_RGBA = 4


class PreviewKind(StrEnum):
    """What is made of an image."""

    PIXELS = "pixels"
    """RGBA, row by row."""
    PNG = "png"
    SIXEL = "sixel"
    """One string for each row of cells."""


class PreviewOrder(Struct, frozen=True):
    """A size in pixels; `rows` of cells and the colour behind it matter to sixels alone."""

    kind: PreviewKind
    width: int
    height: int
    rows: int = 1
    background: str = "000000"


class _Answer(Struct):
    error: str = ""
    sizes: tuple[int, ...] = ()


class Previewer(Struct, frozen=True):
    """Runs the image process: no image library is ever loaded into this one."""

    runner: ProcessRunner

    async def make(self, data: bytes, order: PreviewOrder) -> tuple[bytes, ...]:
        """The pieces of a picture.

        Raises:
            ImageRejected: with one sentence for the user.
        """
        try:
            finished = await self.runner.run(_command(data, order))
        except OSError as error:
            raise ImageRejected(f"The image could not be read: {error.strerror or error}.") from error
        pieces = _pieces(finished)
        wanted = order.rows if order.kind is PreviewKind.SIXEL else 1
        if len(pieces) != wanted or (
            order.kind is PreviewKind.PIXELS and len(pieces[0]) != order.width * order.height * _RGBA
        ):
            raise ImageRejected("This image could not be decoded.")
        return pieces


def _command(data: bytes, order: PreviewOrder) -> Command:
    size = (str(order.width), str(order.height), str(order.rows))
    return Command(
        argv=(sys.executable, "-I", "-m", "tools.images.preview", order.kind.value, *size, order.background),
        working_dir=Path(__file__).parent,
        timeout=TIMEOUT,
        stdin=data,
        keep_head=MOST_BYTES,
        keep_tail=0,
        sandboxed=False,
    )


def _pieces(finished: Finished) -> tuple[bytes, ...]:
    line, _, content = finished.captured.head.partition(b"\n")
    if finished.exit_code != 0 or finished.captured.dropped:
        raise ImageRejected("This image could not be decoded within the limits of time and memory.")
    try:
        answer = msgspec.json.decode(line, type=_Answer)
    except msgspec.DecodeError as error:
        raise ImageRejected("This image could not be decoded.") from error
    if answer.error:
        raise ImageRejected(answer.error)
    pieces: list[bytes] = []
    for size in answer.sizes:
        pieces.append(content[:size])
        content = content[size:]
    return tuple(pieces)
