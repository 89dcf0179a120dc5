"""Plan of a search: by the index from new to old, or, when filters leave little, by reading that."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.codec import storable
from engine.search import SearchQuery
from engine.store.conversations import escape_like

TRIGRAM: Final = 3
FEW: Final = 5_000
"""Messages of the conversations meant up to which all are read: 75 ms, and no way down past a million others."""
COUNTED: Final = 200_000
"""Rows of a time that are looked at to learn which ids they have: 15 ms."""
_COLUMNS: Final = "r.id, r.source, r.conversation_id, r.speaker, r.created_at"


class QueryPlan(Struct, frozen=True):
    """The query for rows of a window of ids, newest first, and the ids there are."""

    sql: str
    """Statement whose named values `first` and `last` are the window."""
    values: dict[str, str | float]
    low: int
    high: int
    windowed: bool
    """True when many rows may be skipped before one is returned."""


class _Filter(Struct, frozen=True):
    """Conditions in SQL and their values: for conversations, and for rows of the index."""

    conversation: str
    row: str
    values: dict[str, str | float]


def plan_for(
    connection: sqlite3.Connection, query: SearchQuery, words: tuple[str, ...], below: int | None
) -> QueryPlan | None:
    """The plan for a query among the ids under `below`; None where nothing is indexed."""
    ends = connection.execute(_ENDS).fetchone()
    if ends["low"] is None:
        return None
    low, high = int(ends["low"]), int(ends["high"]) if below is None else below - 1
    asked = _filter(query)
    if _narrows(query) and _are_few(connection, asked):
        return QueryPlan(_reading(asked), asked.values, low, high, windowed=False)
    if query.before is not None:
        low, high = _ids_of_time(connection, asked, low, high)
    plain = SearchQuery(words=query.words, without=query.without)
    trigrams = list(dict.fromkeys(part for word in words for part in _trigrams(word)))
    values = dict(asked.values)
    if trigrams:
        values["match"] = " AND ".join('"' + part.replace('"', '""') + '"' for part in trigrams)
    return QueryPlan(_indexed(asked, by_index=bool(trigrams)), values, low, high, windowed=query != plain)


_ENDS: Final = "SELECT (SELECT MIN(id) FROM search_rows) AS low, (SELECT MAX(id) FROM search_rows) AS high"
"""Ends of the index in two queries. One query for both would read every row: SQLite takes one of them from the end of a
table, never two.
"""


def _indexed(asked: _Filter, *, by_index: bool) -> str:
    """Rows whose texts hold every trigram; all rows where the words are too short to have one."""
    if by_index:
        source, key, match = (
            "search_index AS f CROSS JOIN search_rows AS r ON r.id = f.rowid",
            "f.rowid",
            "search_index",
        )
        matching = f"{match} MATCH :match AND"
    else:
        source, key, matching = "search_rows AS r", "r.id", ""
    return f"""SELECT {_COLUMNS} FROM {source} WHERE {matching} {key} BETWEEN :first AND :last AND {asked.row}
        AND r.conversation_id IN (SELECT id FROM conversations WHERE {asked.conversation}) ORDER BY {key} DESC"""


def _reading(asked: _Filter) -> str:
    """Every row of the conversations meant."""
    wanted = f"""m.conversation_id IN (SELECT id FROM conversations WHERE {asked.conversation})
        AND r.id BETWEEN :first AND :last AND {asked.row}"""
    return f"""SELECT {_COLUMNS} FROM messages AS m CROSS JOIN search_rows AS r ON r.source = m.id WHERE {wanted}
        UNION ALL SELECT {_COLUMNS} FROM messages AS m CROSS JOIN tool_calls AS t ON t.assistant_message_id = m.id
        CROSS JOIN search_rows AS r ON r.source = t.id WHERE {wanted} ORDER BY 1 DESC"""


def _filter(query: SearchQuery) -> _Filter:
    conversation = ["deleted_at IS NOT NULL" if query.trash else "deleted_at IS NULL"]
    conversation.append("partial IS NULL")
    row, values = ["1"], dict[str, str | float]()
    if query.folder is not None:
        folder = storable(str(query.folder))
        conversation.append("(cwd = :folder OR cwd LIKE :below ESCAPE '\\')")
        values |= {"folder": folder, "below": f"{escape_like(folder.rstrip('/'))}/%"}
    if query.title:
        conversation.append("title LIKE :title ESCAPE '\\'")
        values["title"] = f"%{escape_like(storable(query.title))}%"
    if query.after is not None:
        row.append("r.created_at >= :after")
        values["after"] = query.after
    if query.before is not None:
        row.append("r.created_at < :before")
        values["before"] = query.before
    if query.speakers:
        names = sorted(query.speakers)
        row.append(f"r.speaker IN ({', '.join(f':speaker{number}' for number in range(len(names)))})")
        values |= {f"speaker{number}": name for number, name in enumerate(names)}
    return _Filter(" AND ".join(conversation), " AND ".join(row), values)


def _narrows(query: SearchQuery) -> bool:
    return query.folder is not None or bool(query.title) or query.trash


def _are_few(connection: sqlite3.Connection, asked: _Filter) -> bool:
    """True when the selected conversations have so few messages that all may be read."""
    row = connection.execute(
        f"""SELECT count(*) AS count FROM (SELECT 1 FROM messages
            WHERE conversation_id IN (SELECT id FROM conversations WHERE {asked.conversation}) LIMIT {FEW + 1})""",
        asked.values,
    ).fetchone()
    return int(row["count"]) <= FEW


def _ids_of_time(connection: sqlite3.Connection, asked: _Filter, low: int, high: int) -> tuple[int, int]:
    """The ids that texts of this time have; `low` to `high` where there are too many to look at."""
    row = connection.execute(
        f"""SELECT MIN(id) AS low, MAX(id) AS high, count(*) AS count FROM (SELECT r.id FROM search_rows AS r
            WHERE r.created_at >= :since AND r.created_at < :before ORDER BY r.created_at DESC LIMIT {COUNTED + 1})""",
        {"since": asked.values.get("after", 0.0), "before": asked.values["before"]},
    ).fetchone()
    if row["count"] > COUNTED:
        return low, high
    if row["low"] is None:
        return low, low - 1
    return max(low, int(row["low"])), min(high, int(row["high"]))


def _trigrams(word: str) -> Iterator[str]:
    for place in range(len(word) - TRIGRAM + 1):
        yield word[place : place + TRIGRAM]
