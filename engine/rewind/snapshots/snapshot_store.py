"""The SQLite file of file contents, by SHA-256, and the snapshots of folders in it.

A snapshot is the state of every covered path, kept whole or as the difference from a whole one. The newest of each
folder stays in memory, others are read when needed.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import msgspec
from msgspec import Struct

from engine.ports.files import Coverage, FileChange, FileState, same_state
from tools.files.own_files import make_folder, open_file
from tools.files.protected import looks_secret

T = TypeVar("T")

SCHEMA = (
    "CREATE TABLE contents (digest BLOB PRIMARY KEY, packed INTEGER NOT NULL, stored_at REAL NOT NULL, data BLOB)",
    """CREATE TABLE looks (id TEXT PRIMARY KEY, folder BLOB NOT NULL, base TEXT NOT NULL DEFAULT '',
        newest INTEGER NOT NULL, data BLOB NOT NULL)""",
    "CREATE INDEX looks_newest ON looks (folder) WHERE newest = 1",
)
BUSY_SECONDS = 10.0
FEW = 200
"""Contents that are packed when they are stored; more of them at once are packed later (measured: 20,000 files
take 0.8 s raw and 3 s packed).
"""
AT_ONCE = 500
"""Contents removed in one transaction: deleted data is overwritten, and other writers must not wait long."""
SPARED_SECONDS = 24 * 3600.0
"""Age in seconds below which contents are never dropped: another process may be about to name them."""


class Contents:
    """One connection, used by one thread. Every method may raise sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        os.close(open_file(path, os.O_RDWR))
        self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        run = self._connection.execute
        # A rollback journal, as for the database: WAL is not safe with several processes below SQLite 3.51.3.
        run("PRAGMA auto_vacuum = INCREMENTAL")  # takes effect in an empty file only
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA temp_store = MEMORY")
        run("PRAGMA secure_delete = ON")
        if not run("PRAGMA user_version").fetchone()[0]:
            self._write(_create)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def put(self, contents: Mapping[bytes, bytes]) -> None:
        """Store these by digest; those that are there count as new again."""
        now, packed = time.time(), len(contents) <= FEW
        rows = [(digest, packed, now, zlib.compress(data, 1) if packed else data) for digest, data in contents.items()]

        def job(connection: sqlite3.Connection) -> None:
            connection.executemany(
                """INSERT INTO contents (digest, packed, stored_at, data) VALUES (?, ?, ?, ?)
                    ON CONFLICT (digest) DO UPDATE SET stored_at = excluded.stored_at""",
                rows,
            )

        self._write(job)

    def get(self, digest: bytes) -> bytes | None:
        """One content, None where it is not kept."""
        row = self._connection.execute("SELECT packed, data FROM contents WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            return None
        return zlib.decompress(row[1]) if row[0] else bytes(row[1])

    def has(self, digests: Iterable[bytes]) -> set[bytes]:
        """Digests of these that are kept."""
        execute = self._connection.execute
        return {one for one in digests if execute("SELECT 1 FROM contents WHERE digest = ?", (one,)).fetchone()}

    def pack_some(self, most: int) -> int:
        """Compress up to `most` contents that were stored raw; returns how many there were."""
        rows = self._connection.execute(
            "SELECT digest, data FROM contents WHERE packed = 0 LIMIT ?", (most,)
        ).fetchall()
        packed = [(zlib.compress(data, 1), digest) for digest, data in rows]
        if packed:
            self._write(
                lambda connection: connection.executemany(
                    "UPDATE contents SET packed = 1, data = ? WHERE digest = ?", packed
                )
            )
        return len(packed)

    def renew(self, digests: Iterable[bytes]) -> None:
        """Count these as new: a rewind needs the contents before a change."""
        rows = [(time.time(), digest) for digest in digests]
        if rows:
            self._write(
                lambda connection: connection.executemany("UPDATE contents SET stored_at = ? WHERE digest = ?", rows)
            )

    def drop_oldest(self, limit: int, but: Container[bytes]) -> int:
        """Remove contents that are not among `but`, oldest first, until `limit` bytes are in use; returns how many."""
        excess = self.size - limit
        gone: list[tuple[bytes]] = []
        for digest, size in self._connection.execute(
            "SELECT digest, length(data) FROM contents ORDER BY stored_at, digest"
        ):
            if excess <= 0:
                break
            if digest not in but:
                gone.append((digest,))
                excess -= size
        for first in range(0, len(gone), AT_ONCE):
            self._remove(gone[first : first + AT_ONCE])
        self._give_back()
        return len(gone)

    def _remove(self, digests: list[tuple[bytes]]) -> None:
        self._write(lambda connection: connection.executemany("DELETE FROM contents WHERE digest = ?", digests))

    def drop_look(self, look_id: str) -> None:
        """Remove one look."""
        self._write(lambda connection: connection.execute("DELETE FROM looks WHERE id = ?", (look_id,)))

    def _give_back(self) -> None:
        """Return free pages to the file system; `execute` would take one step, which is one page."""
        self._connection.executescript("PRAGMA incremental_vacuum")

    def put_look(self, look_id: str, folder: bytes, base: str, data: bytes) -> None:
        """Keep a look; it is the newest of its folder."""

        def job(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE looks SET newest = 0 WHERE folder = ? AND newest = 1", (folder,))
            connection.execute(
                "INSERT INTO looks (id, folder, base, newest, data) VALUES (?, ?, ?, 1, ?)",
                (look_id, folder, base, zlib.compress(data, 1)),
            )

        self._write(job)

    def look(self, look_id: str) -> tuple[str, bytes] | None:
        """The base and the data of a look."""
        row = self._connection.execute("SELECT base, data FROM looks WHERE id = ?", (look_id,)).fetchone()
        return (str(row[0]), zlib.decompress(row[1])) if row else None

    def newest(self, folder: bytes) -> str:
        """The id of the newest look at a folder, empty where there is none."""
        row = self._connection.execute("SELECT id FROM looks WHERE folder = ? AND newest = 1", (folder,)).fetchone()
        return str(row[0]) if row else ""

    def newest_looks(self) -> list[tuple[str, bytes]]:
        """Id and folder of the newest look at every folder, the one that was taken first ahead."""
        rows = self._connection.execute("SELECT id, folder FROM looks WHERE newest = 1 ORDER BY rowid").fetchall()
        return [(str(row[0]), bytes(row[1])) for row in rows]

    def drop(self, wanted: set[bytes], looks: set[str]) -> int:
        """Remove looks and old contents that are not among these; returns the bytes freed."""
        before = time.time() - SPARED_SECONDS

        def job(connection: sqlite3.Connection) -> int:
            for (look_id,) in connection.execute("SELECT id FROM looks").fetchall():
                if look_id not in looks:
                    connection.execute("DELETE FROM looks WHERE id = ?", (look_id,))
            old = connection.execute(
                "SELECT digest, length(data) FROM contents WHERE stored_at < ?", (before,)
            ).fetchall()
            gone = [(digest, size) for digest, size in old if digest not in wanted]
            connection.executemany("DELETE FROM contents WHERE digest = ?", [(digest,) for digest, _ in gone])
            return sum(size for _, size in gone)

        freed = self._write(job)
        self._give_back()
        return freed

    @property
    def size(self) -> int:
        """Bytes in use."""
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
        free = self._connection.execute("PRAGMA freelist_count").fetchone()[0]
        return int(pages - free) * int(self._connection.execute("PRAGMA page_size").fetchone()[0])

    @property
    def overwrites(self) -> bool:
        """True when deleted data is overwritten in the file."""
        return bool(self._connection.execute("PRAGMA secure_delete").fetchone()[0] == 1)

    def _write(self, job: Callable[[sqlite3.Connection], T]) -> T:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            result = job(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return result


def _create(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0]:
        return  # another process was first
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("PRAGMA user_version = 1")


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


FOLDERS_IN_MEMORY = 3
"""Number of folders whose newest snapshot stays in memory, about 300 bytes a file."""
STAMPS_BEHIND = 500
"""Files that may be read once more after a restart, rather than writing a look now."""


class LookBook:
    """Used by one thread. Every method may raise sqlite3.Error."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._newest: dict[bytes, tuple[str, LookAt]] = {}
        self._bases: dict[bytes, tuple[str, LookAt]] = {}
        """The whole look that the newest one is kept as a difference from."""

    def knows(self, root: bytes) -> bool:
        """True when this or another process has a snapshot of the folder."""
        return root in self._newest or bool(self._contents.newest(root))

    def newest(self, root: bytes) -> LookAt:
        """The newest look at a folder, by this process or, where there is none, by another."""
        if root in self._newest:
            return self._newest[root][1]
        look_id = self._contents.newest(root)
        if not look_id:
            return NOTHING
        look = self.load(look_id)
        self._remember(root, look_id, look)
        found = self._contents.look(look_id)
        base_id = found[0] if found else ""
        self._bases[root] = (base_id, self.load(base_id)) if base_id else (look_id, look)
        return look

    def add(self, root: bytes, now: LookAt) -> str:
        """Keep a snapshot, as the difference from the last whole one where that is little; returns its id, an old one
        where nothing has changed.
        """
        if root in self._newest and _same(self._newest[root][1], now):
            look_id = self._newest[root][0]
            self._remember(root, look_id, now)
            return look_id
        new_id = uuid4().hex
        base_id, base = self._bases.get(root, ("", NOTHING))
        data = encode(now, base) if base_id else None
        if data is None:
            base_id, data = "", encode(now, None) or b""
            self._bases[root] = (new_id, now)
        self._contents.put_look(new_id, root, base_id, data)
        self._remember(root, new_id, now)
        return new_id

    def load(self, look_id: str) -> LookAt:
        """One look. Raises LookupError where it is gone, msgspec.DecodeError where it cannot be read."""
        for known_id, look in (*self._newest.values(), *self._bases.values()):
            if known_id == look_id:
                return look
        found = self._contents.look(look_id)
        if found is None:
            raise LookupError(f"the look {look_id} is gone")
        base_id, data = found
        return decode(data, self.load(base_id) if base_id else None)

    def forget(self) -> None:
        """Keep nothing in memory."""
        self._newest.clear()
        self._bases.clear()

    def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Drop contents that neither these nor the newest snapshot of a folder need; returns the bytes freed.

        What an earlier version kept of files that hold keys is needed by nothing.
        """
        contents = self._contents
        kept = {*looks, *(look_id for look_id, root in contents.newest_looks() if Path(os.fsdecode(root)).is_dir())}
        kept |= {base for one in tuple(kept) if (found := contents.look(one)) and (base := found[0])}
        kept |= {look_id for look_id, _ in (*self._newest.values(), *self._bases.values())}
        wanted = {
            state.content
            for change in changes
            for state in (change.before, change.after)
            if state is not None and not looks_secret(os.fsdecode(change.path))
        }
        for one in kept:
            if contents.look(one) is not None:
                seen = self.load(one).entries.items()
                wanted |= {each.state.content for path, each in seen if not looks_secret(os.fsdecode(path))}
        return contents.drop(wanted, kept)

    def shrink(self, limit: int) -> None:
        """Bring the file below `limit`: contents that no newest look needs go first, oldest ahead, then the looks at
        folders that this process does not work in, with their contents.
        """
        contents = self._contents
        if contents.size <= limit:
            return
        aim = limit * 9 // 10  # so that the next turn need not repeat it
        newest = contents.newest_looks()
        needed = {
            look_id: frozenset(seen.state.content for seen in self.load(look_id).entries.values() if seen.state.kept)
            for look_id, _ in newest
        }
        own = {look_id for look_id, _ in self._newest.values()}
        for kept in _fewer_and_fewer([look_id for look_id, _ in newest], own):
            contents.drop_oldest(aim, frozenset[bytes]().union(*(needed[one] for one in kept)))
            for look_id in needed.keys() - set(kept):
                contents.drop_look(look_id)
            if contents.size <= limit:
                return

    def _remember(self, root: bytes, look_id: str, look: LookAt) -> None:
        self._newest.pop(root, None)
        self._newest[root] = (look_id, look)
        while len(self._newest) > FOLDERS_IN_MEMORY:
            oldest = next(iter(self._newest))
            del self._newest[oldest]
            self._bases.pop(oldest, None)


def _fewer_and_fewer(looks: Sequence[str], own: Collection[str]) -> Iterator[list[str]]:
    """All looks, then without the oldest that is not `own`, and so on."""
    kept = list(looks)
    yield kept
    for one in looks:
        if one not in own:
            kept = [each for each in kept if each != one]
            yield kept


def _same(before: LookAt, now: LookAt) -> bool:
    """True when a snapshot adds nothing: the same states, and about the same stamps to know them by."""
    if before.left_out != now.left_out or before.entries.keys() != now.entries.keys():
        return False
    new = [(before.entries[path], seen) for path, seen in now.entries.items() if before.entries[path] is not seen]
    return len(new) <= STAMPS_BEHIND and all(old.state == seen.state for old, seen in new)
