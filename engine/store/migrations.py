"""The schema of the database: `schema.sql` makes a new file, migrations bring an older one up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

APPLICATION_ID: Final = 0x50484E58
"""`PRAGMA application_id`: "PHNX", so a foreign SQLite file is known as one."""
BASELINE: Final = 27
"""Version of `schema.sql`, the oldest that is read: no release wrote an earlier one."""
SCRIPT: Final = Path(__file__).with_name("schema.sql")
_BETWEEN: Final = ";\n\n"
"""Ends a statement of the script; no statement holds an empty line."""
Migration: TypeAlias = Callable[[sqlite3.Connection], None]
MIGRATIONS: Final[tuple[Migration, ...]] = ()
"""The n-th brings a file from version BASELINE + n - 1 to the next; only ever appended to. A new file gets them too."""
VERSION: Final = BASELINE + len(MIGRATIONS)


def version_of(connection: sqlite3.Connection) -> int:
    """The version the file is at; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring an empty file, or one from BASELINE on, up to date, each version in one transaction.

    Another process may do the same at the same time.
    """
    newest = BASELINE + len(migrations)
    while version_of(connection) < newest:
        connection.execute("BEGIN IMMEDIATE")
        try:
            reached = version_of(connection)
            if reached == 0:
                for statement in SCRIPT.read_text("utf-8").removesuffix(";\n").split(_BETWEEN):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {BASELINE}")
            elif reached < newest:
                migrations[reached - BASELINE](connection)
                connection.execute(f"PRAGMA user_version = {reached + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
