"""The versions of the schema, oldest first: each is one function, applied in one transaction with its number."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeAlias

from engine.store.newest_schema import create_newest
from engine.store.schema import VERSION_1
from engine.store.schema_asides import add_aside_spans
from engine.store.schema_copies import add_copied_rows
from engine.store.schema_events import add_cancel_requests, number_events
from engine.store.schema_mcp import add_mcp_columns
from engine.store.schema_plan import add_plan_columns
from engine.store.schema_queue import add_delivery_column
from engine.store.schema_sampling import add_sampling_calls
from engine.store.schema_search import add_search_index
from engine.store.schema_statistics import add_statistics_indexes
from engine.store.schema_steps import (
    add_agent_columns,
    add_compactions,
    add_context_columns,
    add_effort_column,
    add_list_columns,
    add_memory_passages,
    add_model_calls,
    add_partial_column,
    add_quiet_entries,
    add_rewind_tables,
    add_sandbox_columns,
)
from engine.store.schema_traces import add_rejected_spans, add_trace_columns
from engine.store.schema_tracking import add_task_tracking, add_tracking_problem
from engine.store.schema_web import add_web_calls

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
