"""Branches of a conversation: a copy up to a prompt that takes its source's place, and the family they make."""

from __future__ import annotations

import sqlite3
from typing import Any

from engine.codec import readable_blocks, storable
from engine.machine.messages import text_in
from engine.ports.turns import BranchRow, NewBranch
from tools.wording import one_line

WORDS = 80
"""Characters of a prompt that name a branch."""
_ROOT = """WITH RECURSIVE up (id, branch_of, depth) AS (
        SELECT id, branch_of, 0 FROM conversations WHERE id = ?
        UNION ALL SELECT c.id, c.branch_of, depth + 1 FROM conversations AS c JOIN up ON c.id = up.branch_of
            WHERE depth < 1000)
    SELECT id FROM up ORDER BY depth DESC LIMIT 1"""
_FAMILY = """WITH RECURSIVE down (id, depth) AS (
        SELECT ?, 0 UNION SELECT c.id, depth + 1 FROM conversations AS c JOIN down ON c.branch_of = down.id
            WHERE depth < 1000)
    SELECT c.*, (SELECT MAX(seq) FROM messages WHERE conversation_id = c.id) AS message_count
    FROM conversations AS c JOIN down ON down.id = c.id WHERE c.partial IS NULL ORDER BY c.created_at, c.rowid"""


def take_place(connection: sqlite3.Connection, new: NewBranch) -> dict[str, str]:
    """Show a copy in place of its source; returns the images of the copy by those of the source."""
    connection.execute("UPDATE conversations SET draft = ? WHERE id = ?", (storable(new.draft), new.new_id))
    make_head(connection, new.new_id, new.source_id)
    rows = connection.execute(
        """SELECT old.id AS old, mine.id AS mine FROM attachments AS old
            JOIN attachments AS mine ON mine.sha256 = old.sha256 AND mine.conversation_id = ?
            WHERE old.conversation_id = ?""",
        (new.new_id, new.source_id),
    ).fetchall()
    return {row["old"]: row["mine"] for row in rows}


def make_head(connection: sqlite3.Connection, conversation_id: str, instead_of: str) -> None:
    """Show one conversation in the list and hide the other while the first is there."""
    connection.execute("UPDATE conversations SET superseded_by = NULL WHERE id = ?", (conversation_id,))
    connection.execute(
        "UPDATE conversations SET superseded_by = ? WHERE id = ? AND id <> ?",
        (conversation_id, instead_of, conversation_id),
    )


def family(connection: sqlite3.Connection, conversation_id: str) -> list[BranchRow]:
    """Every conversation that shares messages with it, oldest first."""
    root = connection.execute(_ROOT, (conversation_id,)).fetchone()
    if root is None:
        return []
    return [_row(connection, row) for row in connection.execute(_FAMILY, (root["id"],)).fetchall()]


def _row(connection: sqlite3.Connection, row: Any) -> BranchRow:
    return BranchRow(
        id=row["id"],
        title=row["title"],
        branch_of=row["branch_of"] or "",
        branch_seq=row["branch_seq"],
        message_count=row["message_count"] or 0,
        updated_at=row["updated_at"],
        newest_prompt=_prompt(connection, row["id"], row["branch_seq"], "DESC"),
        first_own_prompt=_prompt(connection, row["id"], row["branch_seq"], "ASC"),
        archived=row["archived_at"] is not None,
        deleted=row["deleted_at"] is not None,
    )


def _prompt(connection: sqlite3.Connection, conversation_id: str, after: int, order: str) -> str:
    """The first or the newest message of the user after a seq, on one line."""
    row = connection.execute(
        f"""SELECT content_json FROM messages WHERE conversation_id = ? AND seq > ? AND origin = 'human'
            ORDER BY seq {order} LIMIT 1""",
        (conversation_id, after),
    ).fetchone()
    if row is None:
        return ""
    return one_line(text_in(readable_blocks(row["content_json"])[0], " "), WORDS)
