"""Titles and slugs of conversations (SPEC UNI-14), and lists of names in one column."""

from __future__ import annotations

import itertools
import re
import sqlite3
from typing import Final

import msgspec

from engine.codec import storable
from engine.records import COMMAND_TITLE
from tools.fresh_ids import slug_of

MOST: Final = 2_000
LONGEST: Final = 200


def encode_names(names: tuple[str, ...]) -> str:
    """Names as a JSON list; empty for none."""
    return msgspec.json.encode([storable(name) for name in names]).decode() if names else ""


def decode_names(text: str) -> tuple[str, ...]:
    """Names of a column; none where it is damaged."""
    try:
        return msgspec.json.decode(text, type=tuple[str, ...]) if text else ()
    except msgspec.MsgspecError:
        return ()


def are_names(value: object) -> bool:
    """True for a column that could have been stored here."""
    if not isinstance(value, str) or len(value) > MOST * LONGEST:
        return False
    names = decode_names(value)
    return bool(names or not value) and len(names) <= MOST and all(len(name) <= LONGEST for name in names)


def escape_like(text: str) -> str:
    """Text that LIKE takes literally, with ESCAPE backslash."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


WITHOUT_LETTERS: Final = "conversation"
"""Slug of a title without any ASCII letter."""
_SLUG_NUMBER: Final = re.compile(r"-(\d{1,9})")


def give_slug(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Name a conversation of the user after its present title; a number distinguishes equal titles."""
    row = connection.execute(
        "SELECT title, slug FROM conversations WHERE id = ? AND kind = 'user' AND title <> ''", (conversation_id,)
    ).fetchone()
    if row is None:
        return
    base = slug_of(str(row["title"])) or WITHOUT_LETTERS
    had = str(row["slug"] or "")
    if had == base or (had.startswith(base) and _SLUG_NUMBER.fullmatch(had, len(base))):
        return
    connection.execute(
        "UPDATE OR IGNORE conversations SET slug = ? WHERE id = ?", (_find_free_slug(connection, base), conversation_id)
    )


def _find_free_slug(connection: sqlite3.Connection, base: str) -> str:
    """`base`, or with the number behind the highest that is taken."""
    rows = connection.execute(
        "SELECT slug FROM conversations WHERE slug = ? OR slug > ? AND slug < ?", (base, f"{base}-", f"{base}.")
    )
    taken = {str(row["slug"]) for row in rows}
    if base not in taken:
        return base
    numbers = (_SLUG_NUMBER.fullmatch(slug, len(base)) for slug in taken)
    return f"{base}-{max((int(found[1]) for found in numbers if found), default=1) + 1}"


TITLE_LENGTH: Final = 50
"""Characters of the first message that name a conversation (SPEC STM-11)."""
_TITLE_NUMBER: Final = re.compile(r"^\(\d+\) ")
"""Number of a copy of that title; in front, since a narrow list cuts the end."""


def name_after(connection: sqlite3.Connection, conversation_id: str, text: str) -> None:
    """Give a conversation without a title, or with that of a command, the beginning of its first message."""
    connection.execute(
        """UPDATE conversations SET title = ? WHERE id = ?
            AND (title = '' OR title_by = '' AND substr(title, 1, length(?)) = ?)""",
        (_make_title(text), conversation_id, COMMAND_TITLE, COMMAND_TITLE),
    )
    give_slug(connection, conversation_id)


def name_after_command(connection: sqlite3.Connection, conversation_id: str, command: str) -> None:
    """Give a conversation without a title the command that its user ran, until its first message."""
    title = _make_title(f"{COMMAND_TITLE}{command}")
    connection.execute("UPDATE conversations SET title = ? WHERE id = ? AND title = ''", (title, conversation_id))
    give_slug(connection, conversation_id)


def number_title(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Put a number ahead of the title of a copy; a copy of no message is named by its first one, as any other."""
    row = connection.execute(
        "SELECT title, title_by, EXISTS (SELECT 1 FROM messages WHERE conversation_id = c.id) AS begun"
        " FROM conversations AS c WHERE id = ?",
        (conversation_id,),
    ).fetchone()
    title = _find_free_number(connection, row["title"]) if row["begun"] or row["title_by"] else ""
    connection.execute("UPDATE conversations SET title = ? WHERE id = ?", (title, conversation_id))
    give_slug(connection, conversation_id)


def _find_free_number(connection: sqlite3.Connection, title: str) -> str:
    """The title with the least number that no other conversation has."""
    name = _TITLE_NUMBER.sub("", title)
    if not name:
        return ""
    taken = {
        str(row["title"])
        for row in connection.execute(
            "SELECT title FROM conversations WHERE title LIKE ? ESCAPE '\\'", (f"(%) {escape_like(name)}",)
        )
    }
    return next(one for number in itertools.count(2) if (one := f"({number}) {name}") not in taken)


def _make_title(text: str) -> str:
    return " ".join(text.split())[:TITLE_LENGTH].rstrip()
