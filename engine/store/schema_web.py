"""Migration that lets model calls search the web and read pages."""

from __future__ import annotations

import sqlite3
from typing import Final

_OLD: Final = "'memory', 'tracking'"


def add_web_calls(connection: sqlite3.Connection) -> None:
    """Calls may have the purposes `web_search` and `web_page`; `web_searches` counts what a server charges apart.

    A check of a table cannot be changed, so the calls move into a new one, with all their columns and indexes.
    """
    definition = "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'model_calls' AND type = ? AND sql IS NOT NULL"
    (table,) = connection.execute(definition, ("table",)).fetchall()
    indexes = connection.execute(definition, ("index",)).fetchall()
    connection.execute("ALTER TABLE model_calls RENAME TO earlier_calls")
    connection.execute(str(table[1]).replace(_OLD, f"{_OLD}, 'web_search', 'web_page'"))
    connection.execute("INSERT INTO model_calls SELECT * FROM earlier_calls ORDER BY rowid")
    connection.execute("DROP TABLE earlier_calls")
    for index in indexes:
        connection.execute(str(index[1]))
    connection.execute("ALTER TABLE model_calls ADD COLUMN web_searches INTEGER NOT NULL DEFAULT 0")
