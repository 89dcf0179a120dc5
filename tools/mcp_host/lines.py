"""Lines of the protocol: messages as bytes and back; a long one goes through a file in the spill folder."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from tools.mcp_host.limits import LONGEST_LINE, LONGEST_MESSAGE
from tools.mcp_host.protocol import AnyEvent, AnyRequest

M = TypeVar("M")
_SAFE: Final = re.compile(r"[A-Za-z0-9_-]{1,40}\.json")
PREFIX: Final = "message-"


class Elsewhere(Struct, forbid_unknown_fields=True):
    """A line in place of a message that is in this file of the spill folder."""

    in_file: str


class BadLine(ValueError):
    """A line that is no message."""


@cache
def _encoder() -> msgspec.json.Encoder:
    return msgspec.json.Encoder()


def encode(message: object, folder: Path) -> bytes:
    """One line with its end; the reader deletes the file it may name.

    Raises:
        BadLine: the message is larger than any.
        OSError: its file cannot be written.
    """
    line = _encoder().encode(message)
    if len(line) < LONGEST_LINE:
        return line + b"\n"
    if len(line) > LONGEST_MESSAGE:
        raise BadLine(f"a message of {len(line)} bytes")
    descriptor, path = tempfile.mkstemp(".json", PREFIX, folder)  # mode 0600
    with os.fdopen(descriptor, "wb") as file:
        file.write(line)
    return _encoder().encode(Elsewhere(os.path.basename(path))) + b"\n"  # noqa: PTH119 - a name alone


@cache
def _requests() -> msgspec.json.Decoder[AnyRequest]:
    return msgspec.json.Decoder(AnyRequest)


@cache
def _events() -> msgspec.json.Decoder[AnyEvent]:
    return msgspec.json.Decoder(AnyEvent)


def _decode(line: bytes, folder: Path, decoder: msgspec.json.Decoder[M]) -> M:
    try:
        if line.startswith(b'{"in_file"'):
            line = _from_file(msgspec.json.decode(line, type=Elsewhere).in_file, folder)
        return decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError, OSError) as error:
        raise BadLine(str(error)) from error


def _from_file(name: str, folder: Path) -> bytes:
    if not _SAFE.fullmatch(name) or not name.startswith(PREFIX):
        raise BadLine("a file name that is none")
    path = folder / name
    with path.open("rb") as file:
        content = file.read(LONGEST_MESSAGE + 1)
    with contextlib.suppress(OSError):
        path.unlink()
    return content


def decode_request(line: bytes, folder: Path) -> AnyRequest:
    """A request of Phoenix.

    Raises:
        BadLine: it is none.
    """
    return _decode(line, folder, _requests())


def decode_event(line: bytes, folder: Path) -> AnyEvent:
    """A message of the helper.

    Raises:
        BadLine: it is none.
    """
    return _decode(line, folder, _events())
