"""Weakness: what was removed, or is secret, is kept nowhere. SECURITY S11: nothing is kept through a link."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest
from msgspec import Struct
from PIL import Image

from engine.rewind.snapshots.capture import Capture
from engine.rewind.snapshots.snapshot_store import SPARED_SECONDS, Contents, LookAt, LookBook
from engine.rewind.snapshots.walk import Walker
from engine.store import StorePaths, open_store
from engine.store.opening import connect
from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import calls_all, rows, says
from tests.support.left_behind import local_watch
from tests.support.loopback import serve
from tests.support.program import CTRL_Q, program
from tests.support.storage import move, new_conversation, say
from tools.files.protected import begins_as_key, looks_secret
from tools.process.folder_index import stamp_at
from tools.process.starting_files import ChangedAgainError, KeptFile, put_back, read_kept, remove_folders, write_beneath

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


KEY = b"-----BEGIN OPENSSH PRIVATE KEY-----\nMARKER-OF-A-KEY\n"
SECRET = {
    ".env": b"TOKEN=MARKER-OF-A-KEY",
    ".env.production": b"MARKER-OF-A-KEY",
    "prod.env": b"MARKER-OF-A-KEY",
    "deep/er/.ENV": b"MARKER-OF-A-KEY",
    ".ssh/config": b"MARKER-OF-A-KEY",
    "home/.aws/credentials": b"MARKER-OF-A-KEY",
    ".netrc": b"MARKER-OF-A-KEY",
    "id_ed25519": KEY,
    "notes.txt": KEY,
    "tls/server.key": b"MARKER-OF-A-KEY",
    "credentials.toml": b"MARKER-OF-A-KEY",
    "secrets.yaml": b"MARKER-OF-A-KEY",
}
PLAIN = {
    ".env.example": b"TOKEN=",
    "keyboard.py": b"x = 1",
    "environment.md": b"# Words",
    "tests/test_key.py": b"y = 2",
}


def look_at(folder: Path, file: Path) -> tuple[LookAt, Contents]:
    contents = Contents(file)
    root = os.fsencode(folder)
    return Capture(contents).take(root, Walker(root, frozenset(), Event()).walk()), contents


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    for name, content in (SECRET | PLAIN).items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return made


def test_no_content_of_a_file_with_keys_is_copied_and_it_is_named_as_not_kept(folder: Path, tmp_path: Path) -> None:
    look, contents = look_at(folder, tmp_path / "contents.db")
    contents.close()
    kept = {os.fsdecode(path) for path, seen in look.entries.items() if seen.state.kept}
    assert not kept & SECRET.keys()
    assert kept >= PLAIN.keys()
    for file in tmp_path.glob("contents.db*"):
        assert b"MARKER-OF-A-KEY" not in file.read_bytes()


@pytest.mark.parametrize("name", [name for name in SECRET if name != "notes.txt"])
def test_a_name_says_that_it_holds_keys(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", PLAIN)
def test_an_ordinary_name_does_not(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize(
    "content", [KEY, b"\n" + KEY, b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN RSA PRIVATE KEY-----"]
)
def test_the_first_bytes_tell_a_private_key(content: bytes) -> None:
    assert begins_as_key(content)
    assert not begins_as_key(b"-----BEGIN CERTIFICATE-----")


SEEN = 5
"""Times that each state of the folder must have been met."""
MOST_ROUNDS = 20_000
SWAPS = """
import ctypes, sys
exchange = ctypes.CDLL(None).renameat2
words = (-100, f"{sys.argv[1]}/.x".encode(), -100, f"{sys.argv[1]}/link".encode(), 2)
print("no" if exchange(*words) else "swaps", flush=True)
while True:
    exchange(*words)
"""
"""Exchanges a folder and a link, so that both are there at any time."""


class Swapped(Struct, frozen=True):
    """A workspace whose folder `.x` is a link to a folder outside now and then."""

    top: Path
    outside: Path


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Swapped]:
    top, outside = tmp_path / "top", tmp_path / "outside"
    for folder, text in ((top / ".x", "mine"), (outside, "theirs")):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(text, "ascii")
    (outside / "empty").mkdir()
    (top / "link").symlink_to(outside)
    with subprocess.Popen([sys.executable, "-c", SWAPS, str(top)], stdout=subprocess.PIPE) as swapping:
        assert swapping.stdout is not None
        if swapping.stdout.readline() != b"swaps\n":
            swapping.kill()
            pytest.skip("this file system exchanges no names")
        yield Swapped(top, outside)
        swapping.kill()
    assert {path.name for path in outside.iterdir()} == {"a.md", "empty"}
    assert (outside / "a.md").read_text("ascii") == "theirs"


def through_the_link(top: Path) -> bool:
    """True where a file opened by its path is the one outside: the swap is in time."""
    try:
        return (top / ".x/a.md").read_text("ascii") == "theirs"
    except OSError:
        return False


def test_no_content_of_elsewhere_is_kept(swapped: Swapped) -> None:
    mine = theirs = 0
    for _ in range(MOST_ROUNDS):
        theirs += through_the_link(swapped.top)
        if (kept := read_kept(str(swapped.top), ".x/a.md", 100)) is not None:
            assert kept.content == b"mine"
            mine += 1
        if min(mine, theirs) >= SEEN:
            return
    pytest.fail(f"read {mine} times, and {theirs} times through the link")


def test_nothing_is_restored_written_or_removed_elsewhere(swapped: Swapped, tmp_path: Path) -> None:
    top, restored, theirs = str(swapped.top), 0, 0
    for number in range(MOST_ROUNDS):
        theirs += through_the_link(swapped.top)
        known = stamp_at(f"{top}/.x/a.md")
        with suppress(OSError, ChangedAgainError):
            put_back(top, ".x/a.md", KeptFile((0, 0, 0, 0), b"mine"), known, tmp_path / "aside" / str(number))
            restored += 1
        with suppress(OSError):
            write_beneath(top, ".x/b", b"new")
        remove_folders(top, [".x/empty"])
        if min(restored, theirs) >= SEEN:
            break
    assert min(restored, theirs) >= SEEN
    assert {path.read_text("ascii") for path in (tmp_path / "aside").iterdir()} == {"mine"}


def modes(folders: tuple[Path, ...]) -> list[int]:
    """Modes of folders, read beneath those that are closed."""
    found: list[int] = []
    for folder in folders:
        found.append(stat.S_IMODE(folder.stat().st_mode))
        folder.chmod(0o700)
    for folder, mode in reversed(list(zip(folders, found, strict=True))):
        folder.chmod(mode)
    return found


def test_a_closed_folder_is_open_only_while_a_file_in_it_is_restored(tmp_path: Path) -> None:
    closed = (tmp_path / ".x", tmp_path / ".x/y")
    closed[1].mkdir(parents=True)
    for path, mode in zip(closed, (0o311, 0o000), strict=True):
        path.chmod(mode)
    before = KeptFile((0, 0, 0, 0), b"mine")
    assert put_back(str(tmp_path), ".x/y/a.md", before, None, tmp_path / "aside") is not None
    assert modes(closed) == [0o311, 0o000]
    with pytest.raises(ChangedAgainError):
        put_back(str(tmp_path), ".x/y/a.md", before, (0, 0, 0, 1), tmp_path / "aside")
    remove_folders(str(tmp_path), [".x/y"])
    assert modes(closed) == [0o311, 0o000]
    closed[0].chmod(0o700)
    closed[1].chmod(0o700)
    assert (closed[1] / "a.md").read_text("ascii") == "mine"


def test_a_folder_that_is_a_link_by_now_is_said_and_left(tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    top.mkdir()
    outside.mkdir()
    (outside / "a.md").write_text("theirs", "ascii")
    watch, _ = local_watch()
    command = watch.begin(top, (top,))
    (top / ".x").mkdir()
    (top / ".x/a.md").write_text("evil", "ascii")
    changed = watch.end(command).changed
    assert [one.path for one in changed] == [".x/a.md"]
    (top / ".x").rename(top / "y")
    (top / ".x").symlink_to(outside)
    assert watch.take_back(top, changed, tmp_path / "aside") == (".x/a.md could not be restored (Not a directory)",)
    assert (outside / "a.md").read_text("ascii") == "theirs"
    assert not (tmp_path / "aside").exists()
