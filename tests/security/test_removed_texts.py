"""Weakness: what was removed for good stays nowhere: not in free pages, journals, the search index or checkpoints."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from pathlib import Path
from threading import Event

import pytest
from PIL import Image

from engine.rewind.snapshots.capture import Capture
from engine.rewind.snapshots.snapshot_store import SPARED_SECONDS, Contents, LookBook
from engine.rewind.snapshots.walk import Walker
from engine.store import StorePaths, open_store
from engine.store.opening import connect
from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls_all, rows, says
from tests.support.loopback import serve
from tests.support.program import CTRL_Q, program
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
        earlier.setattr("engine.rewind.snapshots.capture.looks_secret", lambda _: False)
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


def rows_of(file: Path) -> str:
    """All texts of a database, what is packed in it unpacked."""
    connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    texts = [repr(row) for row in connection.execute("SELECT packed, data FROM contents") if not row[0]]
    packed = connection.execute("SELECT data FROM contents WHERE packed = 1")
    texts += [zlib.decompress(row[0]).decode("utf-8", "replace") for row in packed]
    connection.close()
    return "\n".join(texts)


async def test_what_is_removed_for_good_in_the_product_is_in_no_file_of_it(tmp_path: Path) -> None:
    """Texts, results, titles, an image, a draft, the index, spilled output and what is kept for debugging."""
    image = tmp_path / "image.png"
    Image.frombytes("RGB", (60, 60), os.urandom(60 * 60 * 3)).save(image)
    agent = calls_all(
        ("bash", "toolu_1", {"command": f"echo {MARKER}; seq 1 60000; echo {MARKER} > made.txt"}),
        ("bash", "toolu_2", {"command": f"rm made.txt; : {MARKER}"}),
    )
    async with serve(agent, says(f"{MARKER} said"), says("the answer"), says(f"other than {MARKER[:3]}")) as server:
        phoenix = with_claude(tmp_path, server.url)
        ran = await phoenix.run(
            "-p", "--output-format", "json", "--permission-mode", "auto", "-i", str(image), f"{MARKER} first"
        )
        gone = ran.json["session_id"]
        async with program(phoenix, "--resume", gone) as running:
            await running.ready()
            await running.send("once more")
            await running.shows("the answer")
            running.type(f"{MARKER} draft")
            await running.shows(f"{MARKER} draft")
            await running.until(lambda: draft_of(phoenix, gone))
            running.type(CTRL_Q)
            await running.exit_code()
        stays = (await phoenix.run("-p", "--output-format", "json", "something else")).json["session_id"]
    before = {Path(name).relative_to(phoenix.home).parts[0] for name in left(phoenix.home, MARKER.encode())}
    assert {"phoenix.db", "outputs", "logs"} <= before
    pictures = [path.read_bytes()[-400:] for path in (phoenix.home / "attachments").iterdir()]
    for flags in ((), ("--permanently",)):
        assert (await phoenix.run("conversations", "delete", *flags, gone)).code == 0
    assert left(phoenix.home, MARKER.encode()) == []
    assert pictures
    assert [left(phoenix.home, picture) for picture in pictures] == [[]] * len(pictures)
    assert MARKER not in rows_of(phoenix.home / "checkpoints" / "contents.db")
    shown = await phoenix.run("conversations", "show", stays)
    assert "something else" in shown.out


def draft_of(phoenix: Phoenix, conversation_id: str) -> bool:
    return any(
        MARKER in str(row) for row in rows(phoenix, f"SELECT * FROM conversations WHERE id = '{conversation_id}'")
    )
