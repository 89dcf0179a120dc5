"""`make schema`: write `engine/store/schema.sql` from what the migrations make of an empty file."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.store.migrations import BETWEEN, MIGRATIONS, SCRIPT, migrate

MADE_BY_SQLITE: Final = frozenset({"shadow"})
"""Tables that come with the virtual table they belong to."""


def main() -> None:
    """Write the script anew."""
    SCRIPT.write_text(script(), "utf-8")


def script() -> str:
    """The statements that make an empty file what all migrations make of it."""
    connection = sqlite3.connect(":memory:")
    migrate(connection, list(MIGRATIONS))
    tables = {name: kind for _, name, kind, *_ in connection.execute("PRAGMA main.table_list")}
    own = [name for name, kind in tables.items() if kind == "table" and not name.startswith("sqlite_")]
    statements = [
        f"PRAGMA application_id = {connection.execute('PRAGMA application_id').fetchone()[0]}",
        *(
            sql
            for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
            if tables.get(name) not in MADE_BY_SQLITE and not name.startswith("sqlite_")
        ),
        *(row for name in sorted(own) for row in _rows(connection, name)),
    ]
    connection.close()
    return BETWEEN.join(statements) + ";\n"


def _rows(connection: sqlite3.Connection, table: str) -> list[str]:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(f"quote({column})" for column in columns)
    rows = connection.execute(f"SELECT {values} FROM {table}")
    return [f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(row)})" for row in rows]


if __name__ == "__main__":
    main()
