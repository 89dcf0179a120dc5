"""Ledger of what each conversation has read, so that none overwrites what it has not seen (SPEC DEC-22)."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from weakref import WeakValueDictionary

from msgspec import Struct

from tools.failure import ToolFailure


class Version(Struct, frozen=True):
    """One state of a file: its content where it was small enough to hash, and its look from outside."""

    inode: int
    size: int
    modified_ns: int
    digest: bytes = b""

    @classmethod
    def of(cls, state: os.stat_result, content: bytes | None = None) -> Version:
        """The version seen by `fstat`, with the digest of `content` when all of it was read."""
        digest = b"" if content is None else hashlib.blake2b(content, digest_size=16).digest()
        return cls(state.st_ino, state.st_size, state.st_mtime_ns, digest)

    def same_as(self, other: Version) -> bool:
        """True when both have the same content, as far as digests or inode, size and time show."""
        if self.digest and other.digest:
            return self.digest == other.digest
        return (self.inode, self.size, self.modified_ns) == (other.inode, other.size, other.modified_ns)


class _Written(Struct, frozen=True):
    by: str
    """Author in words."""
    version: Version


class ReadLedger:
    """Remembers reads and writes of all conversations of this process, and locks files against each other."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Path], Version] = {}
        self._written: dict[Path, _Written] = {}
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def lock(self, path: Path) -> asyncio.Lock:
        """The lock to hold from reading the old content to having written the new."""
        return self._locks.setdefault(path, asyncio.Lock())

    def note_read(self, conversation_id: str, path: Path, version: Version) -> None:
        """The conversation now knows this version."""
        self._seen[conversation_id, path] = version

    def note_write(self, conversation_id: str, path: Path, version: Version, actor: str = "") -> None:
        """The conversation made this version, and so knows it; `actor` names it to others."""
        self._seen[conversation_id, path] = version
        self._written[path] = _Written(actor or f"conversation {conversation_id}", version)

    def forget(self, conversation_id: str) -> None:
        """Forget the reads of a conversation that closes."""
        # Reads are noted from threads, so the keys are copied in one step.
        for key in list(self._seen):
            if key[0] == conversation_id:
                self._seen.pop(key, None)

    def check(self, conversation_id: str, path: Path, now: Version, name: str) -> None:
        """Make sure the conversation knows the file as it is `now`.

        Raises:
            ToolFailure: never read, or changed since by another, who is named.
        """
        seen = self._seen.get((conversation_id, path))
        if seen is None:
            written = self._written.get(path)
            known = written is not None and written.version.same_as(now)
            by = f", written by {written.by}," if written is not None and known else ""
            raise ToolFailure(f"{name} exists{by} and was not read in this conversation; read it with read_file first.")
        if seen.same_as(now):
            return
        raise ToolFailure(f"{name} was changed by {self._writer(path, now)} since it was last read; read it again.")

    def _writer(self, path: Path, now: Version) -> str:
        written = self._written.get(path)
        if written is None or not written.version.same_as(now):
            return "a command or another program"
        return written.by
