"""The table `attachments` and the files behind it: one row per image and conversation, one file per content."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec

from engine.records import Attachment
from tools.contract import PreparedImage
from tools.files.own_files import read_own, write_file

_NAME: Final = re.compile(r"[0-9a-f]{64}")


def is_name(text: str) -> bool:
    """True when `text` can name one of our files: anything else, from whatever wrote the database, is a path."""
    return _NAME.fullmatch(text) is not None


def digest_of(content: bytes) -> str:
    """The name of the file with this content: its SHA-256 in lower-case hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def contents(folder: Path, name: str) -> bytes | None:
    """The content of one of our files; None when it is gone, is a link or no file, or does not match its name."""
    if not is_name(name):
        return None
    try:
        content = read_own(_place(folder, name))
    except OSError:
        return None
    return content if digest_of(content) == name else None


def _place(folder: Path, name: str) -> Path:
    """Path of one of our files: a store in memory links to those that it cannot write (`open_copy_in_memory`)."""
    place = folder / name
    target = place.readlink() if place.is_symlink() else place
    return target if target.name == name else place


def add(
    connection: sqlite3.Connection, folder: Path, conversation_id: str, image: PreparedImage, at: float
) -> Attachment:
    """Store an image; the same content again gives the same attachment."""
    digest = store_file(folder, image.data)
    connection.execute(
        """INSERT OR IGNORE INTO attachments (id, conversation_id, sha256, path, media_type, width, height, bytes,
            orig_width, orig_height, orig_bytes, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            str(uuid4()),
            conversation_id,
            digest,
            digest,
            image.media_type,
            image.width,
            image.height,
            len(image.data),
            image.original_width,
            image.original_height,
            image.original_bytes,
            at,
        ),
    )
    row = connection.execute(
        "SELECT id FROM attachments WHERE conversation_id = ? AND sha256 = ?", (conversation_id, digest)
    ).fetchone()
    return read(connection, folder, [row["id"]])[row["id"]]


def store_file(folder: Path, content: bytes) -> str:
    """Write the file of this content unless it is there; returns its SHA-256, which is its name."""
    digest = digest_of(content)
    if contents(folder, digest) is None:
        write_file(folder / digest, content)
    return digest


def read(connection: sqlite3.Connection, folder: Path, ids: Sequence[str]) -> dict[str, Attachment]:
    """Attachments by id; unknown ids are missing, and so are those that name no file of ours."""
    rows = connection.execute(
        "SELECT a.* FROM json_each(?) AS wanted JOIN attachments AS a ON a.id = wanted.value",
        (msgspec.json.encode(list(ids)).decode(),),
    ).fetchall()
    return {
        row["id"]: Attachment(
            id=row["id"],
            path=_place(folder, row["path"]),
            media_type=row["media_type"],
            width=row["width"],
            height=row["height"],
            bytes=row["bytes"],
            original_width=row["orig_width"],
            original_height=row["orig_height"],
            original_bytes=row["orig_bytes"],
        )
        for row in rows
        if is_name(row["path"])
    }


def files_of(connection: sqlite3.Connection, conversation_id: str) -> list[str]:
    """The names of a conversation's files."""
    rows = connection.execute("SELECT path FROM attachments WHERE conversation_id = ?", (conversation_id,)).fetchall()
    return [row["path"] for row in rows]


def remove_unshared(connection: sqlite3.Connection, folder: Path, names: Iterable[str]) -> None:
    """Remove files that no row names; runs in one transaction, so that none is added meanwhile."""
    for name in filter(is_name, names):
        if connection.execute("SELECT 1 FROM attachments WHERE path = ?", (name,)).fetchone() is None:
            (folder / name).unlink(missing_ok=True)
