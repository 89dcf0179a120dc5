"""Submodules that an index names: git looks into each of them, and obeys the settings it finds there."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.files.own_files import read_regular

LARGEST: Final = 256 * 1024 * 1024
"""Bytes of an index that is read: some two million files."""
SIGNATURE: Final = b"DIRC"
HEADER: Final = struct.Struct(">4sII")
SUBMODULE: Final = (0o160000).to_bytes(4, "big")
MODE_OFFSET: Final = 24
NAME_OFFSET: Final = 40
"""Offset of the mode, and the name of the object, in an entry."""
EXTENDED: Final = 0x4000
HASHES: Final = (20, 32)
"""Bytes of an object's name; the configuration says which applies, so both are tried."""


def submodules(git_folder: Path) -> tuple[str, ...]:
    """Relative paths of the submodules in the index of `git_folder`, and in the parts that it is split into."""
    found: dict[str, None] = {}
    for index in (git_folder / "index", *sorted(git_folder.glob("sharedindex.*"))):
        data = read_regular(index, LARGEST, follow=False) or b""
        if SUBMODULE in data:
            found.update(dict.fromkeys(name for size in HASHES for name in _names(data, size)))
    return tuple(name for name in found if bool(name) and {"", ".", "..", ".git"}.isdisjoint(name.split("/")))


def _names(data: bytes, hash_size: int) -> Iterator[str]:
    """Names of submodules, as far as the entries make sense with object names of this size."""
    if len(data) < HEADER.size or data[:4] != SIGNATURE:
        return
    _, version, count = HEADER.unpack_from(data)
    place, before = HEADER.size, b""
    for _ in range(count):
        flags_at = place + NAME_OFFSET + hash_size
        if flags_at + 2 > len(data):
            return
        flags = int.from_bytes(data[flags_at : flags_at + 2], "big")
        name_at = flags_at + (4 if flags & EXTENDED and version > 2 else 2)
        kept = b""
        if version == 4:
            removed, name_at = _number(data, name_at)
            kept = before[: max(len(before) - removed, 0)]
        end = data.find(b"\0", name_at)
        if end < 0:
            return
        before = kept + data[name_at:end]
        if data[place + MODE_OFFSET : place + MODE_OFFSET + 4] == SUBMODULE:
            yield os.fsdecode(before)
        place = end + 1 if version == 4 else place + (end - place + 8) // 8 * 8


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A number of variable length, and where the next byte is."""
    byte = data[place] if place < len(data) else 0
    place += 1
    value = byte & 0x7F
    while byte & 0x80 and place < len(data):
        byte = data[place]
        place += 1
        value = (value + 1 << 7) | byte & 0x7F
    return value, place
