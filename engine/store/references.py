"""Finds the conversations of the user that a word names; the trash is left out."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from engine.codec import storable
from engine.records import ConversationSummary
from engine.store.conversations import LISTED, NOT_SUPERSEDED, escape_like, summaries
from engine.store.ownership import Instance
from tools.slugs import slug_of

_USERS = "c.kind = 'user' AND c.deleted_at IS NULL AND c.partial IS NULL"


def find(connection: sqlite3.Connection, reference: str, instance: Instance) -> list[ConversationSummary]:
    """Find by whole id, else by the beginning of an id, the slug and the title, all of them together."""
    wanted = storable(reference)
    if not wanted:
        return []
    begins = f"{escape_like(wanted)}%"
    named = f"c.id LIKE ? ESCAPE '\\' OR (c.slug = ? OR c.title = ?) AND {NOT_SUPERSEDED}"
    return (
        _where(connection, instance, "c.id = ?", wanted)
        or _where(connection, instance, named, begins, wanted, wanted)
        or _those(connection, instance, _of_older_files(connection, wanted))
    )


def find_part(connection: sqlite3.Connection, reference: str, instance: Instance) -> list[ConversationSummary]:
    """Find by the beginning of the title or slug, else by a part of the title, ignoring case."""
    wanted, slug = storable(reference).strip().casefold(), slug_of(reference)
    if not wanted:
        return []
    titles = connection.execute(
        f"SELECT c.id, c.title, c.slug FROM conversations AS c WHERE {_USERS} AND c.title <> '' AND {NOT_SUPERSEDED}"
    ).fetchall()
    begin = [
        row["id"]
        for row in titles
        if row["title"].casefold().startswith(wanted) or (slug and (row["slug"] or "").startswith(slug))
    ]
    hold = () if begin else (row["id"] for row in titles if wanted in row["title"].casefold())
    return _those(connection, instance, begin or hold)


def _of_older_files(connection: sqlite3.Connection, wanted: str) -> list[str]:
    """Ids of conversations without a slug whose title would give this one: they were stored before there were slugs."""
    rows = connection.execute(f"SELECT c.id, c.title FROM conversations AS c WHERE {_USERS} AND c.slug IS NULL")
    return [row["id"] for row in rows if slug_of(row["title"]) == wanted]


def _those(connection: sqlite3.Connection, instance: Instance, ids: Iterable[str]) -> list[ConversationSummary]:
    wanted = json.dumps(list(ids))
    chosen = f"c.id IN (SELECT value FROM json_each(?)) AND {NOT_SUPERSEDED}"
    return _where(connection, instance, chosen, wanted) if wanted != "[]" else []


def _where(
    connection: sqlite3.Connection, instance: Instance, condition: str, *values: str
) -> list[ConversationSummary]:
    rows = connection.execute(
        f"{LISTED} WHERE {_USERS} AND ({condition}) ORDER BY c.updated_at DESC, c.rowid DESC", values
    ).fetchall()
    return summaries(connection, rows, instance)
