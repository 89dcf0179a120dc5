"""Images decoded and previewed by programs of their own, which see one image and nothing else."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from tools.contract import HELPER_SANDBOX, Command, ImageRejected, PreparedImage, ProcessRunner

UNDECODABLE = "This image could not be decoded."


class ImageAnswer(Struct):
    """Common part of every answer: the reason why there is no image, or nothing."""

    error: str = ""


Answer = TypeVar("Answer", bound=ImageAnswer)


async def ask(runner: ProcessRunner, command: Command, kind: type[Answer]) -> tuple[Answer, bytes]:
    """The answer and the bytes behind it.

    Raises:
        ImageRejected: with one sentence for the user.
    """
    try:
        finished = await runner.run(command)
    except OSError as error:
        raise ImageRejected(f"The image could not be read: {error.strerror or error}.") from error
    line, _, content = finished.captured.head.partition(b"\n")
    if finished.exit_code != 0 or finished.captured.dropped:
        raise ImageRejected("This image could not be decoded within the limits of time and memory.")
    try:
        answer = msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as error:
        raise ImageRejected(UNDECODABLE) from error
    if answer.error:
        raise ImageRejected(answer.error)
    return answer, content


MOST_BYTES = 50 * 1024 * 1024
TIMEOUT = 30.0
_ANSWER_BYTES = 8 * 1024 * 1024
_WORKER = Path(__file__).parent / "worker.py"


class _Answer(ImageAnswer):
    media_type: str = ""
    width: int = 0
    height: int = 0
    original_width: int = 0
    original_height: int = 0
    unchanged: bool = False


class ImageDecoder(Struct, frozen=True):
    """Implements `ImageReader`: no image library is ever loaded into this process (FAULTS 51-53)."""

    runner: ProcessRunner

    async def prepare(self, data: bytes) -> PreparedImage:
        """Decode, turn and shrink in a process of its own.

        Raises:
            ImageRejected: with one sentence for the user.
        """
        if not data:
            raise ImageRejected("This image is empty.")
        if len(data) > MOST_BYTES:
            raise ImageRejected(f"This image has {len(data):,} bytes; the limit is {MOST_BYTES:,}.")
        answer, content = await ask(self.runner, _command(data), _Answer)
        return PreparedImage(
            data=data if answer.unchanged else content,
            media_type=answer.media_type,
            width=answer.width,
            height=answer.height,
            original_width=answer.original_width,
            original_height=answer.original_height,
            original_bytes=len(data),
        )


def _command(data: bytes) -> Command:
    return Command(
        argv=(sys.executable, "-I", str(_WORKER)),
        working_dir=_WORKER.parent,
        timeout=TIMEOUT,
        stdin=data,
        keep_head=_ANSWER_BYTES,
        keep_tail=0,
        sandbox=HELPER_SANDBOX,
    )


PREVIEW_TIMEOUT = 20.0
MOST_PREVIEW_BYTES = 16 * 1024 * 1024
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


class _PreviewAnswer(ImageAnswer):
    sizes: tuple[int, ...] = ()


class Previewer(Struct, frozen=True):
    """Runs the image process: no image library is ever loaded into this one."""

    runner: ProcessRunner

    async def make(self, data: bytes, order: PreviewOrder) -> tuple[bytes, ...]:
        """The pieces of a picture.

        Raises:
            ImageRejected: with one sentence for the user.
        """
        answer, content = await ask(self.runner, _preview_command(data, order), _PreviewAnswer)
        pieces = _pieces(answer.sizes, content)
        wanted = order.rows if order.kind is PreviewKind.SIXEL else 1
        if len(pieces) != wanted or (
            order.kind is PreviewKind.PIXELS and len(pieces[0]) != order.width * order.height * _RGBA
        ):
            raise ImageRejected(UNDECODABLE)
        return pieces


def _preview_command(data: bytes, order: PreviewOrder) -> Command:
    size = (str(order.width), str(order.height), str(order.rows))
    return Command(
        argv=(sys.executable, "-I", "-m", "tools.images.preview", order.kind.value, *size, order.background),
        working_dir=Path(__file__).parent,
        timeout=PREVIEW_TIMEOUT,
        stdin=data,
        keep_head=MOST_PREVIEW_BYTES,
        keep_tail=0,
        sandbox=HELPER_SANDBOX,
    )


def _pieces(sizes: tuple[int, ...], content: bytes) -> tuple[bytes, ...]:
    pieces: list[bytes] = []
    for size in sizes:
        pieces.append(content[:size])
        content = content[size:]
    return tuple(pieces)
