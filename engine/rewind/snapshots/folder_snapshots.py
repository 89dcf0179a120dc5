"""Snapshot of a folder: the state of every covered path. Kept whole, or as the difference from a whole one."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from engine.ports.files import Coverage, FileChange, FileState, same_state

DELTA_SHARE = 8
"""Divisor: a snapshot is kept as a difference while less than one path in this many differs."""
_STAMP = struct.Struct("<4q")
RACY_NS = 50_000_000
"""A file that changed so shortly before it was read may change again within the same tick of the file system."""


class SeenFile(Struct, frozen=True, array_like=True):
    """State of a path, and the stat that identifies it; an empty stamp is never trusted."""

    state: FileState
    stamp: bytes


class LookAt(Struct, frozen=True):
    """A whole look, in memory."""

    entries: Mapping[bytes, SeenFile]
    left_out: frozenset[bytes]
    coverage: Coverage


class _Kept(Struct, frozen=True, array_like=True):
    """Stored form; with a base, `entries` are the differences from it, None for removed paths."""

    entries: dict[bytes, SeenFile | None]
    left_out: tuple[bytes, ...]
    coverage: Coverage


NOTHING = LookAt({}, frozenset(), Coverage())
_DECODER = msgspec.msgpack.Decoder(_Kept)


def stamp_of(state: os.stat_result) -> bytes:
    """Fields of a stat that change with a file's content; ctime cannot be set back."""
    return _STAMP.pack(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


def encode(look: LookAt, base: LookAt | None) -> bytes | None:
    """The bytes to keep; with a base None where too much differs."""
    entries: dict[bytes, SeenFile | None] = dict(look.entries)
    if base is not None:
        entries = {path: seen for path, seen in look.entries.items() if base.entries.get(path) != seen}
        entries |= {path: None for path in base.entries if path not in look.entries}
        if len(entries) * DELTA_SHARE > len(look.entries):
            return None
    return msgspec.msgpack.encode(_Kept(entries, tuple(look.left_out), look.coverage))


def decode(data: bytes, base: LookAt | None) -> LookAt:
    """Decode the output of `encode`. Raises msgspec.ValidationError or msgspec.DecodeError."""
    kept = _DECODER.decode(data)
    entries = {**(base.entries if base else {}), **kept.entries}
    whole = {path: seen for path, seen in entries.items() if seen is not None}
    return LookAt(whole, frozenset(kept.left_out), kept.coverage)


def difference(before: LookAt, after: LookAt) -> Iterator[FileChange]:
    """Changes between two snapshots, by path. Paths that either left out are no change: they may have existed all the
    time.
    """
    for path in sorted(before.entries.keys() | after.entries.keys()):
        old, new = before.entries.get(path), after.entries.get(path)
        if old is not None and new is not None and old.state is new.state:
            continue
        if same_state(old.state if old else None, new.state if new else None) or (
            old is not None and new is not None and bool(old.stamp) and old.stamp == new.stamp
        ):
            continue
        if (old is None and lies_in(path, before.left_out)) or (new is None and lies_in(path, after.left_out)):
            continue
        yield FileChange(path, old.state if old else None, new.state if new else None)


def lies_in(path: bytes, left_out: frozenset[bytes]) -> bool:
    """True for a path left out by a snapshot, or inside one."""
    while path:
        if path in left_out:
            return True
        path = path.rpartition(b"/")[0]
    return False
