"""Slugs: names of conversations that can be typed, made of their titles and unique (SPEC UNI-14)."""

from __future__ import annotations

import re
import sqlite3
from typing import Final

from tools.slugs import slug_of

WITHOUT_LETTERS: Final = "conversation"
"""Slug of a title without any ASCII letter."""
_NUMBER: Final = re.compile(r"-(\d{1,9})")


def give_slug(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Name a conversation of the user after its present title; a number distinguishes equal titles."""
    row = connection.execute(
        "SELECT title, slug FROM conversations WHERE id = ? AND kind = 'user' AND title <> ''", (conversation_id,)
    ).fetchone()
    if row is None:
        return
    base = slug_of(str(row["title"])) or WITHOUT_LETTERS
    had = str(row["slug"] or "")
    if had == base or (had.startswith(base) and _NUMBER.fullmatch(had, len(base))):
        return
    connection.execute(
        "UPDATE OR IGNORE conversations SET slug = ? WHERE id = ?", (_free(connection, base), conversation_id)
    )


def _free(connection: sqlite3.Connection, base: str) -> str:
    """`base`, or with the number behind the highest that is taken."""
    rows = connection.execute(
        "SELECT slug FROM conversations WHERE slug = ? OR slug > ? AND slug < ?", (base, f"{base}-", f"{base}.")
    )
    taken = {str(row["slug"]) for row in rows}
    if base not in taken:
        return base
    numbers = (_NUMBER.fullmatch(slug, len(base)) for slug in taken)
    return f"{base}-{max((int(found[1]) for found in numbers if found), default=1) + 1}"
