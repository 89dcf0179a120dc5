"""The SQLite file of file contents, by SHA-256, and of snapshots."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from tools.files.own_files import make_folder, open_file

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
        _make(path)
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


def _make(path: Path) -> None:
    """The private folder and the empty private file."""
    make_folder(path.parent)
    os.close(open_file(path, os.O_RDWR))


def _create(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0]:
        return  # another process was first
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("PRAGMA user_version = 1")
