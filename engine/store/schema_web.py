"""Migration that lets model calls search the web and read pages."""

from __future__ import annotations

import sqlite3
from typing import Final

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
