"""The newest schema as one script, for a file that has none yet: 3 ms, where every migration in turn takes 27.

`schema.sql` is written by `make schema` from what the migrations make; a test compares both.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

SCRIPT: Final = Path(__file__).with_name("schema.sql")
BETWEEN: Final = ";\n\n"
"""Ends a statement of the script; no statement holds an empty line."""


def create_newest(connection: sqlite3.Connection) -> None:
    """Create every table, index and trigger, and the rows that a new file has; within the caller's transaction."""
    for statement in SCRIPT.read_text("utf-8").removesuffix(";\n").split(BETWEEN):
        connection.execute(statement)
