"""Small pictures of stored images, made by the image process and believed only as far as their sizes fit."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from tools.contract import HELPER_SANDBOX, Command, ImageRejected, ProcessRunner
from tools.images.program import UNDECODABLE, ImageAnswer, ask

TIMEOUT = 20.0
MOST_BYTES = 16 * 1024 * 1024
"""Bytes of an answer: a large photo as sixels has about two million."""
_RGBA = 4


class PreviewKind(StrEnum):
    """Kinds of previews."""

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


class _Answer(ImageAnswer):
    sizes: tuple[int, ...] = ()


class Previewer(Struct, frozen=True):
    """Runs the image process: no image library is ever loaded into this one."""

    runner: ProcessRunner

    async def make(self, data: bytes, order: PreviewOrder) -> tuple[bytes, ...]:
        """The pieces of a picture.

        Raises:
            ImageRejected: with one sentence for the user.
        """
        answer, content = await ask(self.runner, _command(data, order), _Answer)
        pieces = _pieces(answer.sizes, content)
        wanted = order.rows if order.kind is PreviewKind.SIXEL else 1
        if len(pieces) != wanted or (
            order.kind is PreviewKind.PIXELS and len(pieces[0]) != order.width * order.height * _RGBA
        ):
            raise ImageRejected(UNDECODABLE)
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
        sandbox=HELPER_SANDBOX,
    )


def _pieces(sizes: tuple[int, ...], content: bytes) -> tuple[bytes, ...]:
    pieces: list[bytes] = []
    for size in sizes:
        pieces.append(content[:size])
        content = content[size:]
    return tuple(pieces)
