"""A database is the one that is written down, or is brought up to date as a whole, with a copy beside it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from engine.store import Store, StorePaths, open_store
from engine.store.connection import DamagedDatabase, NewerDatabase
from engine.store.migrations import APPLICATION_ID, BASELINE, MIGRATIONS, VERSION, migrate
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


EXPECTED = {
    "instances": "id pid boot_id started_at",
    "conversations": "id owner_instance kind user_initiated parent_id spawn_mode spawn_tool_use_id slug title cwd model"
    " profile permission_mode system_prompt_static append_system_prompt parent_context state state_json gen turn_limit"
    " max_iterations deadline_at priority context_window context_tokens context_estimated last_usage_json totals_json"
    " summary context_start_seq compaction_count flush_compaction_count disable_task_tracking supervisor auto_wake"
    " injection_action draft scroll_seq unread result_status result_text result_error archived_at deleted_at created_at"
    " updated_at pinned_at title_by context_omitted_json context_earlier_json compact_percent"
    " branch_of branch_seq superseded_by partial agent_task agent_ordinal agent_timeout sandbox sandbox_required"
    " effort track_tasks todos_json plan_text plan_at tracking_problem mcp_off_json mcp_loaded_json",
    "turns": "id conversation_id turn_number started_at ended_at summary",
    "messages": "id conversation_id turn_id seq message_number role origin content_json text original_len silent run_id"
    " agent_id model usage_json cost_usd duration_ms flags_json metadata_json tracked_task_id task_process_status"
    " created_at",
    "tool_calls": "id conversation_id assistant_message_id run_id tool_use_id ordinal name input_json status"
    " output_text output_json display_json is_error truncated pid pgid proc_start started_at ended_at duration_ms",
    "attachments": "id conversation_id sha256 path media_type width height bytes orig_width orig_height orig_bytes"
    " created_at",
    "cancel_requests": "conversation_id run_id requested_at",
    "compactions": "id conversation_id at cause kind message_count first_seq start_seq messages tokens_before"
    " tokens_after problem",
    "queued_messages": "id conversation_id ord content_json created_at delivery",
    "inbox": "id conversation_id type content_json sender_id tool_use_id created_at consumed_at quiet",
    "runs": "id conversation_id turn_id trigger_message_id parent_run_id agent_id type prompt context_json priority"
    " timeout_ms strategy routing_json status output error error_code recoverable artifacts_json usage_json"
    " model_usage_json cost_usd iterations retries started_at ended_at duration_ms",
    "events": "seq id conversation_id message_id run_id agent_id type payload_json ts",
    "traces": "id run_id conversation_id status input_tokens output_tokens cost_usd started_at ended_at",
    "spans": "id trace_id parent_span_id kind name iteration provider model input_tokens output_tokens status error"
    " output_preview input_preview started_at duration_ms tool_use_id",
    "trace_queue": "seq run_id call_id",
    "trace_export": "id owner seq sent rejected rejected_why",
    "copied_rows": "id conversation_id origin",
    "tracked_tasks": "id conversation_id ord status is_planning data_json created_at updated_at",
    "file_steps": "id conversation_id kind state seq folder look began changes coverage undone_from target_seq",
    "memory_docs": "path scope updated_at size",
    "memory_passages": "id path line",
    "memory_fts": "path body",
    "profiles": "name json",
    "model_calls": "id conversation_id run_id message_id purpose status provider model iteration attempt input_tokens"
    " output_tokens cache_creation_tokens cache_read_tokens estimated cost_usd started_at duration_ms error"
    " web_searches",
    "settings": "key value",
    "search_rows": "id source conversation_id speaker created_at",
    "search_index": "text",
    "search_backlog": "below total",
}


async def test_the_tables_and_columns_are_the_written_ones(store: Store) -> None:
    tables = [
        str(row[0])
        for row in query(store.path, "SELECT name FROM sqlite_master WHERE type = 'table'")
        if not str(row[0]).startswith(("memory_fts_", "search_index_", "sqlite_"))
    ]
    found = {
        table: " ".join(str(row[1]) for row in query(store.path, f"PRAGMA table_info({table})")) for table in tables
    }
    assert found == EXPECTED
    assert query(store.path, "PRAGMA user_version") == [(VERSION,)]
    assert query(store.path, "PRAGMA application_id") == [(APPLICATION_ID,)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE conversations SET cwd = '/elsewhere'",
        "UPDATE conversations SET state = 'happy'",
        "UPDATE conversations SET kind = 'robot'",
        "INSERT INTO runs (id, conversation_id, status, started_at)"
        " SELECT column1, id, 'running', 1 FROM conversations, (VALUES ('a'), ('b'))",
        "INSERT INTO tracked_tasks SELECT 'k', id, 3, 'pending', 1, '{}', 1, 1 FROM conversations",
        "INSERT INTO inbox (conversation_id, type, content_json, created_at) SELECT id, 'gossip', '[]', 1 FROM"
        " conversations",
    ],
)
async def test_the_database_refuses_what_must_never_be(store: Store, change: str) -> None:
    await store.create(new_conversation(), 1.0)
    with pytest.raises(sqlite3.IntegrityError):
        query(store.path, change)


async def test_a_conversation_goes_with_all_its_rows(store: Store, paths: StorePaths) -> None:
    referring = {
        str(row[0])
        for row in query(
            paths.database,
            "SELECT t.name FROM sqlite_master AS t, pragma_foreign_key_list(t.name) AS f"
            " WHERE t.type = 'table' AND f.\"table\" = 'conversations' AND f.on_delete = 'CASCADE'",
        )
    }
    holding = {table for table, columns in EXPECTED.items() if " conversation_id" in columns}
    assert holding - referring == {"events", "traces", "search_rows"}
    # Events are purged by hand, traces go with their run, rows of the search index with what they index.
