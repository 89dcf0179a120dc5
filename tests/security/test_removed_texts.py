"""Weakness: what was removed for good stays nowhere: not in free pages, journals, the search index or checkpoints."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from threading import Event

import pytest

from engine.checkpoints.book import LookBook
from engine.checkpoints.capture import Capture
from engine.checkpoints.contents import SPARED_SECONDS, Contents
from engine.checkpoints.walk import Walker
from engine.store import StorePaths, open_store
from engine.store.opening import connect
from tests.support.storage import move, new_conversation, say

MARKER = "zyxwvut-REMOVED-qponmlk"
TEXTS = [f"{MARKER} {number} " + "words and more words " * (number * 40) for number in range(30)]


def left(folder: Path, marker: bytes) -> list[str]:
    return [str(file) for file in folder.rglob("*") if file.is_file() and marker in file.read_bytes()]


async def test_a_purged_conversation_leaves_no_text_in_any_file(tmp_path: Path) -> None:
    store = await open_store(StorePaths.under(tmp_path / "phoenix"))
    kept, gone = new_conversation("kept"), new_conversation(f"title {MARKER}")
    for one in (kept, gone):
        await store.create(one, 1000.0)
    for number, text in enumerate(TEXTS):
        await store.commit(move(kept.id, say(f"something else {number}")))
        await store.commit(move(gone.id, say(text)))
    assert left(tmp_path, MARKER.encode())
    await store.library.purge(gone.id)
    assert left(tmp_path, MARKER.encode()) == []
    await store.close()
    assert left(tmp_path, MARKER.encode()) == []


def test_both_databases_overwrite_what_is_deleted(tmp_path: Path) -> None:
    plain = connect(str(tmp_path / "one.db"))
    assert plain.execute("PRAGMA secure_delete").fetchone()[0] == 1
    plain.close()
    contents = Contents(tmp_path / "contents.db")
    assert contents.overwrites
    contents.close()


def test_a_deletion_without_the_setting_leaves_the_text(tmp_path: Path) -> None:
    """The search of these tests finds what is left: with the setting off it is."""
    database = tmp_path / "off.db"
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute("CREATE TABLE t (text)")
    connection.execute("INSERT INTO t VALUES (?)", (MARKER * 1000,))
    connection.execute("DELETE FROM t")
    connection.close()
    assert left(tmp_path, MARKER.encode())


def look(contents: Contents, book: LookBook, folder: Path) -> str:
    root = os.fsencode(folder)
    return book.add(root, Capture(contents).take(root, Walker(root, frozenset(), Event()).walk(), book.newest(root)))


def age(file: Path) -> None:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("UPDATE contents SET stored_at = ?", (time.time() - 2 * SPARED_SECONDS,))
    connection.close()


@pytest.mark.parametrize("size", [10, 20_000])
def test_what_was_in_a_deleted_file_goes_with_the_conversation(tmp_path: Path, size: int) -> None:
    folder, file = tmp_path / "project", tmp_path / "kept" / "contents.db"
    folder.mkdir()
    text = os.urandom(size) + MARKER.encode()
    (folder / "notes.bin").write_bytes(text)
    contents = Contents(file)
    book = LookBook(contents)
    look(contents, book, folder)
    assert contents.size
    (folder / "notes.bin").unlink()
    (folder / "other.txt").write_text("stays")
    look(contents, book, folder)
    age(file)
    book.keep_only([], [])
    contents.close()
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT count(*) FROM contents").fetchone()[0] == 1
    connection.close()
    assert left(file.parent, text[:10]) == []


def test_collection_drops_what_an_earlier_version_kept_of_files_with_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file = tmp_path / "project", tmp_path / "kept" / "contents.db"
    folder.mkdir()
    (folder / ".env").write_text(MARKER)
    contents = Contents(file)
    book = LookBook(contents)
    with monkeypatch.context() as earlier:
        earlier.setattr("engine.checkpoints.capture.looks_secret", lambda _: False)
        old = look(contents, book, folder)
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT count(*) FROM contents").fetchone()[0] == 1
    connection.close()
    age(file)
    book.keep_only([], [old])
    contents.close()
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT count(*) FROM contents").fetchone()[0] == 0
    connection.close()
