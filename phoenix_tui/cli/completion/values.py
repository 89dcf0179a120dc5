"""`phoenix __complete KIND`: values for completion scripts, a line each, looked up with few imports.

A name is left out where a shell could not take it as one word; an error is no line at all, since nothing may
appear on a command line that is being written.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from phoenix_tui.config.paths import Paths, find_paths

MODELS = "models"
CONVERSATIONS = "conversations"
PROFILES = "profiles"
"""Looked up by `phoenix __complete KIND`, as the two above."""
FILES = "files"
FOLDERS = "folders"


MOST = 200
"""Values of one kind."""
LONGEST = 120
"""Characters of a value."""
REMARK = 60
"""Characters of a title beside a value."""
LARGEST_FILE = 1 << 20
"""Bytes of a settings file that are read."""
PATIENCE = 0.05
"""Seconds to wait for a busy database."""
_CONVERSATIONS = (
    "SELECT slug, substr(title, 1, 200) FROM conversations WHERE kind = 'user' AND slug IS NOT NULL "
    "AND deleted_at IS NULL ORDER BY updated_at DESC LIMIT ?"
)
_MODELS = "SELECT model, '' FROM conversations GROUP BY model ORDER BY max(updated_at) DESC LIMIT ?"
_SETTINGS = ("model", "cheap_model", "summary_model")


def print_values(kind: str) -> None:
    """Print the values of a kind; a tab and a remark follow some of them."""
    paths = find_paths(os.environ)
    found: dict[str, str] = {}
    for value, remark in _values(kind, paths):
        if value and len(value) <= LONGEST and value.isprintable() and not value.startswith("-"):
            found.setdefault(value, " ".join(remark.split())[:REMARK])
    for value, remark in list(found.items())[:MOST]:
        shown = "".join(sign for sign in remark if sign.isprintable())
        sys.stdout.write(f"{value}\t{shown}\n" if shown else f"{value}\n")


def _values(kind: str, paths: Paths) -> Iterator[tuple[str, str]]:
    if kind == CONVERSATIONS:
        yield from _query(paths.database, _CONVERSATIONS)
    elif kind == MODELS:
        yield from _read_configured(paths.config_file)
        yield from _query(paths.database, _MODELS)
    elif kind == PROFILES:
        yield from sorted((path.stem, "") for path in _list_names(paths.profiles) if path.suffix == ".md")


def _list_names(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _query(database: Path, query: str) -> list[tuple[str, str]]:
    """Rows of the database, opened for reading alone; none where it is missing, busy or of another version."""
    try:
        connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=PATIENCE)
        try:
            rows = connection.execute(query, (MOST,)).fetchall()
        finally:
            connection.close()
    except sqlite3.Error:
        return []
    return [(str(value), str(remark)) for value, remark in rows]


def _read_configured(path: Path) -> Iterator[tuple[str, str]]:
    """Models that the user's settings name."""
    try:
        with path.open("rb") as file:
            settings = tomllib.loads(file.read(LARGEST_FILE).decode("utf-8"))
    except (OSError, ValueError):
        return
    for name in _SETTINGS:
        if isinstance(value := settings.get(name), str):
            yield value, name
