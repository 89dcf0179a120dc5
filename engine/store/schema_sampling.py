"""Migration that lets model calls answer sampling requests of MCP servers."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.store.schema_web import allow_purposes

_BEFORE: Final = "'web_search', 'web_page'"


def add_sampling_calls(connection: sqlite3.Connection) -> None:
    """Calls may have the purpose `sampling`."""
    allow_purposes(connection, _BEFORE, "sampling")
