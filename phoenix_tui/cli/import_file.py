"""The file that `conversations import` is given: read within bounds, since it may come from anybody."""

from __future__ import annotations

import re
import sys
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from phoenix_tui.cli.exits import CommandError
from tools.contract import JsonObject, JsonValue
from tools.files.own_files import read_given

MOST_BYTES: Final = 256 * 1024 * 1024
"""Bytes of the file; 50,000 messages with 100 images come to 150 MB."""
MOST_VALUES: Final = 4_000_000
"""Number of its JSON values: each costs up to 200 bytes of memory, however short it is."""
MOST_NESTED: Final = 8
"""Levels; an export has six."""
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_NOT_SHAPE: Final = bytes(set(range(256)) - set(b"{}[],"))


def read_document(name: str) -> JsonObject:
    """Read the JSON object in the file `name`, or from stdin for `-`.

    Raises:
        CommandError: one sentence that says what is wrong with it.
    """
    try:
        data = sys.stdin.buffer.read(MOST_BYTES + 1) if name == "-" else read_given(Path(name), MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a valid file name"
        raise CommandError(f"{name} cannot be read: {reason}.") from error
    if len(data) > MOST_BYTES:
        raise CommandError(f"{name} is larger than {MOST_BYTES // 2**20} MB, the limit for an import.")
    _check_shape(name, data)
    try:
        document: JsonValue = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandError(f"{name} is not JSON: {str(error).rstrip('.')}.") from error
    if not isinstance(document, dict):
        raise CommandError(f"{name} was not written by `phoenix conversations export --format json`.")
    return document


def _check_shape(name: str, data: bytes) -> None:
    """Refuse a document that would take too much memory or stack, before it is parsed."""
    shape = _without_strings(data).translate(None, _NOT_SHAPE)
    if shape.count(b",") + shape.count(b"{") + shape.count(b"[") > MOST_VALUES:
        raise CommandError(f"{name} holds more than {MOST_VALUES:,} values, the limit for an import.")
    flat = shape.replace(b",", b"").replace(b"{", b"[").replace(b"}", b"]")
    for _ in range(MOST_NESTED):
        flat = flat.replace(b"[]", b"")
    if b"[[" in flat or b"[]" in flat:
        raise CommandError(
            f"{name} is nested too deeply; `phoenix conversations export --format json` never writes that."
        )


def _without_strings(data: bytes) -> bytes:
    """Text between the strings; of too many strings only enough for the count to show it."""
    outside, position = bytearray(), 0
    for match in islice(_STRING.finditer(data), MOST_VALUES):
        outside += data[position : match.start()]
        position = match.end()
    return bytes(outside) + data[position:]
