"""Opening: private files, and one clear sentence for every file that cannot be used."""

from __future__ import annotations

import asyncio
import codecs
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.machine.messages import TextBlock
from engine.ports import DatabaseBusy, StorageError
from engine.records import ConversationQuery
from engine.search import SearchQuery
from engine.store import (
    AS_FOUND,
    NOT_SHOWN,
    DamagedDatabase,
    NewerDatabase,
    Store,
    StorePaths,
    open_ephemeral_store,
    open_store,
)
from engine.store import opening as opening_module
from engine.store.migrations import VERSION
from engine.store.opening import WRITER_CACHE_KIB, journal_mode, open_for_reading, open_for_writing
from tests.support.storage import ROOT, move, new_conversation, query, say
from tests.support.waiting import PATIENCE
from tools.contract import PreparedImage
from tools.files.own_files import read_own

NOBODY = 65534
IMAGE = PreparedImage(b"picture", "image/png", 1, 1, 1, 1, 7)


async def written(paths: StorePaths, texts: int = 1) -> str:
    """A closed database with one conversation in it."""
    store = await open_store(paths)
    conversation_id = (await store.create(new_conversation("Kept"), 1.0)).id
    for number in range(texts):
        await store.commit(move(conversation_id, say(f"{number} " + "x" * 2000)))
    await store.close()
    return conversation_id


async def test_what_is_closed_opens_again(paths: StorePaths) -> None:
    conversation_id = await written(paths)
    store = await open_store(paths)
    assert (store.warning, store.path) == ("", paths.database)
    assert [each.id for each in await store.conversations(ConversationQuery())] == [conversation_id]
    await store.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_every_file_and_folder_is_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        paths = StorePaths.under(tmp_path / "a" / "b")
        store = await open_store(paths)
        conversation_id = (await store.create(new_conversation(), 1.0)).id
        await store.add_attachment(conversation_id, IMAGE, 1.0)
        made = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
        modes = {path: path.stat().st_mode & 0o777 for path in made}
        await store.close()
    finally:
        os.umask(before)
    assert {path: mode for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}
    assert len(made) >= 8


async def test_a_newer_database_is_refused_and_stays_byte_for_byte(paths: StorePaths) -> None:
    await written(paths)
    query(paths.database, f"PRAGMA user_version = {VERSION + 1}")
    before = paths.database.read_bytes()
    with pytest.raises(NewerDatabase, match="update Phoenix to open it"):
        await open_store(paths)
    assert paths.database.read_bytes() == before
    assert list(paths.backups.iterdir()) == []


def spoil(kind: str, path: Path) -> None:
    match kind:
        case "empty":
            path.write_bytes(b"")
        case "garbage":
            path.write_bytes(os.urandom(9000))
        case "truncated":
            os.truncate(path, path.stat().st_size // 2)
        case "another program's":
            path.unlink()
            query(path, "CREATE TABLE cookies (name TEXT)")
        case _:
            raise AssertionError(kind)


@pytest.mark.parametrize("kind", ["empty", "garbage", "truncated", "another program's"])
async def test_a_damaged_file_is_named_and_left_and_a_fresh_one_offered(paths: StorePaths, kind: str) -> None:
    await written(paths)
    spoil(kind, paths.database)
    before = paths.database.read_bytes()
    with pytest.raises(DamagedDatabase) as refusal:
        await open_store(paths)
    fresh = paths.database.with_name("phoenix.fresh.db")
    assert str(paths.database) in str(refusal.value)
    assert (refusal.value.path, refusal.value.fresh) == (paths.database, fresh)
    assert not fresh.exists()
    for _ in range(2):
        store = await open_store(paths, fresh_beside=True)
        assert store.path == fresh
        await store.create(new_conversation(), 1.0)
        await store.close()
    assert query(fresh, "SELECT COUNT(*) FROM conversations") == [(2,)]
    assert paths.database.read_bytes() == before


async def test_damage_inside_is_found_after_an_unclean_exit_only(paths: StorePaths) -> None:
    await written(paths, texts=50)
    with paths.database.open("r+b") as file:
        file.seek(paths.database.stat().st_size - 3 * 4096)
        file.write(os.urandom(4096))
    store = await open_store(paths)
    await store.close()
    query(paths.database, "INSERT INTO instances VALUES ('gone', 1, 'x', 1)")
    with pytest.raises(DamagedDatabase, match="is damaged"):
        await open_store(paths)


async def test_a_database_that_is_damaged_while_open_is_reported_as_such(paths: StorePaths) -> None:
    conversation_id = await written(paths, texts=200)
    store = await open_store(paths)
    with paths.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (paths.database.stat().st_size - 4096))
    with pytest.raises(StorageError, match=r"is damaged|cannot be read"):
        await store.messages(conversation_id)
    await store.close()


@pytest.mark.parametrize("moves", [True, False])
async def test_a_database_that_is_taken_away_while_open_is_said_as_such(paths: StorePaths, moves: bool) -> None:
    store = await open_store(paths)
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    if moves:
        paths.database.rename(paths.database.with_name("elsewhere.db"))
    else:
        paths.database.unlink()
    with pytest.raises(StorageError, match="was moved or deleted while Phoenix had it open"):
        await store.commit(move(conversation_id, say("lost")))
    await store.close()


def everything_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def allow_and_remove(folder: Path) -> None:
    for path in (folder, *(each for each in folder.iterdir() if each.is_dir())):
        path.chmod(0o700)
    shutil.rmtree(folder)


def forbid_writing(folder: Path, *, folder_too: bool = True) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if not folder_too:
        folder.chmod(0o777)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Run as a user to whom permissions apply."""
    if os.geteuid() != 0:
        yield
        return
    codecs.lookup("ascii")  # Python's own files may be unreachable below, and a failed look-up is cached forever
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("existing", [False, True])
async def test_a_folder_that_cannot_be_written_gives_a_store_in_memory_with_a_warning(existing: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="phoenix-test-"))
    paths = StorePaths.under(folder)
    if existing:
        await written(paths)
    before = everything_in(folder)
    forbid_writing(folder)
    with as_nobody():
        store = await open_store(paths)
        as_found = "Your conversations are shown as they were at the start. " if existing else ""
        assert store.warning == (
            f"{as_found}The folder {folder} cannot be written, so this session is kept in memory only and is lost"
            " when Phoenix closes; make it writable and restart Phoenix."
        )
        conversation_id = (await store.create(new_conversation(), 1.0)).id
        await store.commit(move(conversation_id, say("Hello")))
        assert (await store.messages(conversation_id))[0].blocks == (TextBlock("Hello"),)
        await store.close()
    assert everything_in(folder) == before
    allow_and_remove(folder)


async def a_store_with_an_image(paths: StorePaths) -> tuple[str, str]:
    store = await open_store(paths)
    conversation_id = (await store.create(new_conversation("Kept"), 1.0)).id
    await store.commit(move(conversation_id, say("a needle of old")))
    image = await store.add_attachment(conversation_id, IMAGE, 1.0)
    await store.close()
    return conversation_id, image.id


@pytest.mark.parametrize("what", ["file", "folder"])
async def test_what_cannot_be_written_is_shown_from_memory_and_stays_as_it_is(what: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="phoenix-test-"))
    paths = StorePaths.under(folder)
    conversation_id, image_id = await a_store_with_an_image(paths)
    content = paths.database.read_bytes()
    forbid_writing(folder, folder_too=what == "folder")
    with as_nobody():
        store = await open_store(paths)
        assert store.warning.startswith(AS_FOUND)
        assert await store.recover_all() == []
        assert [one.title for one in await store.conversations(ConversationQuery())] == ["Kept"]
        assert len((await store.library.search(SearchQuery(("needle",)), seconds=PATIENCE)).hits) == 1
        await store.take(conversation_id)
        await store.commit(move(conversation_id, say("and new")))
        assert len(await store.messages(conversation_id)) == 2
        assert read_own((await store.attachments([image_id]))[image_id].path) == b"picture"
        await store.library.purge(conversation_id)
        await store.close()
    assert paths.database.read_bytes() == content
    assert [one.read_bytes() for one in paths.attachments.iterdir()] == [b"picture"]
    allow_and_remove(folder)


async def test_what_a_dead_process_left_in_a_file_that_cannot_be_written_is_recovered_in_memory() -> None:
    folder = Path(tempfile.mkdtemp(prefix="phoenix-test-"))
    paths = StorePaths.under(folder)
    conversation_id, _ = await a_store_with_an_image(paths)
    query(paths.database, "INSERT INTO instances (id, pid, boot_id, started_at) VALUES ('dead', 1, 'x', 1.0)")
    query(paths.database, "UPDATE conversations SET owner_instance = 'dead' WHERE id = ?", conversation_id)
    forbid_writing(folder)
    with as_nobody():
        store = await open_store(paths)
        assert [one.owner_pid for one in await store.conversations(ConversationQuery())] == [None]
        await store.recover_all()
        await store.close()
    allow_and_remove(folder)


async def test_a_database_too_large_for_memory_gives_an_empty_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening_module, "MOST_IN_MEMORY", 10)
    folder = Path(tempfile.mkdtemp(prefix="phoenix-test-"))
    paths = StorePaths.under(folder)
    await a_store_with_an_image(paths)
    forbid_writing(folder)
    with as_nobody():
        store = await open_store(paths)
        assert store.warning.startswith(NOT_SHOWN)
        assert await store.conversations(ConversationQuery()) == []
        await store.close()
    allow_and_remove(folder)


async def test_a_path_under_a_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=r"^A database file cannot be used"):
        await open_store(StorePaths.under(tmp_path / "file" / "phoenix"))


async def test_an_ephemeral_store_does_everything_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = await open_ephemeral_store()
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(move(conversation_id, say("Hello")))
    attachment = await store.add_attachment(conversation_id, IMAGE, 1.0)
    assert attachment.path.read_bytes() == b"picture"
    assert attachment.path.parent.parent.stat().st_mode & 0o777 == 0o700
    assert len((await store.library.search(SearchQuery(("Hello",)), seconds=PATIENCE)).hits) == 1
    assert (await store.library.fork(conversation_id, "copy", 2.0)).message_count == 1
    assert store.warning == ""
    assert [path for path in everything_in(tmp_path) if path.suffix == ".db"] == []
    await store.close()
    assert everything_in(tmp_path) == []


def test_wal_is_used_only_where_it_is_safe_with_several_processes() -> None:
    assert journal_mode((3, 51, 2)) == "DELETE"
    assert journal_mode((3, 51, 3)) == "WAL"
    assert journal_mode((4, 0, 0)) == "WAL"


async def test_the_journal_in_use_is_the_one_chosen(store: Store) -> None:
    assert query(store.path, "PRAGMA journal_mode") == [(journal_mode().lower(),)]


async def test_a_file_that_another_program_keeps_in_wal_mode_can_be_used_beside_it(paths: StorePaths) -> None:
    conversation_id = await written(paths)
    other = sqlite3.connect(paths.database)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("BEGIN")
    assert other.execute("SELECT COUNT(*) FROM messages").fetchone() == (1,)
    store = await open_store(paths)
    await store.take(conversation_id)
    await store.commit(move(conversation_id, say("beside")))
    await store.close()
    other.close()
    assert query(paths.database, "SELECT COUNT(*) FROM messages") == [(2,)]


CREATOR = """
import asyncio, sys
from pathlib import Path
from engine.store import StorePaths, open_store
from tests.support.storage import new_conversation

async def main():
    store = await open_store(StorePaths.under(Path(sys.argv[1])))
    await store.create(new_conversation(), 1.0)
    await store.close()

sys.stdin.read()
asyncio.run(main())
"""


def test_processes_that_start_at_once_share_one_new_database(paths: StorePaths) -> None:
    starters = [
        subprocess.Popen([sys.executable, "-c", CREATOR, str(paths.database.parent)], cwd=ROOT, stdin=subprocess.PIPE)
        for _ in range(3)
    ]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.close()
    assert [starter.wait(30) for starter in starters] == [0, 0, 0]
    assert query(paths.database, "SELECT COUNT(*) FROM conversations") == [(3,)]
    assert [path.name for path in paths.database.parent.iterdir() if path.is_file()] == ["phoenix.db"]


async def test_closing_waits_for_what_is_queued(paths: StorePaths) -> None:
    store = await open_store(paths)
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    commits = [asyncio.ensure_future(store.commit(move(conversation_id, say(str(number))))) for number in range(20)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*commits)
    assert query(paths.database, "SELECT COUNT(*) FROM messages") == [(20,)]
    with pytest.raises(StorageError, match="closed"):
        await store.conversation(conversation_id)


def test_sqlite_is_new_enough() -> None:
    assert sqlite3.sqlite_version_info >= (3, 38, 0)  # json_each as a table of parameters


async def test_a_busy_database_is_waited_for_and_can_be_given_up(
    paths: StorePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening_module, "BUSY_AT_OPENING", 0.01)
    await (await open_store(paths)).close()
    other = sqlite3.connect(paths.database, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseBusy, match="busy"):
        await open_store(paths, patience=0.0)
    opening = asyncio.create_task(open_store(paths))
    other.execute("ROLLBACK")
    other.close()
    await (await opening).close()


def test_the_connection_that_writes_keeps_few_pages_of_what_it_wrote(tmp_path: Path) -> None:
    paths = StorePaths.under(tmp_path)
    writer = open_for_writing(paths)
    reader = open_for_reading(paths.database)
    try:
        kept = [-int(one.execute("PRAGMA cache_size").fetchone()[0]) for one in (writer, reader)]
    finally:
        writer.close()
        reader.close()
    assert kept[0] == WRITER_CACHE_KIB < kept[1], "2,000 turns filled 8 MB with pages that no later turn asks for"
