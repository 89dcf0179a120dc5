"""Requests to the image process: one line of JSON comes back, then bytes; nothing else of its output is used."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from tools.contract import Command, ImageRejected, ProcessRunner

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
