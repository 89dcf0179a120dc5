"""A file is brought up to date as a whole or stays as it was, with a copy beside it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from engine.store import StorePaths, open_store
from engine.store.connection import DamagedDatabase, NewerDatabase
from engine.store.migrations import BASELINE, MIGRATIONS, VERSION, migrate
from engine.store.opening import connect, open_for_writing
from tests.support.storage import ROOT, dump, move, new_conversation, query, say


def add_colours(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE colours (name TEXT PRIMARY KEY)")
    connection.execute("ALTER TABLE conversations ADD COLUMN colour TEXT REFERENCES colours")
    connection.execute("INSERT INTO colours VALUES ('red'), ('blue')")
    connection.execute("UPDATE conversations SET colour = 'red'")


def add_shapes(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE shapes (name TEXT PRIMARY KEY)")
    connection.execute("INSERT INTO shapes SELECT name FROM colours")


def fail(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE half (name TEXT)")
    raise sqlite3.OperationalError("stopped")


FIXTURES = Path(__file__).with_name("fixtures")
LATER = (*MIGRATIONS, add_colours, add_shapes)


async def filled(paths: StorePaths) -> None:
    store = await open_store(paths)
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(move(conversation_id, say("Kept")))
    await store.close()


async def test_an_older_file_is_copied_then_migrated(paths: StorePaths) -> None:
    await filled(paths)
    before = dump(paths.database)
    open_for_writing(paths, LATER).close()
    assert query(paths.database, "PRAGMA user_version") == [(VERSION + 2,)]
    assert query(paths.database, "SELECT colour FROM conversations") == [("red",)]
    (backup,) = paths.backups.iterdir()
    assert dump(backup) == before
    assert query(backup, "PRAGMA user_version") == [(VERSION,)]
    assert backup.stat().st_mode & 0o777 == 0o600
    open_for_writing(paths, LATER).close()
    assert list(paths.backups.iterdir()) == [backup]


async def test_a_migration_that_fails_changes_nothing(paths: StorePaths) -> None:
    await filled(paths)
    before = dump(paths.database)
    with pytest.raises(sqlite3.OperationalError, match="stopped"):
        open_for_writing(paths, (*MIGRATIONS, fail))
    assert dump(paths.database) == before
    assert query(paths.database, "PRAGMA user_version") == [(VERSION,)]


def killed_after(path: Path, statements: int) -> bool:
    """Migrate in a forked-off process that dies after `statements`; False when it lived to the end."""
    pid = os.fork()
    if pid == 0:
        left = statements

        def count(_: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        connection = connect(str(path))
        connection.set_trace_callback(count)
        migrate(connection, LATER)
        os._exit(0)
    return os.waitpid(pid, 0)[1] != 0


def kill_rounds(folder: Path) -> int:
    """Kill a migration after each of its statements; gives how many deaths it took to get through."""
    source = folder / "old.db"
    connection = connect(str(source))
    migrate(connection)
    connection.execute("PRAGMA wal_checkpoint")
    connection.close()
    content = source.read_bytes()
    deaths = 0
    while True:
        victim = folder / f"{deaths}.db"
        victim.write_bytes(content)
        died = killed_after(victim, deaths)
        version = int(str(query(victim, "PRAGMA user_version")[0][0]))
        tables = {row[0] for row in query(victim, "SELECT name FROM sqlite_master WHERE name IN ('colours', 'shapes')")}
        assert tables == [set(), {"colours"}, {"colours", "shapes"}][version - VERSION]
        finished = connect(str(victim))
        migrate(finished, LATER)
        finished.close()
        assert query(victim, "PRAGMA user_version") == [(VERSION + 2,)]
        assert query(victim, "SELECT name FROM shapes ORDER BY name") == [("blue",), ("red",)]
        if not died:
            return deaths
        deaths += 1


def test_a_migration_killed_after_any_statement_is_whole_or_undone(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.engine.store.test_migrations import kill_rounds;"
        " sys.stdout.write(str(kill_rounds(Path(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 12


@pytest.mark.parametrize("commit", ["ba6be456", "da796878"])
def test_a_new_file_has_the_schema_that_earlier_commits_gave_theirs(commit: str) -> None:
    new, old = connect(":memory:"), sqlite3.connect(":memory:")
    migrate(new)
    old.executescript((FIXTURES / f"{commit}.sql").read_text())
    schemas = [
        sorted(map(tuple, one.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")))
        for one in (new, old)
    ]
    assert schemas[0] == schemas[1]
    assert [one.execute("PRAGMA user_version").fetchone()[0] for one in (new, old)] == [BASELINE, BASELINE]


@pytest.mark.parametrize("version", [0, 8, BASELINE - 1])
async def test_a_file_from_before_the_first_release_is_refused_in_one_sentence(paths: StorePaths, version: int) -> None:
    await filled(paths)
    query(paths.database, f"PRAGMA user_version = {version}")
    before = paths.database.read_bytes()
    with pytest.raises(DamagedDatabase) as refused:
        await open_store(paths)
    assert str(refused.value) == (
        f"The database {paths.database} has format {version}, from before the first release; it was not changed. "
        "Replace it with a backup, or move it away to start with a new one."
    )
    assert paths.database.read_bytes() == before


async def test_an_older_phoenix_stops_writing_when_a_newer_one_migrates(paths: StorePaths) -> None:
    store = await open_store(paths)
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    open_for_writing(paths, LATER).close()
    with pytest.raises(NewerDatabase, match="update Phoenix"):
        await store.commit(move(conversation_id, say("x")))
    assert await store.messages(conversation_id) == []
    await store.close()
