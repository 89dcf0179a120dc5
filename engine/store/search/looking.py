"""A search in all conversations: candidates of the index newest first, verified on their texts, then ranked.

The index holds trigrams without places, so it gives texts that may contain a word; each is read and looked through.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from engine.codec import storable
from engine.records import SearchAnswer, SearchHit
from engine.search import SearchQuery, Speaker, folded
from engine.store.search.backlog import progress
from engine.store.search.plan import QueryPlan, plan_for
from engine.store.search.ranking import Candidate, best, snippet

CANDIDATE_CHARACTERS: Final = 8_000_000
"""Text that is looked through for one answer, at least one candidate whatever its size."""
FIRST_WINDOW: Final = 20_000
"""Rows of the index that are filtered before the clock is looked at; more where that was quick."""
QUICK_SECONDS: Final = 0.01


class _Looked(Struct):
    """Results of the search down the ids."""

    found: list[Candidate]
    lowest: int
    """Lowest id searched so far."""
    characters: int = 0
    shared: dict[str, int] | None = msgspec.field(default_factory=dict[str, int])
    """Last shared message by conversation: those up to it are in the replacing branch too. None in the trash."""


def search(
    connection: sqlite3.Connection,
    query: SearchQuery,
    *,
    limit: int,
    below: int | None,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> SearchAnswer:
    """The newest `limit` matches among the ids under `below`, the best first; after `seconds` those found by then."""
    words = tuple(storable(word) for word in query.words)
    unindexed = _unindexed(connection)
    plan = None if query.is_empty else plan_for(connection, query, words, below)
    if plan is None:
        return SearchAnswer((), unindexed=unindexed)
    looked = _Looked([], plan.high + 1, shared=None if query.trash else {})
    deadline = clock() + seconds
    for row in _rows(connection, plan, looked, deadline, clock):
        looked.lowest = row["id"]
        _look(connection, row, words, query.without, looked)
        full = len(looked.found) >= limit or looked.characters >= CANDIDATE_CHARACTERS
        if full or clock() > deadline:
            break
    ranked = best(looked.found, words, time.time())
    hits = tuple(hit for hit in (_hit(connection, one, words) for one in ranked) if hit is not None)
    more = looked.lowest > plan.low
    return SearchAnswer(
        hits,
        next=looked.lowest if more else None,
        reached=_time_of(connection, looked.lowest) if more else 0.0,
        unindexed=unindexed,
    )


def _rows(
    connection: sqlite3.Connection, plan: QueryPlan, looked: _Looked, deadline: float, clock: Callable[[], float]
) -> Iterator[Any]:
    """Rows from high ids to low, in windows where a filter might pass over very many before it gives one."""
    high = plan.high
    width = FIRST_WINDOW if plan.windowed else high - plan.low + 1
    while high >= plan.low:
        first, began = max(high - width + 1, plan.low), clock()
        yield from connection.execute(plan.sql, {**plan.values, "first": first, "last": high})
        looked.lowest, high = first, first - 1
        if clock() > deadline:
            return
        if clock() - began < QUICK_SECONDS:
            width *= 2


def _look(
    connection: sqlite3.Connection, row: Any, words: tuple[str, ...], without: tuple[str, ...], looked: _Looked
) -> None:
    """Read the text of a row and keep it where it holds every word and none of those excluded."""
    if looked.shared is not None and _is_double(connection, row, looked.shared):
        return
    text = connection.execute("SELECT text FROM search_texts WHERE id = ?", (row["id"],)).fetchone()["text"] or ""
    looked.characters += len(text)
    low = folded(text)
    if all(folded(word) in low for word in words) and not any(folded(word) in low for word in without):
        is_call = row["speaker"] == Speaker.TOOL
        looked.found.append(Candidate(row["source"], row["conversation_id"], is_call, row["created_at"], text))


def _is_double(connection: sqlite3.Connection, row: Any, shared: dict[str, int]) -> bool:
    """True when it is in a branch that a rewind left, and also in the one that replaced it."""
    conversation_id = row["conversation_id"]
    if conversation_id not in shared:
        found = connection.execute(_SHARED, (conversation_id,)).fetchone()
        shared[conversation_id] = int(found["shared"] or 0)
    if not shared[conversation_id]:
        return False
    found = connection.execute(_SEQ, (row["source"], row["source"])).fetchone()
    return found is not None and int(found["seq"]) <= shared[conversation_id]


_SHARED: Final = """WITH RECURSIVE
    pair (old, head) AS (SELECT c.id, head.id FROM conversations AS c
        JOIN conversations AS head ON head.id = c.superseded_by WHERE c.id = ? AND head.deleted_at IS NULL),
    up (start, id, branch_of, branch_seq, shared, depth) AS (
        SELECT c.id, c.id, c.branch_of, c.branch_seq, 1 << 62, 0 FROM conversations AS c, pair
            WHERE c.id IN (pair.old, pair.head)
        UNION ALL SELECT up.start, c.id, c.branch_of, c.branch_seq, MIN(up.shared, up.branch_seq), depth + 1
            FROM conversations AS c JOIN up ON c.id = up.branch_of WHERE depth < 1000)
    SELECT MAX(MIN(a.shared, b.shared)) AS shared FROM pair JOIN up AS a ON a.start = pair.old
        JOIN up AS b ON b.start = pair.head AND b.id = a.id"""
"""Last common message of a conversation and the one that replaced it: that of their nearest common ancestor."""
_LEFT: Final = """EXISTS (SELECT 1 FROM conversations AS head
    WHERE head.id = c.superseded_by AND head.deleted_at IS NULL)"""
_SEQ: Final = """SELECT seq FROM messages WHERE id = ? UNION ALL
    SELECT m.seq FROM tool_calls AS t JOIN messages AS m ON m.id = t.assistant_message_id WHERE t.id = ?"""


def _hit(connection: sqlite3.Connection, candidate: Candidate, words: tuple[str, ...]) -> SearchHit | None:
    """Build the row for the screen; None for a hidden message."""
    if candidate.is_call:
        source = "tool_calls AS t JOIN messages AS m ON m.id = t.assistant_message_id"
        columns, key = "t.tool_use_id AS call_id", "t.id"
    else:
        source, columns, key = "messages AS m", "'' AS call_id", "m.id"
    row = connection.execute(
        f"""SELECT m.conversation_id, m.seq, m.role, c.title, c.cwd, c.archived_at, {_LEFT} AS left_behind,
            {columns}
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
        left_behind=bool(row["left_behind"]),
    )


def _unindexed(connection: sqlite3.Connection) -> float:
    how_far = progress(connection)
    return 1 - how_far.done / how_far.total if how_far.total else 0.0


def _time_of(connection: sqlite3.Connection, row_id: int) -> float:
    row = connection.execute(
        "SELECT created_at FROM search_rows WHERE id >= ? ORDER BY id LIMIT 1", (row_id,)
    ).fetchone()
    return float(row["created_at"]) if row is not None else 0.0
