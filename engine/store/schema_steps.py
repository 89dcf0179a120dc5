"""Schema changes of each later version, oldest first; `migrations` lists them, `schema_search` has the index."""

from __future__ import annotations

import sqlite3

from engine.store import model_calls

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
    for statement in _CALLS:
        connection.execute(statement)
    model_calls.fill_in(connection)
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
