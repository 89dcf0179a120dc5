"""Effects of turns: the table `file_steps`, prompts that can be gone back to, branches, and summaries."""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from engine.codec import CodecError, decode_state, readable_blocks, storable
from engine.machine.messages import Block, ImageBlock, TextBlock, ToolUseBlock, text_in
from engine.machine.states import is_busy
from engine.ports.files import (
    BranchRow,
    Coverage,
    FileChange,
    FileStep,
    NewBranch,
    PromptRow,
    Rewound,
    StepKind,
    StepState,
)
from engine.records.runs import TurnDigest, TurnNote, TurnSummary
from engine.store.connection import Transactions, reads, writes
from engine.store.conversations import require_conversation
from engine.store.forking import Fork
from engine.store.messages import parse_command
from engine.store.ownership import Instance, OwnedTables
from engine.store.slices import Slices
from tools.wording import one_line

PROMPT_CHARACTERS = 400
_CHANGES = msgspec.msgpack.Decoder(tuple[FileChange, ...])
_COVERAGE = msgspec.msgpack.Decoder(Coverage)
_BY_USER = """content_json LIKE '%"shell\\_%' ESCAPE '\\'"""
_PROMPTS = f"""SELECT seq, created_at, content_json FROM messages AS m WHERE conversation_id = ?
    AND (role = 'system' AND {_BY_USER} OR origin = 'human' AND NOT (text LIKE '$ %' AND EXISTS (
        SELECT 1 FROM messages WHERE run_id = m.run_id AND conversation_id = m.conversation_id AND seq < m.seq
        AND role = 'system' AND {_BY_USER})))"""
"""Prompts of the user, and the commands that the user ran, without the messages these sent to the model."""


def save_step(connection: sqlite3.Connection, step: FileStep) -> None:
    """Insert a step, or bring it up to date."""
    connection.execute(
        """INSERT INTO file_steps (id, conversation_id, kind, state, seq, folder, look, began, changes, coverage,
            undone_from, target_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET state = excluded.state, look = excluded.look, changes = excluded.changes,
            coverage = excluded.coverage""",
        (
            step.id,
            step.conversation_id,
            step.kind.value,
            step.state.value,
            step.seq,
            os.fsencode(step.folder),
            step.look,
            step.began,
            msgspec.msgpack.encode(step.changes),
            msgspec.msgpack.encode(_storable_coverage(step.coverage)),
            step.undone_from,
            step.target_seq,
        ),
    )


def _storable_coverage(coverage: Coverage) -> Coverage:
    return Coverage(
        tuple(storable(name) for name in coverage.left_out),
        coverage.left_out_count,
        tuple(storable(name) for name in coverage.too_large),
        coverage.refusal,
        tuple(storable(name) for name in coverage.secret),
        coverage.over,
        tuple(storable(name) for name in coverage.gone),
    )


def _read_step(row: Any) -> FileStep:
    return FileStep(
        id=row["id"],
        conversation_id=row["conversation_id"],
        kind=StepKind(row["kind"]),
        state=StepState(row["state"]),
        seq=row["seq"],
        folder=Path(os.fsdecode(row["folder"])),
        look=row["look"],
        began=row["began"],
        changes=_decode_changes(row["changes"]),
        coverage=_decode_coverage(row["coverage"]),
        undone_from=row["undone_from"],
        target_seq=row["target_seq"],
    )


def _decode_changes(data: bytes) -> tuple[FileChange, ...]:
    try:
        return _CHANGES.decode(data)
    except msgspec.DecodeError as error:
        raise CodecError(f"file changes: {error}") from error


def _decode_coverage(data: bytes) -> Coverage:
    try:
        return _COVERAGE.decode(data)
    except msgspec.DecodeError as error:
        raise CodecError(f"coverage: {error}") from error


def _make_prompt(row: Any, most: int | None) -> PromptRow:
    blocks = readable_blocks(row["content_json"])[0]
    text = "\n".join(filter(None, map(_words_of, blocks)))
    images = tuple(block.attachment_id for block in blocks if isinstance(block, ImageBlock))
    return PromptRow(row["seq"], row["created_at"], text[:most], images)


def _words_of(block: Block) -> str:
    match block:
        case TextBlock(text=text, attached=""):
            return text
        case ToolUseBlock(input_json=arguments):
            return f"! {parse_command(arguments)}"
        case _:
            return ""


def list_prompts(connection: sqlite3.Connection, conversation_id: str, limit: int) -> list[PromptRow]:
    """Prompts to go back to, newest first, the beginning of each."""
    rows = connection.execute(f"{_PROMPTS} ORDER BY seq DESC LIMIT ?", (conversation_id, limit)).fetchall()
    return [_make_prompt(row, PROMPT_CHARACTERS) for row in rows]


def read_prompt(connection: sqlite3.Connection, conversation_id: str, seq: int) -> PromptRow | None:
    """One of them with its whole text."""
    row = connection.execute(f"{_PROMPTS} AND seq = ?", (conversation_id, seq)).fetchone()
    return _make_prompt(row, None) if row else None


WORDS = 80
"""Characters of a prompt that name a branch."""
_ROOT = """WITH RECURSIVE up (id, branch_of, depth) AS (
        SELECT id, branch_of, 0 FROM conversations WHERE id = ?
        UNION ALL SELECT c.id, c.branch_of, depth + 1 FROM conversations AS c JOIN up ON c.id = up.branch_of
            WHERE depth < 1000)
    SELECT id FROM up ORDER BY depth DESC LIMIT 1"""
_BELOW = """WITH RECURSIVE down (id, depth) AS (
        SELECT ?, 0 UNION SELECT c.id, depth + 1 FROM conversations AS c JOIN down ON c.branch_of = down.id
            WHERE depth < 1000)"""
_FAMILY = f"""{_BELOW}
    SELECT c.*, (SELECT MAX(seq) FROM messages WHERE conversation_id = c.id) AS message_count
    FROM conversations AS c JOIN down ON down.id = c.id WHERE c.partial IS NULL ORDER BY c.created_at, c.rowid"""
_DEPARTURE = f"""{_BELOW}
    SELECT s.* FROM file_steps AS s JOIN down ON down.id = s.conversation_id
    WHERE s.undone_from = ? AND s.state = 'done' ORDER BY s.began DESC, s.rowid DESC LIMIT 1"""


def show_in_place(connection: sqlite3.Connection, new: NewBranch) -> dict[str, str]:
    """Show a copy in place of its source; returns the images of the copy by those of the source."""
    connection.execute("UPDATE conversations SET draft = ? WHERE id = ?", (storable(new.draft), new.new_id))
    set_head(connection, new.new_id, new.source_id)
    rows = connection.execute(
        """SELECT old.id AS old, mine.id AS mine FROM attachments AS old
            JOIN attachments AS mine ON mine.sha256 = old.sha256 AND mine.conversation_id = ?
            WHERE old.conversation_id = ?""",
        (new.new_id, new.source_id),
    ).fetchall()
    return {row["old"]: row["mine"] for row in rows}


def set_head(connection: sqlite3.Connection, conversation_id: str, instead_of: str) -> None:
    """Show one conversation in the list and hide the other while the first is there."""
    connection.execute("UPDATE conversations SET superseded_by = NULL WHERE id = ?", (conversation_id,))
    connection.execute(
        "UPDATE conversations SET superseded_by = ? WHERE id = ? AND id <> ?",
        (conversation_id, instead_of, conversation_id),
    )


def _read_branch(connection: sqlite3.Connection, row: Any) -> BranchRow:
    return BranchRow(
        id=row["id"],
        title=row["title"],
        branch_of=row["branch_of"] or "",
        branch_seq=row["branch_seq"],
        message_count=row["message_count"] or 0,
        updated_at=row["updated_at"],
        newest_prompt=_read_branch_prompt(connection, row["id"], row["branch_seq"], "DESC"),
        first_own_prompt=_read_branch_prompt(connection, row["id"], row["branch_seq"], "ASC"),
        archived=row["archived_at"] is not None,
        deleted=row["deleted_at"] is not None,
    )


def _read_branch_prompt(connection: sqlite3.Connection, conversation_id: str, after: int, order: str) -> str:
    """The first or the newest message of the user after a seq, on one line."""
    row = connection.execute(
        f"""SELECT content_json FROM messages WHERE conversation_id = ? AND seq > ? AND origin = 'human'
            ORDER BY seq {order} LIMIT 1""",
        (conversation_id, after),
    ).fetchone()
    if row is None:
        return ""
    return one_line(text_in(readable_blocks(row["content_json"])[0], " "), WORDS)


class TurnLog(OwnedTables):
    """Shares the connections of its store."""

    def __init__(self, transactions: Transactions, instance: Instance, slices: Slices) -> None:
        super().__init__(transactions, instance)
        self._slices = slices
        self.restores = 0

    async def save(self, step: FileStep) -> None:
        """Insert a step, or bring it up to date."""
        self.restores += step.kind is StepKind.RESTORE
        await self.transactions.write(lambda connection: save_step(connection, step))

    @reads
    def steps(self, connection: sqlite3.Connection, conversation_id: str) -> list[FileStep]:
        """All of a conversation, oldest first."""
        rows = connection.execute(
            "SELECT * FROM file_steps WHERE conversation_id = ? ORDER BY began, rowid", (conversation_id,)
        ).fetchall()
        return [_read_step(row) for row in rows]

    @reads
    def open_steps(self, connection: sqlite3.Connection, conversation_id: str) -> list[FileStep]:
        """Turns in progress and those that a crash cut off, oldest first; called by every turn."""
        rows = connection.execute(
            """SELECT * FROM file_steps INDEXED BY file_steps_unfinished
                WHERE state <> 'done' AND state = 'open' AND conversation_id = ? ORDER BY began, rowid""",
            (conversation_id,),
        ).fetchall()
        return [_read_step(row) for row in rows]

    @reads
    def list_restores(self, connection: sqlite3.Connection, conversation_id: str, from_seq: int) -> list[FileStep]:
        """The restores of files alone since the message `from_seq`, oldest first."""
        rows = connection.execute(
            """SELECT * FROM file_steps WHERE conversation_id = ? AND kind = 'restore' AND state = 'done' AND seq >= ?
                ORDER BY began, rowid""",
            (conversation_id, from_seq),
        ).fetchall()
        return [_read_step(row) for row in rows]

    @reads
    def at_rest(self, connection: sqlite3.Connection, conversation_id: str) -> bool:
        """True when no run of it is stored as in progress."""
        row = connection.execute("SELECT state_json FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
        return row is None or not is_busy(decode_state(row["state_json"]))

    @reads
    def every_change(self, connection: sqlite3.Connection) -> list[FileChange]:
        """The changes of all conversations."""
        rows = connection.execute("SELECT changes FROM file_steps").fetchall()
        return [change for row in rows for change in _decode_changes(row["changes"])]

    @reads
    def open_looks(self, connection: sqlite3.Connection) -> list[str]:
        """The looks that open steps of any conversation begin with."""
        rows = connection.execute("SELECT look FROM file_steps WHERE state = 'open' AND look <> ''").fetchall()
        return [str(row["look"]) for row in rows]

    @reads
    def list_unfinished(self, connection: sqlite3.Connection) -> list[str]:
        """The titles of conversations in which a restore was cut off and is under way nowhere."""
        rows = connection.execute(
            """SELECT DISTINCT c.title, c.owner_instance FROM file_steps AS s
                JOIN conversations AS c ON c.id = s.conversation_id WHERE s.state = 'restoring'"""
        ).fetchall()
        alone = (row for row in rows if self._instance.living_pid(connection, row["owner_instance"]) is None)
        return [str(row["title"]) for row in alone]

    @reads
    def prompts(self, connection: sqlite3.Connection, conversation_id: str, limit: int) -> list[PromptRow]:
        """Newest first."""
        return list_prompts(connection, conversation_id, limit)

    @reads
    def prompt(self, connection: sqlite3.Connection, conversation_id: str, seq: int) -> PromptRow | None:
        """One prompt with its whole text."""
        return read_prompt(connection, conversation_id, seq)

    async def branch(self, new: NewBranch, step: FileStep | None) -> Rewound:
        """Make a branch, and the step that restores its files, in one transaction; this process owns it."""

        def job(connection: sqlite3.Connection) -> Rewound:
            images = show_in_place(connection, new)
            if step is not None:
                save_step(connection, step)
            self._instance.claim(connection, new.new_id, new.at)
            return Rewound(require_conversation(connection, new.new_id, self._instance), images)

        work = Fork(new.source_id, new.new_id, new.at, new.up_to_seq)
        return await self._slices.make(work, new.at, job)

    @writes
    def make_head(
        self, connection: sqlite3.Connection, conversation_id: str, instead_of: str, step: FileStep | None = None
    ) -> None:
        """Show this conversation in the list in place of another of its family."""
        set_head(connection, conversation_id, instead_of)
        if step is not None:
            save_step(connection, step)

    @reads
    def family(self, connection: sqlite3.Connection, conversation_id: str) -> Sequence[BranchRow]:
        """Every conversation that shares messages with it, oldest first."""
        root = connection.execute(_ROOT, (conversation_id,)).fetchone()
        if root is None:
            return []
        return [_read_branch(connection, row) for row in connection.execute(_FAMILY, (root["id"],)).fetchall()]

    @reads
    def find_departure(self, connection: sqlite3.Connection, conversation_id: str) -> FileStep | None:
        """The newest rewind that left this conversation for another of its family; None without any."""
        root = connection.execute(_ROOT, (conversation_id,)).fetchone()
        row = connection.execute(_DEPARTURE, (root["id"], conversation_id)).fetchone() if root is not None else None
        return _read_step(row) if row is not None else None


FIRST_WORDS = 200
"""Characters of a prompt that are read: enough for one row, nothing of a pasted megabyte."""

_TURN_PROMPTS = """SELECT turn_id, seq, substr(ltrim(text, char(10, 13, 32, 9)), 1, ?) AS words, created_at
    FROM messages WHERE conversation_id = ? AND origin = 'human' AND role = 'user' AND silent = 0 ORDER BY seq"""
_NOTES = "SELECT id, summary FROM turns WHERE conversation_id = ? AND summary IS NOT NULL"
_TOOLS = """SELECT m.turn_id, c.name, count(*) AS calls, sum(c.status = 'error') AS failed
    FROM tool_calls AS c JOIN messages AS m ON m.id = c.assistant_message_id
    WHERE c.conversation_id = ? GROUP BY m.turn_id, c.name ORDER BY count(*) DESC, c.name"""
_FILES = """SELECT m.turn_id, json_extract(c.input_json, '$.path') AS path
    FROM tool_calls AS c JOIN messages AS m ON m.id = c.assistant_message_id
    WHERE c.conversation_id = ? AND c.name IN ('patch', 'write_file') AND c.status = 'success'
    AND json_valid(c.input_json) ORDER BY m.seq, c.ordinal"""
_RUNS = """SELECT turn_id, sum(duration_ms) AS spent, sum(cost_usd) AS cost, sum(cost_usd IS NULL) AS unknown
    FROM runs WHERE conversation_id = ? AND ended_at IS NOT NULL GROUP BY turn_id"""

EXCERPT = 2_000
"""Characters of one message that a summary is made from."""
MOST_PROMPTS = 4
"""Messages of the user within one turn that it is made from."""
MOST_FILES = 20
"""Changed files that it may name."""

_NEWEST_TURN = "SELECT id, turn_number FROM turns WHERE conversation_id = ? ORDER BY turn_number DESC LIMIT 1"
_ASKED = """SELECT substr(text, 1, ?) AS words FROM messages
    WHERE turn_id = ? AND origin = 'human' AND role = 'user' AND silent = 0 ORDER BY seq LIMIT ?"""
_ANSWERED = """SELECT substr(text, 1, ?) AS words FROM messages
    WHERE turn_id = ? AND role = 'assistant' AND trim(text) <> '' ORDER BY seq DESC LIMIT 1"""
_CALLED = """SELECT c.name, count(*) AS calls
    FROM messages AS m JOIN tool_calls AS c ON c.assistant_message_id = m.id WHERE m.turn_id = ?
    GROUP BY c.name ORDER BY count(*) DESC, c.name"""
_CHANGED = """SELECT DISTINCT json_extract(c.input_json, '$.path') AS path
    FROM messages AS m JOIN tool_calls AS c ON c.assistant_message_id = m.id
    WHERE m.turn_id = ? AND c.name IN ('patch', 'write_file') AND c.status = 'success'
    AND json_valid(c.input_json) ORDER BY m.seq, c.ordinal LIMIT ?"""


def read_newest_turn(connection: sqlite3.Connection, conversation_id: str) -> TurnDigest | None:
    """Digest of the newest turn; None without turns."""
    turn = connection.execute(_NEWEST_TURN, (conversation_id,)).fetchone()
    if turn is None:
        return None
    asked = connection.execute(_ASKED, (EXCERPT, turn["id"], MOST_PROMPTS)).fetchall()
    answered = connection.execute(_ANSWERED, (EXCERPT, turn["id"])).fetchone()
    tools = connection.execute(_CALLED, (turn["id"],)).fetchall()
    files = [row["path"] for row in connection.execute(_CHANGED, (turn["id"], MOST_FILES))]
    return TurnDigest(
        number=turn["turn_number"],
        asked="\n".join(row["words"].strip() for row in asked).strip(),
        answered=answered["words"].strip() if answered is not None else "",
        tools=tuple((row["name"], row["calls"]) for row in tools),
        files=tuple(path for path in files if isinstance(path, str)),
    )


def store_turn_note(connection: sqlite3.Connection, conversation_id: str, note: TurnNote) -> None:
    """Write the summary of one turn."""
    connection.execute(
        "UPDATE turns SET summary = ? WHERE conversation_id = ? AND turn_number = ?",
        (storable(note.text), conversation_id, note.number),
    )


def read_turns(connection: sqlite3.Connection, conversation_id: str) -> list[TurnSummary]:
    """The prompts in order; where several belong to one turn, the last of them has its effects."""
    tools: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    failed: defaultdict[str, int] = defaultdict(int)
    for row in connection.execute(_TOOLS, (conversation_id,)):
        tools[row["turn_id"]].append((row["name"], row["calls"]))
        failed[row["turn_id"]] += row["failed"]
    files: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for row in connection.execute(_FILES, (conversation_id,)):
        if isinstance(row["path"], str):
            files[row["turn_id"]][row["path"]] = None
    spent = {row["turn_id"]: row for row in connection.execute(_RUNS, (conversation_id,))}
    notes = {row["id"]: row["summary"] for row in connection.execute(_NOTES, (conversation_id,))}
    prompts = connection.execute(_TURN_PROMPTS, (FIRST_WORDS, conversation_id)).fetchall()
    last_of_turn = {row["turn_id"]: row["seq"] for row in prompts}
    found: list[TurnSummary] = []
    for row in prompts:
        turn = row["turn_id"] if last_of_turn[row["turn_id"]] == row["seq"] else ""
        run = spent.get(turn)
        found.append(
            TurnSummary(
                seq=row["seq"],
                words=row["words"].split("\n", 1)[0],
                created_at=row["created_at"],
                tools=tuple(tools.get(turn, ())),
                failed=failed.get(turn, 0),
                files=tuple(files.get(turn, ())),
                seconds=(run["spent"] or 0) / 1000 if run is not None else 0.0,
                cost_usd=run["cost"] if run is not None and not run["unknown"] else None,
                summary=notes.get(turn, ""),
            )
        )
    return found
