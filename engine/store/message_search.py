"""Search in all messages by the index, finding in one conversation without it, and indexing of older messages."""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from engine.codec import storable
from engine.ports.storage import IndexProgress
from engine.records import FoundText, SearchAnswer, SearchHit
from engine.search import SearchQuery, Speaker, fold_case, occurrences
from engine.store.names import escape_like

FIRST_ID: Final = 200_000_000
"""The id of the first row; older messages are numbered down from here, so ids rise with time, in four bytes."""
INDEXED_LENGTH: Final = 200_000
"""Characters of one text that are indexed: a pasted file of many megabytes must not delay its own commit."""
CALL_TEXT: Final = f"""substr(COALESCE(CASE WHEN json_valid(t.input_json)
    THEN (SELECT group_concat(atom, char(10)) FROM json_tree(t.input_json) WHERE type = 'text')
    ELSE t.input_json END, '') || char(10) || t.output_text, 1, {INDEXED_LENGTH})"""
"""Input of a tool call `t`, without the JSON around it, and its output, as the triggers of `schema.sql` index it.

Triggers keep the index true whatever writes `messages` and `tool_calls`. Measured against `detail=full`, `detail=none`
takes a fifth of the disk and a third of the time; the price is that phrases are verified on the candidates' texts.
"""
OLDER_TEXTS: Final = """
    SELECT m.id AS source, m.conversation_id, m.role AS speaker, m.created_at, m.rowid AS place, -1 AS ordinal
        FROM messages AS m WHERE m.rowid BETWEEN :first AND :last
        AND m.silent = 0 AND m.role <> 'system' AND m.text <> ''
    UNION ALL
    SELECT t.id, t.conversation_id, 'tool', COALESCE(t.ended_at, t.started_at, 0), m.rowid, t.ordinal
        FROM messages AS m JOIN tool_calls AS t ON t.assistant_message_id = m.id
        WHERE m.rowid BETWEEN :first AND :last
        AND t.status IN ('success', 'error', 'cancelled', 'skipped', 'interrupted')
    ORDER BY place, ordinal"""
"""Texts to index of the messages `first` to `last` by rowid, in their order."""
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


def make_plan(
    connection: sqlite3.Connection, query: SearchQuery, words: tuple[str, ...], below: int | None
) -> QueryPlan | None:
    """The plan for a query among the ids under `below`; None where nothing is indexed."""
    ends = connection.execute(_ENDS).fetchone()
    if ends["low"] is None:
        return None
    low, high = int(ends["low"]), int(ends["high"]) if below is None else below - 1
    asked = _make_filter(query)
    if (query.folder is not None or bool(query.title) or query.trash) and _are_few(connection, asked):
        return QueryPlan(_reading_query(asked), asked.values, low, high, windowed=False)
    if query.before is not None:
        low, high = _find_ids_of_time(connection, asked, low, high)
    plain = SearchQuery(words=query.words, without=query.without)
    trigrams = list(dict.fromkeys(part for word in words for part in _split_trigrams(word)))
    values = dict(asked.values)
    if trigrams:
        values["match"] = " AND ".join('"' + part.replace('"', '""') + '"' for part in trigrams)
    return QueryPlan(_index_query(asked, by_index=bool(trigrams)), values, low, high, windowed=query != plain)


_ENDS: Final = "SELECT (SELECT MIN(id) FROM search_rows) AS low, (SELECT MAX(id) FROM search_rows) AS high"
"""Ends of the index in two queries. One query for both would read every row: SQLite takes one of them from the end of a
table, never two.
"""


def _index_query(asked: _Filter, *, by_index: bool) -> str:
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


def _reading_query(asked: _Filter) -> str:
    """Every row of the conversations meant."""
    wanted = f"""m.conversation_id IN (SELECT id FROM conversations WHERE {asked.conversation})
        AND r.id BETWEEN :first AND :last AND {asked.row}"""
    return f"""SELECT {_COLUMNS} FROM messages AS m CROSS JOIN search_rows AS r ON r.source = m.id WHERE {wanted}
        UNION ALL SELECT {_COLUMNS} FROM messages AS m CROSS JOIN tool_calls AS t ON t.assistant_message_id = m.id
        CROSS JOIN search_rows AS r ON r.source = t.id WHERE {wanted} ORDER BY 1 DESC"""


def _make_filter(query: SearchQuery) -> _Filter:
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


def _are_few(connection: sqlite3.Connection, asked: _Filter) -> bool:
    """True when the selected conversations have so few messages that all may be read."""
    row = connection.execute(
        f"""SELECT count(*) AS count FROM (SELECT 1 FROM messages
            WHERE conversation_id IN (SELECT id FROM conversations WHERE {asked.conversation}) LIMIT {FEW + 1})""",
        asked.values,
    ).fetchone()
    return int(row["count"]) <= FEW


def _find_ids_of_time(connection: sqlite3.Connection, asked: _Filter, low: int, high: int) -> tuple[int, int]:
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


def _split_trigrams(word: str) -> Iterator[str]:
    for place in range(len(word) - TRIGRAM + 1):
        yield word[place : place + TRIGRAM]


SATURATION: Final = 1.2
LENGTH_SHARE: Final = 0.75
"""k1 and b of BM25, as everywhere."""
USUAL_LENGTH: Final = 1_000
"""Characters of a usual text; the true average would be one more figure to keep."""
WHOLE_WORD: Final = 1.0
"""Additional weight of a word that is no part of another one."""
HALF_LIFE: Final = 30 * 86_400.0
"""Seconds after which being new counts half."""
OLD: Final = 0.4
"""Least factor of a score, however old the text is."""
AGAIN: Final = 0.9
"""Factor of each further hit of the same conversation, so that one long conversation hides no others."""
SNIPPET_BEFORE: Final = 40
SNIPPET_LENGTH: Final = 200
"""Characters of a snippet, and the number of them before the match."""
_BLANKS: Final = re.compile(r"\s+")
FAR: Final = 20_000
"""Characters behind the first match in which the best place for a snippet is looked for."""


class Candidate(Struct, frozen=True):
    """A text that matches; `source` is the id of its message or tool call."""

    source: str
    conversation_id: str
    is_call: bool
    created_at: float
    text: str


def rank(candidates: Sequence[Candidate], words: Sequence[str], now: float) -> list[Candidate]:
    """The candidates by BM25 and age; without words simply the newest first."""
    if not words:
        return sorted(candidates, key=lambda one: -one.created_at)
    scored = sorted(((_rate(one, words, now), one) for one in candidates), key=lambda each: _rank_key(*each))
    seen: Counter[str] = Counter()
    spread: list[tuple[float, Candidate]] = []
    for score, one in scored:
        spread.append((score * AGAIN ** seen[one.conversation_id], one))
        seen[one.conversation_id] += 1
    return [one for _, one in sorted(spread, key=lambda each: _rank_key(*each))]


def _rank_key(score: float, candidate: Candidate) -> tuple[float, float]:
    return -score, -candidate.created_at


def _rate(candidate: Candidate, words: Sequence[str], now: float) -> float:
    text = candidate.text
    penalty = 1 - LENGTH_SHARE + LENGTH_SHARE * len(text) / USUAL_LENGTH
    relevance = sum(_rate_word(text, word, penalty) for word in words)
    age = max(now - candidate.created_at, 0.0)
    return relevance * (OLD + (1 - OLD) * math.exp2(-age / HALF_LIFE))


def _rate_word(text: str, word: str, penalty: float) -> float:
    """BM25 of one word; length serves as rarity, since every candidate contains all words."""
    places = occurrences(text, (word,))
    count = len(places)
    rarity = math.log2(1 + len(word))
    alone = any(_is_whole_word(text, start, end) for start, end in places[:8])
    return rarity * (count * (SATURATION + 1) / (count + SATURATION * penalty) + WHOLE_WORD * alone)


def _is_whole_word(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (before.isalnum() or after.isalnum())


def make_snippet(text: str, words: Sequence[str]) -> str:
    """One line around the densest occurrence of the words."""
    place = _find_densest_place(text, words)
    start = _find_word_start(text, max(0, place - SNIPPET_BEFORE), place)
    part = " ".join(text[start : start + SNIPPET_LENGTH].split())
    return f"{'…' if start else ''}{part}{'…' if start + SNIPPET_LENGTH < len(text) else ''}"


def _find_word_start(text: str, start: int, end: int) -> int:
    """The first place from `start` on at which a word begins; `start` where none does before `end`."""
    if not start or text[start - 1].isspace():
        return start
    found = _BLANKS.search(text, start, end)
    return found.end() if found else start


def _find_densest_place(text: str, words: Sequence[str]) -> int:
    places = sorted(
        (start, word) for word in words for start, _ in occurrences(text[: _find_reach(text, words)], (word,))
    )
    near: Counter[str] = Counter()
    best, most, end = 0, 0, 0
    for start, word in places:
        while end < len(places) and places[end][0] < start + SNIPPET_LENGTH - SNIPPET_BEFORE:
            near[places[end][1]] += 1
            end += 1
        if len(near) > most:
            best, most = start, len(near)
        near -= Counter((word,))
    return best


def _find_reach(text: str, words: Sequence[str]) -> int:
    """Number of characters searched: up to `FAR` behind the first occurrence of the word that comes last."""
    low = fold_case(text)
    return max((low.find(fold_case(word)) for word in words), default=0) + FAR


SLICE_BYTES: Final = 120_000
"""Bytes of text indexed in one transaction: about 15 ms, the longest delay of a move."""
SLICE_MESSAGES: Final = 400


def read_progress(connection: sqlite3.Connection) -> IndexProgress:
    """Number of the older messages that are indexed."""
    row = connection.execute("SELECT below, total FROM search_backlog").fetchone()
    return IndexProgress(row["total"] - (row["below"] - 1), row["total"])


def index_slice(connection: sqlite3.Connection) -> IndexProgress:
    """Index the newest of the older messages that are not."""
    below = int(connection.execute("SELECT below FROM search_backlog").fetchone()["below"])
    first = _first_of_slice(connection, below)
    rows = connection.execute(OLDER_TEXTS, {"first": first, "last": below - 1}).fetchall()
    known = {row["source"] for row in rows if _is_indexed(connection, row["source"])}
    new = [row for row in rows if row["source"] not in known]
    lowest = connection.execute("SELECT MIN(id) AS id FROM search_rows").fetchone()["id"]
    start = min(FIRST_ID if lowest is None else int(lowest), FIRST_ID) - len(new)
    connection.executemany(
        "INSERT INTO search_rows (id, source, conversation_id, speaker, created_at) VALUES (?, ?, ?, ?, ?)",
        [
            (start + number, row["source"], row["conversation_id"], row["speaker"], row["created_at"])
            for number, row in enumerate(new)
        ],
    )
    connection.execute(
        """INSERT INTO search_index (rowid, text)
            SELECT id, text FROM search_texts WHERE id BETWEEN ? AND ? ORDER BY id""",
        (start, start + len(new) - 1),
    )
    connection.execute("UPDATE search_backlog SET below = ?", (first,))
    return read_progress(connection)


def _is_indexed(connection: sqlite3.Connection, source: str) -> bool:
    """True when it was rewritten since, and so indexed by its trigger."""
    return connection.execute("SELECT 1 FROM search_rows WHERE source = ?", (source,)).fetchone() is not None


def _first_of_slice(connection: sqlite3.Connection, below: int) -> int:
    """The rowid at which the slice under `below` begins; 1 when nothing is left under it."""
    rows = connection.execute(
        """SELECT rowid, length(text) + COALESCE((SELECT SUM(length(input_json) + length(output_text))
            FROM tool_calls WHERE assistant_message_id = m.id), 0) AS size
            FROM messages AS m WHERE rowid < ? ORDER BY rowid DESC LIMIT ?""",
        (below, SLICE_MESSAGES),
    )
    first, size, count = 1, 0, 0
    for row in rows:
        size, count, first = size + int(row["size"]), count + 1, int(row["rowid"])
        if size >= SLICE_BYTES:
            return first
    return first if count == SLICE_MESSAGES else 1


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


def search_messages(
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
    how_far = read_progress(connection)
    unindexed = 1 - how_far.done / how_far.total if how_far.total else 0.0
    plan = None if query.is_empty else make_plan(connection, query, words, below)
    if plan is None:
        return SearchAnswer((), unindexed=unindexed)
    looked = _Looked([], plan.high + 1, shared=None if query.trash else {})
    deadline = clock() + seconds
    for row in _read_candidates(connection, plan, looked, deadline, clock):
        looked.lowest = row["id"]
        _check_candidate(connection, row, words, query.without, looked)
        full = len(looked.found) >= limit or looked.characters >= CANDIDATE_CHARACTERS
        if full or clock() > deadline:
            break
    ranked = rank(looked.found, words, time.time())
    hits = tuple(hit for hit in (_make_hit(connection, one, words) for one in ranked) if hit is not None)
    more = looked.lowest > plan.low
    return SearchAnswer(
        hits,
        next=looked.lowest if more else None,
        reached=_find_time(connection, looked.lowest) if more else 0.0,
        unindexed=unindexed,
    )


def _read_candidates(
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


def _check_candidate(
    connection: sqlite3.Connection, row: Any, words: tuple[str, ...], without: tuple[str, ...], looked: _Looked
) -> None:
    """Read the text of a row and keep it where it holds every word and none of those excluded."""
    if looked.shared is not None and _is_double(connection, row, looked.shared):
        return
    text = connection.execute("SELECT text FROM search_texts WHERE id = ?", (row["id"],)).fetchone()["text"] or ""
    looked.characters += len(text)
    low = fold_case(text)
    if all(fold_case(word) in low for word in words) and not any(fold_case(word) in low for word in without):
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


def _make_hit(connection: sqlite3.Connection, candidate: Candidate, words: tuple[str, ...]) -> SearchHit | None:
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
        snippet=make_snippet(candidate.text, words),
        created_at=candidate.created_at,
        call_id=row["call_id"],
        archived=row["archived_at"] is not None,
        left_behind=bool(row["left_behind"]),
    )


def _find_time(connection: sqlite3.Connection, row_id: int) -> float:
    row = connection.execute(
        "SELECT created_at FROM search_rows WHERE id >= ? ORDER BY id LIMIT 1", (row_id,)
    ).fetchone()
    return float(row["created_at"]) if row is not None else 0.0


def find_text(connection: sqlite3.Connection, conversation_id: str, text: str) -> tuple[FoundText, ...]:
    """Find `text`, in the order of the transcript; a message before its calls."""
    wanted = storable(text)
    if not wanted:
        return ()
    found = [
        (seq, ordinal, FoundText(seq, call_id, count))
        for seq, ordinal, call_id, content in _select_texts(connection, conversation_id, wanted)
        if (count := fold_case(content or "").count(fold_case(wanted)))
    ]
    return tuple(one for _, _, one in sorted(found, key=lambda each: each[:2]))


def _select_texts(
    connection: sqlite3.Connection, conversation_id: str, wanted: str
) -> Iterator[tuple[int, int, str, str]]:
    """Sequence, ordinal, call id and text of all that is shown and may hold `wanted`."""
    # LIKE passes most rows over without a copy; it knows the two cases of ASCII letters only.
    like = f"%{escape_like(wanted)}%" if wanted.isascii() else "%"
    rows = connection.execute(
        f"""SELECT seq, -1, '', text FROM messages
                WHERE conversation_id = :id AND silent = 0 AND text LIKE :like ESCAPE '\\'
            UNION ALL
            SELECT m.seq, t.ordinal, t.tool_use_id, {CALL_TEXT} AS said
                FROM tool_calls AS t CROSS JOIN messages AS m ON m.id = t.assistant_message_id
                WHERE t.conversation_id = :id AND said LIKE :like ESCAPE '\\' AND m.silent = 0""",
        {"id": conversation_id, "like": like},
    )
    return ((row[0], row[1], row[2], row[3]) for row in rows)
