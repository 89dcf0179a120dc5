"""Schema step for the MCP servers and tools of a conversation."""

from __future__ import annotations

import sqlite3


def add_mcp_columns(connection: sqlite3.Connection) -> None:
    """Add servers that are switched off and tools that were loaded, each as a JSON list; empty for existing rows."""
    for column in ("mcp_off_json", "mcp_loaded_json"):
        connection.execute(f"ALTER TABLE conversations ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")
