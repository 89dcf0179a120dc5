"""Migration that gives model calls beside runs spans of their own."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.store import spans

_OLD: Final = "'agent', 'llm', 'tool'"


def add_aside_spans(connection: sqlite3.Connection) -> None:
    """Spans may be asides, and each earlier call beside runs gets one.

    A check of a table cannot be changed, so the spans move into a new one, with their row numbers: a run that is
    exported in part goes on behind such a number.
    """
    definition = "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'spans' AND type = ? AND sql IS NOT NULL"
    (table,) = connection.execute(definition, ("table",)).fetchall()
    indexes = connection.execute(definition, ("index",)).fetchall()
    columns = ", ".join(["rowid", *(str(row[1]) for row in connection.execute("PRAGMA table_info(spans)"))])
    connection.execute("ALTER TABLE spans RENAME TO earlier_spans")
    connection.execute(str(table[1]).replace(_OLD, f"{_OLD}, 'aside'"))
    connection.execute(f"INSERT INTO spans ({columns}) SELECT {columns} FROM earlier_spans ORDER BY rowid")
    connection.execute("DROP TABLE earlier_spans")
    for index in indexes:
        connection.execute(str(index[1]))
    spans.fill_in_asides(connection, "")
