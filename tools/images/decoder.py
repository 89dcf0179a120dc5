"""The decoder: hands bytes to the image process and believes nothing but its answer."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct

from tools.contract import HELPER_SANDBOX, Command, ImageRejected, PreparedImage, ProcessRunner
from tools.images.program import ImageAnswer, ask

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
