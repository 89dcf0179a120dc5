"""The versions of the schema, oldest first: each is one function, applied in one transaction with its number."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from engine.store.schema import VERSION_1
from engine.store.schema_search import add_search_index

SCRIPT: Final = Path(__file__).with_name("schema.sql")
BETWEEN: Final = ";\n\n"
"""Ends a statement of the script; no statement holds an empty line."""


def create_newest(connection: sqlite3.Connection) -> None:
    """Create every table, index and trigger, and the rows that a new file has; within the caller's transaction."""
    for statement in SCRIPT.read_text("utf-8").removesuffix(";\n").split(BETWEEN):
        connection.execute(statement)


_KINDS: Final = "'agent', 'llm', 'tool'"


def add_aside_spans(connection: sqlite3.Connection) -> None:
    """Spans may be asides, and each earlier call beside runs gets one.

    A check of a table cannot be changed, so the spans move into a new one, with their row numbers: a run that is
    exported in part goes on behind such a number.
    """
    from engine.store.traces import fill_in_aside_spans  # noqa: PLC0415 - it imports this

    definition = "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'spans' AND type = ? AND sql IS NOT NULL"
    (table,) = connection.execute(definition, ("table",)).fetchall()
    indexes = connection.execute(definition, ("index",)).fetchall()
    columns = ", ".join(["rowid", *(str(row[1]) for row in connection.execute("PRAGMA table_info(spans)"))])
    connection.execute("ALTER TABLE spans RENAME TO earlier_spans")
    connection.execute(str(table[1]).replace(_KINDS, f"{_KINDS}, 'aside'"))
    connection.execute(f"INSERT INTO spans ({columns}) SELECT {columns} FROM earlier_spans ORDER BY rowid")
    connection.execute("DROP TABLE earlier_spans")
    for index in indexes:
        connection.execute(str(index[1]))
    fill_in_aside_spans(connection, "")


_COPIES: Final = (
    """CREATE TABLE copied_rows (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        origin TEXT NOT NULL)""",
    "CREATE INDEX copied_rows_origin ON copied_rows (origin)",
    "CREATE INDEX copied_rows_conversation ON copied_rows (conversation_id)",
)


def add_copied_rows(connection: sqlite3.Connection) -> None:
    """`id` names a model call or a message of an import, `origin` the row that it was made from, here or elsewhere."""
    for statement in _COPIES:
        connection.execute(statement)


_STREAM = (
    """CREATE TABLE events_numbered (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        conversation_id TEXT,
        message_id TEXT,
        run_id TEXT,
        agent_id TEXT,
        type TEXT NOT NULL,
        payload_json TEXT NOT NULL,
        ts REAL NOT NULL)""",
    "INSERT INTO events_numbered SELECT seq, id, conversation_id, message_id, run_id, agent_id, type, payload_json, ts"
    " FROM events ORDER BY seq",
    "DROP TABLE events",
    "ALTER TABLE events_numbered RENAME TO events",
    "CREATE INDEX events_conversation ON events (conversation_id, seq)",
)


def number_events(connection: sqlite3.Connection) -> None:
    """Never use the number of a removed event again. No index on `id`: its random order would cost a page a row."""
    for statement in _STREAM:
        connection.execute(statement)


def add_cancel_requests(connection: sqlite3.Connection) -> None:
    """One row for each conversation whose run another process wants cancelled; the owner takes it out."""
    connection.execute(
        """CREATE TABLE cancel_requests (
            conversation_id TEXT PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
            run_id TEXT,
            requested_at REAL NOT NULL) WITHOUT ROWID"""
    )


def add_mcp_columns(connection: sqlite3.Connection) -> None:
    """Add servers that are switched off and tools that were loaded, each as a JSON list; empty for existing rows."""
    for column in ("mcp_off_json", "mcp_loaded_json"):
        connection.execute(f"ALTER TABLE conversations ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")


def add_plan_columns(connection: sqlite3.Connection) -> None:
    """Add the todo list, the accepted plan, and the number of messages when it was accepted; all empty for existing
    rows.
    """
    for column in (
        "todos_json TEXT NOT NULL DEFAULT ''",
        "plan_text TEXT NOT NULL DEFAULT ''",
        "plan_at INTEGER NOT NULL DEFAULT 0",
    ):
        connection.execute(f"ALTER TABLE conversations ADD COLUMN {column}")


def add_delivery_column(connection: sqlite3.Connection) -> None:
    """Add when a queued message is sent: `idle`, as all existing rows, or `tool`."""
    connection.execute("ALTER TABLE queued_messages ADD COLUMN delivery TEXT NOT NULL DEFAULT 'idle'")


_BEFORE_WEB: Final = "'memory', 'tracking'"


def add_web_calls(connection: sqlite3.Connection) -> None:
    """Calls may have the purposes `web_search` and `web_page`; `web_searches` counts what a server charges apart."""
    allow_purposes(connection, _BEFORE_WEB, "web_search", "web_page")
    connection.execute("ALTER TABLE model_calls ADD COLUMN web_searches INTEGER NOT NULL DEFAULT 0")


def allow_purposes(connection: sqlite3.Connection, last: str, *purposes: str) -> None:
    """Let calls have further purposes; `last` is the end of the list so far, as it stands in the definition.

    A check of a table cannot be changed, so the calls move into a new one, with all their columns and indexes.
    """
    definition = "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'model_calls' AND type = ? AND sql IS NOT NULL"
    (table,) = connection.execute(definition, ("table",)).fetchall()
    indexes = connection.execute(definition, ("index",)).fetchall()
    more = ", ".join(f"'{purpose}'" for purpose in purposes)
    connection.execute("ALTER TABLE model_calls RENAME TO earlier_calls")
    connection.execute(str(table[1]).replace(last, f"{last}, {more}"))
    connection.execute("INSERT INTO model_calls SELECT * FROM earlier_calls ORDER BY rowid")
    connection.execute("DROP TABLE earlier_calls")
    for index in indexes:
        connection.execute(str(index[1]))


_BEFORE_SAMPLING: Final = "'web_search', 'web_page'"


def add_sampling_calls(connection: sqlite3.Connection) -> None:
    """Calls may have the purpose `sampling`."""
    allow_purposes(connection, _BEFORE_SAMPLING, "sampling")


_STATISTICS: Final = (
    "CREATE INDEX model_calls_started ON model_calls (started_at)",
    # Computed and stored in the index alone: a sum over results would read every page of their texts.
    """ALTER TABLE tool_calls ADD COLUMN output_bytes INTEGER
        GENERATED ALWAYS AS (length(CAST(output_text AS BLOB))) VIRTUAL""",
    """CREATE INDEX tool_calls_ended ON tool_calls (ended_at, name, status, duration_ms, output_bytes,
        conversation_id, assistant_message_id) WHERE ended_at IS NOT NULL""",
)


def add_statistics_indexes(connection: sqlite3.Connection) -> None:
    """Model calls by their start, ended tool calls by their end."""
    for statement in _STATISTICS:
        connection.execute(statement)


_REWIND = (
    """CREATE TABLE file_steps (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        kind TEXT NOT NULL CHECK (kind IN ('turn', 'restore', 'branch')),
        state TEXT NOT NULL CHECK (state IN ('open', 'restoring', 'done')),
        seq INTEGER NOT NULL,
        folder BLOB NOT NULL,
        look TEXT NOT NULL,
        began REAL NOT NULL,
        changes BLOB NOT NULL,
        coverage BLOB NOT NULL,
        undone_from TEXT NOT NULL DEFAULT '',
        target_seq INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX file_steps_conversation ON file_steps (conversation_id, began)",
    "CREATE INDEX file_steps_unfinished ON file_steps (state) WHERE state <> 'done'",
    "ALTER TABLE conversations ADD COLUMN branch_of TEXT REFERENCES conversations ON DELETE SET NULL",
    "ALTER TABLE conversations ADD COLUMN branch_seq INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE conversations ADD COLUMN superseded_by TEXT REFERENCES conversations ON DELETE SET NULL",
    "CREATE INDEX conversations_branch ON conversations (branch_of) WHERE branch_of IS NOT NULL",
    "CREATE INDEX conversations_superseded ON conversations (superseded_by) WHERE superseded_by IS NOT NULL",
)


_CALLS = (
    """CREATE TABLE model_calls (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        run_id TEXT,
        message_id TEXT,
        purpose TEXT NOT NULL CHECK (purpose IN ('reply', 'compaction', 'routing', 'title', 'turn_summary',
            'suggestion', 'aside', 'earlier')),
        status TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'cancelled')),
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        iteration INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_creation_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        estimated INTEGER NOT NULL CHECK (estimated IN (0, 1)),
        cost_usd REAL,
        started_at REAL NOT NULL,
        duration_ms INTEGER NOT NULL,
        error TEXT NOT NULL)""",
    "CREATE INDEX model_calls_conversation ON model_calls (conversation_id)",
    "CREATE INDEX model_calls_run ON model_calls (run_id) WHERE run_id IS NOT NULL",
)


_COMPACTIONS = (
    """CREATE TABLE compactions (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        at REAL NOT NULL,
        cause TEXT NOT NULL CHECK (cause IN ('asked', 'full', 'overflow', 'rested', 'long_results')),
        kind TEXT NOT NULL CHECK (kind IN ('summary', 'shortened', 'restored', 'none')),
        message_count INTEGER NOT NULL,
        first_seq INTEGER NOT NULL,
        start_seq INTEGER NOT NULL,
        messages INTEGER NOT NULL,
        tokens_before INTEGER NOT NULL,
        tokens_after INTEGER NOT NULL,
        problem TEXT NOT NULL)""",
    "CREATE INDEX compactions_conversation ON compactions (conversation_id, message_count)",
)


def add_compactions(connection: sqlite3.Connection) -> None:
    """Create one row for each attempt to make a context shorter."""
    for statement in _COMPACTIONS:
        connection.execute(statement)


def add_memory_passages(connection: sqlite3.Connection) -> None:
    """`memory_passages` has the line of each row of `memory_fts`.

    A check of a table cannot be changed, so the calls move into a new one.
    """
    table, *indexes = _CALLS
    connection.execute("ALTER TABLE model_calls RENAME TO earlier_calls")
    connection.execute(table.replace("'aside', 'earlier'", "'aside', 'earlier', 'memory'"))
    connection.execute("INSERT INTO model_calls SELECT * FROM earlier_calls")
    connection.execute("DROP TABLE earlier_calls")
    for statement in indexes:
        connection.execute(statement)
    connection.execute("ALTER TABLE memory_docs ADD COLUMN size INTEGER NOT NULL DEFAULT -1")
    connection.execute("CREATE INDEX memory_docs_scope ON memory_docs (scope)")
    connection.execute(
        "CREATE TABLE memory_passages (id INTEGER PRIMARY KEY, path TEXT NOT NULL, line INTEGER NOT NULL)"
    )
    connection.execute("CREATE INDEX memory_passages_path ON memory_passages (path)")


def add_list_columns(connection: sqlite3.Connection) -> None:
    """`pinned_at` orders the pins; titles that are there already count as the user's own."""
    connection.execute("ALTER TABLE conversations ADD COLUMN pinned_at REAL")
    connection.execute(
        "ALTER TABLE conversations ADD COLUMN title_by TEXT NOT NULL DEFAULT ''"
        " CHECK (title_by IN ('', 'model', 'user'))"
    )
    connection.execute("UPDATE conversations SET title_by = 'user' WHERE title <> ''")


def add_context_columns(connection: sqlite3.Connection) -> None:
    """Add omitted parts, the views before each compaction, and the threshold; all empty for existing rows."""
    for column in (
        "context_omitted_json TEXT NOT NULL DEFAULT '[]'",
        "context_earlier_json TEXT NOT NULL DEFAULT '[]'",
        "compact_percent INTEGER NOT NULL DEFAULT 0",
    ):
        connection.execute(f"ALTER TABLE conversations ADD COLUMN {column}")


def add_rewind_tables(connection: sqlite3.Connection) -> None:
    """`superseded_by` hides a conversation from the list while the one that took its place is there."""
    for statement in _REWIND:
        connection.execute(statement)


def add_partial_column(connection: sqlite3.Connection) -> None:
    """`partial` names the process that copies, imports or removes it; such a conversation is hidden, and once that
    process is dead the rest of it is removed. NULL: whole.
    """
    connection.execute("ALTER TABLE conversations ADD COLUMN partial TEXT")
    connection.execute("CREATE INDEX conversations_partial ON conversations (partial) WHERE partial IS NOT NULL")


def add_agent_columns(connection: sqlite3.Connection) -> None:
    """Add columns for the task as given, its position among the tasks of one call, and the time limit of a run."""
    connection.execute("ALTER TABLE conversations ADD COLUMN agent_task TEXT")
    connection.execute("ALTER TABLE conversations ADD COLUMN agent_ordinal INTEGER")
    connection.execute("ALTER TABLE conversations ADD COLUMN agent_timeout REAL")


def add_quiet_entries(connection: sqlite3.Connection) -> None:
    """Add a column that marks entries of an inbox that begin no turn by themselves."""
    connection.execute("ALTER TABLE inbox ADD COLUMN quiet INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1))")


def add_sandbox_columns(connection: sqlite3.Connection) -> None:
    """Conversations that are there already get the default of new ones, and count as not having chosen it."""
    connection.execute(
        "ALTER TABLE conversations ADD COLUMN sandbox TEXT NOT NULL DEFAULT 'workspace'"
        " CHECK (sandbox IN ('off', 'workspace', 'read-only'))"
    )
    connection.execute(
        "ALTER TABLE conversations ADD COLUMN sandbox_required INTEGER NOT NULL DEFAULT 0"
        " CHECK (sandbox_required IN (0, 1))"
    )


def add_model_calls(connection: sqlite3.Connection) -> None:
    """Create one row a model call; earlier totals get rows too, and copied runs no longer claim their source's."""
    from engine.store.model_calls import fill_in_model_calls  # noqa: PLC0415 - it imports this

    for statement in _CALLS:
        connection.execute(statement)
    fill_in_model_calls(connection)
    connection.execute(
        """UPDATE runs SET usage_json = NULL, model_usage_json = NULL, cost_usd = NULL
            WHERE conversation_id IN (SELECT id FROM conversations WHERE branch_of IS NOT NULL)
            AND id NOT IN (SELECT run_id FROM model_calls WHERE run_id IS NOT NULL)"""
    )


def add_effort_column(connection: sqlite3.Connection) -> None:
    """Conversations that are there already leave the effort to the provider, as they did."""
    connection.execute(
        "ALTER TABLE conversations ADD COLUMN effort TEXT NOT NULL DEFAULT 'default'"
        " CHECK (effort IN ('default', 'off', 'low', 'medium', 'high', 'max'))"
    )


_TRACES: Final = (
    "ALTER TABLE spans ADD COLUMN tool_use_id TEXT NOT NULL DEFAULT ''",
    """CREATE TABLE trace_queue (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT REFERENCES runs ON DELETE CASCADE,
        call_id TEXT)""",
    "CREATE INDEX trace_queue_run ON trace_queue (run_id)",
    """CREATE TABLE trace_export (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        owner TEXT,
        seq INTEGER NOT NULL DEFAULT 0,
        sent INTEGER NOT NULL DEFAULT 0)""",
)


def add_trace_columns(connection: sqlite3.Connection) -> None:
    """`trace_queue` has a row for each end that is to be exported; it is written while `trace_export` has its row."""
    for statement in _TRACES:
        connection.execute(statement)


def add_rejected_spans(connection: sqlite3.Connection) -> None:
    """`trace_export` counts the spans that the collector did not take, with the reason of the newest."""
    connection.execute("ALTER TABLE trace_export ADD COLUMN rejected INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE trace_export ADD COLUMN rejected_why TEXT NOT NULL DEFAULT ''")


_BY_STATUS: Final = """CREATE INDEX messages_tracking
    ON messages (conversation_id, task_process_status, role, tracked_task_id, seq)"""
"""Has all that counts need: the columns lie behind the texts, which would be read for every message."""
_PURPOSES: Final = "'earlier', 'memory'"


def add_task_tracking(connection: sqlite3.Connection) -> None:
    """`track_tasks` is the user's choice against the setting; calls of the task agent have the purpose `tracking`.

    A check of a table cannot be changed, so the calls move into a new one, with all their columns and indexes.
    """
    connection.execute(
        "ALTER TABLE conversations ADD COLUMN track_tasks INTEGER NOT NULL DEFAULT 0 CHECK (track_tasks IN (0, 1))"
    )
    connection.execute("DROP INDEX messages_tracked")
    connection.execute(_BY_STATUS)
    definition = "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'model_calls' AND type = ? AND sql IS NOT NULL"
    (table,) = connection.execute(definition, ("table",)).fetchall()
    indexes = connection.execute(definition, ("index",)).fetchall()
    widened = str(table[1]).replace(_PURPOSES, f"{_PURPOSES}, 'tracking'")
    connection.execute("ALTER TABLE model_calls RENAME TO earlier_calls")
    connection.execute(widened)
    connection.execute("INSERT INTO model_calls SELECT * FROM earlier_calls")
    connection.execute("DROP TABLE earlier_calls")
    for index in indexes:
        connection.execute(str(index[1]))


def add_tracking_problem(connection: sqlite3.Connection) -> None:
    """The reason why messages wait or failed, which a restart would lose; empty for existing rows."""
    connection.execute("ALTER TABLE conversations ADD COLUMN tracking_problem TEXT NOT NULL DEFAULT ''")


Migration: TypeAlias = Callable[[sqlite3.Connection], None]


def create_tables(connection: sqlite3.Connection) -> None:
    """Version 1: everything of SPEC DOM-04."""
    for statement in VERSION_1:
        connection.execute(statement)


MIGRATIONS: tuple[Migration, ...] = (
    create_tables,
    add_list_columns,
    add_context_columns,
    add_search_index,
    add_rewind_tables,
    add_partial_column,
    add_agent_columns,
    add_quiet_entries,
    add_sandbox_columns,
    add_model_calls,
    add_compactions,
    add_effort_column,
    add_memory_passages,
    add_trace_columns,
    add_task_tracking,
    number_events,
    add_cancel_requests,
    add_statistics_indexes,
    add_plan_columns,
    add_tracking_problem,
    add_aside_spans,
    add_rejected_spans,
    add_copied_rows,
    add_delivery_column,
    add_mcp_columns,
    add_web_calls,
    add_sampling_calls,
)
"""The n-th brings a file from version n-1 to version n. Only ever appended to."""

VERSION = len(MIGRATIONS)


def version_of(connection: sqlite3.Connection) -> int:
    """The version the file is at; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the file up to date, in one step where it is empty. Another process may do the same at the same time."""
    while version_of(connection) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            reached = version_of(connection)
            if reached == 0 and migrations is MIGRATIONS:
                create_newest(connection)
                connection.execute(f"PRAGMA user_version = {VERSION}")
            elif reached < len(migrations):
                migrations[reached](connection)
                connection.execute(f"PRAGMA user_version = {reached + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
