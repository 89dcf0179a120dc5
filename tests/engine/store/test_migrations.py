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
from engine.store.faults import NewerDatabase
from engine.store.migrations import MIGRATIONS, SCRIPT, VERSION, migrate
from engine.store.opening import connect, open_for_writing
from tests.schema import script
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


BEFORE_CALLS = 9
"""The version before each model call had a row."""
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


def test_a_new_file_is_in_one_step_what_all_migrations_make_of_it() -> None:
    assert SCRIPT.read_text("utf-8") == script(), "make schema writes the script anew"
    at_once, step_by_step = connect(":memory:"), connect(":memory:")
    migrate(at_once)
    migrate(step_by_step, list(MIGRATIONS))
    counter = "INSERT INTO \"sqlite_sequence\" VALUES('events',0);"  # as good as none
    assert sorted(at_once.iterdump()) == sorted(line for line in step_by_step.iterdump() if line != counter)
    for pragma in ("user_version", "application_id"):
        (value,), (expected,) = (one.execute(f"PRAGMA {pragma}").fetchone() for one in (at_once, step_by_step))
        assert value == expected


async def test_an_older_phoenix_stops_writing_when_a_newer_one_migrates(paths: StorePaths) -> None:
    store = await open_store(paths)
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    open_for_writing(paths, LATER).close()
    with pytest.raises(NewerDatabase, match="update Phoenix"):
        await store.commit(move(conversation_id, say("x")))
    assert await store.messages(conversation_id) == []
    await store.close()


async def test_what_was_used_before_calls_had_rows_is_found_in_them_and_never_twice(paths: StorePaths) -> None:
    paths.database.parent.mkdir(parents=True)
    connection = connect(str(paths.database))
    migrate(connection, MIGRATIONS[:BEFORE_CALLS])
    totals = '{"input_tokens": 350, "output_tokens": 40, "cost_usd": 0.07}'
    nothing = '{"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}'
    for name, spent, source, seq in (("a", totals, None, 0), ("copy", nothing, "a", 2)):
        connection.execute(
            "INSERT INTO conversations (id, cwd, model, state, state_json, gen, totals_json, branch_of, branch_seq,"
            " created_at, updated_at) VALUES (?, '/', 'm', 'idle', '{}', 0, ?, ?, ?, 1, 1)",
            (name, spent, source, seq),
        )
        connection.execute("INSERT INTO turns VALUES (?, ?, 0, 1, 2, NULL)", (f"{name}-t", name))
        connection.execute(
            "INSERT INTO runs (id, conversation_id, turn_id, status, usage_json, cost_usd, started_at)"
            " VALUES (?, ?, ?, 'success', '{}', 0.05, 1)",
            (f"{name}-r", name, f"{name}-t"),
        )
        for number in (1, 2):
            connection.execute(
                "INSERT INTO messages (id, conversation_id, turn_id, seq, message_number, role, origin, content_json,"
                " text, run_id, model, usage_json, cost_usd, created_at)"
                " VALUES (?, ?, ?, ?, ?, 'assistant', 'llm', '[]', '', ?, 'claude', ?, 0.025, 1)",
                (
                    f"{name}-{number}",
                    name,
                    f"{name}-t",
                    number,
                    number,
                    f"{name}-r",
                    '{"input_tokens": 100, "output_tokens": 20}',
                ),
            )
    connection.close()
    await (await open_store(paths)).close()
    sums = "SELECT conversation_id, purpose, sum(input_tokens), sum(output_tokens), round(sum(cost_usd), 9)"
    assert query(paths.database, f"{sums} FROM model_calls GROUP BY 1, 2 ORDER BY 1, 2") == [
        ("a", "earlier", 150, 0, 0.02),
        ("a", "reply", 200, 40, 0.05),
    ]
    assert query(paths.database, "SELECT id, cost_usd FROM runs ORDER BY id") == [("a-r", 0.05), ("copy-r", None)]
