"""Automatic titles: after the first message, after a command until then, and distinct in copies."""

from __future__ import annotations

import itertools
import re
import sqlite3
from typing import Final

from engine.records import COMMAND_TITLE
from engine.store.conversations import escape_like
from engine.store.slugs import give_slug

TITLE_LENGTH: Final = 50
"""Characters of the first message that name a conversation (SPEC STM-11)."""
_NUMBER: Final = re.compile(r"^\(\d+\) ")
"""Number of a copy of that title; in front, since a narrow list cuts the end."""


def name_after(connection: sqlite3.Connection, conversation_id: str, text: str) -> None:
    """Give a conversation without a title, or with that of a command, the beginning of its first message."""
    connection.execute(
        """UPDATE conversations SET title = ? WHERE id = ?
            AND (title = '' OR title_by = '' AND substr(title, 1, length(?)) = ?)""",
        (_as_title(text), conversation_id, COMMAND_TITLE, COMMAND_TITLE),
    )
    give_slug(connection, conversation_id)


def name_after_command(connection: sqlite3.Connection, conversation_id: str, command: str) -> None:
    """Give a conversation without a title the command that its user ran, until its first message."""
    title = _as_title(f"{COMMAND_TITLE}{command}")
    connection.execute("UPDATE conversations SET title = ? WHERE id = ? AND title = ''", (title, conversation_id))
    give_slug(connection, conversation_id)


def tell_apart(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Put a number ahead of the title of a copy; a copy of no message is named by its first one, as any other."""
    row = connection.execute(
        "SELECT title, title_by, EXISTS (SELECT 1 FROM messages WHERE conversation_id = c.id) AS begun"
        " FROM conversations AS c WHERE id = ?",
        (conversation_id,),
    ).fetchone()
    title = _numbered(connection, row["title"]) if row["begun"] or row["title_by"] else ""
    connection.execute("UPDATE conversations SET title = ? WHERE id = ?", (title, conversation_id))
    give_slug(connection, conversation_id)


def _numbered(connection: sqlite3.Connection, title: str) -> str:
    """The title with the least number that no other conversation has."""
    name = _NUMBER.sub("", title)
    if not name:
        return ""
    taken = {
        str(row["title"])
        for row in connection.execute(
            "SELECT title FROM conversations WHERE title LIKE ? ESCAPE '\\'", (f"(%) {escape_like(name)}",)
        )
    }
    return next(one for number in itertools.count(2) if (one := f"({number}) {name}") not in taken)


def _as_title(text: str) -> str:
    return " ".join(text.split())[:TITLE_LENGTH].rstrip()
