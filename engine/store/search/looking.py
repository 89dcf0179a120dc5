"""A search in all conversations: candidates of the index newest first, verified on their texts, then ranked.

The index holds trigrams without places, so it gives texts that may contain a word; each is read and looked through.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from engine.codec import storable
from engine.records import SearchAnswer, SearchHit
from engine.search import SearchQuery, Speaker
from engine.store.conversations import escape_like
from engine.store.search.backlog import progress
from engine.store.search.ranking import Candidate, best, snippet

CANDIDATE_CHARACTERS: Final = 8_000_000
"""Text that is looked through for one answer, at least one candidate whatever its size."""
FIRST_WINDOW: Final = 20_000
"""Rows of the index that are filtered before the clock is looked at; more where that was quick."""
QUICK_SECONDS: Final = 0.01
TRIGRAM: Final = 3


_ENDS: Final = "SELECT (SELECT MIN(id) FROM search_rows) AS low, (SELECT MAX(id) FROM search_rows) AS high"
"""Both at once would read every row: SQLite takes one of them from the end of a table, never two."""


class _Statement(Struct, frozen=True):
    """The query for rows in a window of ids; its values begin with those of the window."""

    sql: str
    values: tuple[str | float, ...]
    filtered: bool
    """Whether rows may be passed over in great number."""


class _Looked(Struct):
    """What was found on the way down the ids."""

    found: list[Candidate]
    lowest: int
    """Everything from this id on was looked at."""
    characters: int = 0


def search(
    connection: sqlite3.Connection,
    query: SearchQuery,
    *,
    limit: int,
    below: int | None,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> SearchAnswer:
    """The newest `limit` matches among the ids under `below`, the best first; after `seconds` what there is by then."""
    words = tuple(storable(word) for word in query.words)
    ends = connection.execute(_ENDS).fetchone()
    unindexed = _unindexed(connection)
    if query.is_empty or ends["low"] is None:
        return SearchAnswer((), unindexed=unindexed)
    low = int(ends["low"])
    high = int(ends["high"]) if below is None else below - 1
    statement = _statement(query, words)
    looked = _Looked([], high + 1)
    deadline = clock() + seconds
    for row in _rows(connection, statement, low, looked, deadline, clock):
        looked.lowest = row["id"]
        _look(connection, row, words, query.without, looked)
        full = len(looked.found) >= limit or looked.characters >= CANDIDATE_CHARACTERS
        if full or clock() > deadline:
            break
    ranked = best(looked.found, words, time.time())
    hits = tuple(hit for hit in (_hit(connection, one, words) for one in ranked) if hit is not None)
    more = looked.lowest > low
    return SearchAnswer(
        hits,
        next=looked.lowest if more else None,
        reached=_time_of(connection, looked.lowest) if more else 0.0,
        unindexed=unindexed,
    )


def _rows(
    connection: sqlite3.Connection,
    statement: _Statement,
    low: int,
    looked: _Looked,
    deadline: float,
    clock: Callable[[], float],
) -> Iterator[Any]:
    """Rows from high ids to low, in windows where a filter might pass over very many before it gives one."""
    high = looked.lowest - 1
    width = FIRST_WINDOW if statement.filtered else high - low + 1
    while high >= low:
        first, began = max(high - width + 1, low), clock()
        yield from connection.execute(statement.sql, (first, high, *statement.values))
        looked.lowest, high = first, first - 1
        if clock() > deadline:
            return
        if clock() - began < QUICK_SECONDS:
            width *= 2


def _look(
    connection: sqlite3.Connection, row: Any, words: tuple[str, ...], without: tuple[str, ...], looked: _Looked
) -> None:
    """Read the text of a row and keep it where it holds every word and none of those excluded."""
    text = connection.execute("SELECT text FROM search_texts WHERE id = ?", (row["id"],)).fetchone()["text"] or ""
    looked.characters += len(text)
    low = text.lower()
    if all(word.lower() in low for word in words) and not any(word.lower() in low for word in without):
        looked.found.append(Candidate(row["source"], row["speaker"] == Speaker.TOOL, row["created_at"], text))


def _statement(query: SearchQuery, words: tuple[str, ...]) -> _Statement:
    """Ids in a window that may match, with their rows, newest first."""
    trigrams = list(dict.fromkeys(part for word in words for part in _trigrams(word)))
    conditions, values = _conditions(query)
    window = "f.rowid" if trigrams else "r.id"
    source = "search_index AS f CROSS JOIN search_rows AS r ON r.id = f.rowid" if trigrams else "search_rows AS r"
    if trigrams:
        conditions.append("search_index MATCH ?")
        values.append(" AND ".join('"' + part.replace('"', '""') + '"' for part in trigrams))
    sql = f"""SELECT r.id, r.source, r.speaker, r.created_at FROM {source}
        WHERE {window} BETWEEN ? AND ? AND {" AND ".join(conditions)} ORDER BY {window} DESC"""
    plain = SearchQuery(words=query.words, without=query.without)
    return _Statement(sql, tuple(values), filtered=query != plain)


def _trigrams(word: str) -> Iterator[str]:
    for place in range(len(word) - TRIGRAM + 1):
        yield word[place : place + TRIGRAM]


def _conditions(query: SearchQuery) -> tuple[list[str], list[str | float]]:
    """What the filters ask of a row of the index, and of its conversation."""
    wanted = ["deleted_at IS NOT NULL" if query.trash else "deleted_at IS NULL"]
    conditions, values = [], list[str | float]()
    if query.folder is not None:
        folder = storable(str(query.folder))
        wanted.append("(cwd = ? OR cwd LIKE ? ESCAPE '\\')")
        values += [folder, f"{escape_like(folder.rstrip('/'))}/%"]
    if query.title:
        wanted.append("title LIKE ? ESCAPE '\\'")
        values.append(f"%{escape_like(storable(query.title))}%")
    conditions.append(f"r.conversation_id IN (SELECT id FROM conversations WHERE {' AND '.join(wanted)})")
    if query.after is not None:
        conditions.append("r.created_at >= ?")
        values.append(query.after)
    if query.before is not None:
        conditions.append("r.created_at < ?")
        values.append(query.before)
    if query.speakers:
        conditions.append(f"r.speaker IN ({', '.join('?' * len(query.speakers))})")
        values += sorted(query.speakers)
    return conditions, values


def _hit(connection: sqlite3.Connection, candidate: Candidate, words: tuple[str, ...]) -> SearchHit | None:
    """The row of the screen; None where nobody sees its message."""
    if candidate.is_call:
        source = "tool_calls AS t JOIN messages AS m ON m.id = t.assistant_message_id"
        columns, key = "t.tool_use_id AS call_id", "t.id"
    else:
        source, columns, key = "messages AS m", "'' AS call_id", "m.id"
    row = connection.execute(
        f"""SELECT m.conversation_id, m.seq, m.role, c.title, c.cwd, c.archived_at, {columns}
            FROM {source} JOIN conversations AS c ON c.id = m.conversation_id WHERE {key} = ? AND m.silent = 0""",
        (candidate.source,),
    ).fetchone()
    if row is None:
        return None
    return SearchHit(
        conversation_id=row["conversation_id"],
        title=row["title"],
        cwd=Path(row["cwd"]),
        seq=row["seq"],
        speaker=Speaker.TOOL if candidate.is_call else Speaker(row["role"]),
        snippet=snippet(candidate.text, words),
        created_at=candidate.created_at,
        call_id=row["call_id"],
        archived=row["archived_at"] is not None,
    )


def _unindexed(connection: sqlite3.Connection) -> float:
    how_far = progress(connection)
    return 1 - how_far.done / how_far.total if how_far.total else 0.0


def _time_of(connection: sqlite3.Connection, row_id: int) -> float:
    row = connection.execute(
        "SELECT created_at FROM search_rows WHERE id >= ? ORDER BY id LIMIT 1", (row_id,)
    ).fetchone()
    return float(row["created_at"]) if row is not None else 0.0
