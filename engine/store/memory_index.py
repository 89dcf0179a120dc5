"""`engine.ports.note_index.NoteIndex` on SQLite: passages of notes in FTS5, best first by BM25.

The files are the notes; these tables can be made again from them. `memory_docs` has the size and time with which a
file was read, `memory_passages` the line of each row of `memory_fts`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from engine.codec import storable
from engine.ports.note_index import NoteFile, NoteHit, ReadNote
from engine.store.connection import TableGroup, reads, reads_long, writes
from engine.store.names import escape_like

SHORTEST_BEGINNING: Final = 3
"""Characters from which a word also finds longer words that begin with it."""
_COLUMNS: Final = "p.path, p.line, f.body"
_SOURCE: Final = """memory_passages AS p CROSS JOIN memory_fts AS f ON f.rowid = p.id
    JOIN memory_docs AS d ON d.path = p.path"""


class SqliteNotes(TableGroup):
    """Shares the connections of its store."""

    @reads
    def list_known(self, connection: sqlite3.Connection, scope: str) -> Mapping[str, NoteFile]:
        """The indexed files of one scope, by path."""
        rows = connection.execute("SELECT path, size, updated_at FROM memory_docs WHERE scope = ?", (scope,))
        return {row["path"]: NoteFile(row["path"], row["size"], row["updated_at"]) for row in rows}

    @writes
    def update(
        self, connection: sqlite3.Connection, scope: str, files: Sequence[ReadNote], gone: Sequence[str]
    ) -> None:
        """Replace the passages of these files, and remove those of the files that are gone, in one transaction."""
        for path in (*gone, *(file.path for file, _ in files)):
            connection.execute(
                "DELETE FROM memory_fts WHERE rowid IN (SELECT id FROM memory_passages WHERE path = ?)", (path,)
            )
            connection.execute("DELETE FROM memory_passages WHERE path = ?", (path,))
            connection.execute("DELETE FROM memory_docs WHERE path = ?", (path,))
        for file, passages in files:
            connection.execute(
                "INSERT INTO memory_docs (path, scope, updated_at, size) VALUES (?, ?, ?, ?)",
                (file.path, scope, file.changed, file.size),
            )
            for passage in passages:
                row = connection.execute(
                    "INSERT INTO memory_passages (path, line) VALUES (?, ?)", (file.path, passage.line)
                )
                connection.execute(
                    "INSERT INTO memory_fts (rowid, path, body) VALUES (?, ?, ?)",
                    (row.lastrowid, file.path, storable(passage.text)),
                )

    @reads_long
    def search(
        self, connection: sqlite3.Connection, words: Sequence[str], scopes: Sequence[str], limit: int
    ) -> Sequence[NoteHit]:
        """The best passages with at least one of the words, or with one that begins with it."""
        wanted = [storable(word) for word in words]
        if not wanted or not scopes:
            return []
        return _matching(connection, wanted, scopes, limit) or _containing(connection, wanted, scopes, limit)

    @reads
    def flush_is_due(self, connection: sqlite3.Connection, conversation_id: str) -> bool:
        """True when no notes were written since the newest summary of a conversation (SPEC CLAW-40)."""
        due = "SELECT flush_compaction_count <> compaction_count AS due FROM conversations WHERE id = ?"
        row = connection.execute(due, (conversation_id,)).fetchone()
        return row is not None and bool(row["due"])

    @writes
    def mark_flushed(self, connection: sqlite3.Connection, conversation_id: str) -> None:
        """Write no further notes before the next summary of a conversation."""
        mark = "UPDATE conversations SET flush_compaction_count = compaction_count WHERE id = ?"
        connection.execute(mark, (conversation_id,))


def _matching(connection: sqlite3.Connection, words: Sequence[str], scopes: Sequence[str], limit: int) -> list[NoteHit]:
    places = ", ".join("?" * len(scopes))
    quoted = ['"' + word.replace('"', '""') + '"' for word in words]
    beginnings = [f"{text}*" for word, text in zip(words, quoted, strict=True) if len(word) >= SHORTEST_BEGINNING]
    rows = connection.execute(
        f"""SELECT {_COLUMNS} FROM memory_fts AS f JOIN memory_passages AS p ON p.id = f.rowid
            JOIN memory_docs AS d ON d.path = p.path
            WHERE memory_fts MATCH ? AND d.scope IN ({places}) ORDER BY bm25(memory_fts), p.path DESC LIMIT ?""",
        (f"{{body}} : ({' OR '.join((*quoted, *beginnings))})", *scopes, limit),
    )
    return [NoteHit(row["path"], row["line"], row["body"]) for row in rows]


def _containing(
    connection: sqlite3.Connection, words: Sequence[str], scopes: Sequence[str], limit: int
) -> list[NoteHit]:
    """Passages with a word anywhere in a text: for scripts without blanks between words."""
    scope = f"d.scope IN ({', '.join('?' * len(scopes))})"
    like = " OR ".join(["f.body LIKE ? ESCAPE '\\'"] * len(words))
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM {_SOURCE} WHERE {scope} AND ({like}) ORDER BY p.path DESC, p.line LIMIT ?",
        (*scopes, *(f"%{escape_like(word)}%" for word in words), limit),
    )
    return [NoteHit(row["path"], row["line"], row["body"]) for row in rows]
