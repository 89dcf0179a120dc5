"""The table `file_steps`, and the messages of the user that can be gone back to."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from engine.codec import CodecError, readable_blocks, storable
from engine.machine.messages import Block, ImageBlock, TextBlock, ToolUseBlock
from engine.ports.files import Coverage, FileChange
from engine.ports.turns import FileStep, PromptRow, StepKind, StepState

PROMPT_CHARACTERS = 400
_CHANGES = msgspec.msgpack.Decoder(tuple[FileChange, ...])
_COVERAGE = msgspec.msgpack.Decoder(Coverage)
_BY_USER = """content_json LIKE '%"shell\\_%' ESCAPE '\\'"""
_PROMPTS = f"""SELECT seq, created_at, content_json FROM messages AS m WHERE conversation_id = ?
    AND (role = 'system' AND {_BY_USER} OR origin = 'human' AND NOT (text LIKE '$ %' AND EXISTS (
        SELECT 1 FROM messages WHERE run_id = m.run_id AND conversation_id = m.conversation_id AND seq < m.seq
        AND role = 'system' AND {_BY_USER})))"""
"""Prompts of the user, and the commands that the user ran, without the messages these sent to the model."""


def save(connection: sqlite3.Connection, step: FileStep) -> None:
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
            msgspec.msgpack.encode(_speakable(step.coverage)),
            step.undone_from,
            step.target_seq,
        ),
    )


def _speakable(coverage: Coverage) -> Coverage:
    return Coverage(
        tuple(storable(name) for name in coverage.left_out),
        coverage.left_out_count,
        tuple(storable(name) for name in coverage.too_large),
        coverage.refusal,
        tuple(storable(name) for name in coverage.secret),
        coverage.over,
        tuple(storable(name) for name in coverage.gone),
    )


def _step(row: Any) -> FileStep:
    return FileStep(
        id=row["id"],
        conversation_id=row["conversation_id"],
        kind=StepKind(row["kind"]),
        state=StepState(row["state"]),
        seq=row["seq"],
        folder=Path(os.fsdecode(row["folder"])),
        look=row["look"],
        began=row["began"],
        changes=_changes(row["changes"]),
        coverage=_coverage(row["coverage"]),
        undone_from=row["undone_from"],
        target_seq=row["target_seq"],
    )


def _changes(data: bytes) -> tuple[FileChange, ...]:
    try:
        return _CHANGES.decode(data)
    except msgspec.DecodeError as error:
        raise CodecError(f"file changes: {error}") from error


def _coverage(data: bytes) -> Coverage:
    try:
        return _COVERAGE.decode(data)
    except msgspec.DecodeError as error:
        raise CodecError(f"coverage: {error}") from error


def _prompt(row: Any, most: int | None) -> PromptRow:
    blocks = readable_blocks(row["content_json"])[0]
    text = "\n".join(filter(None, map(_words, blocks)))
    images = tuple(block.attachment_id for block in blocks if isinstance(block, ImageBlock))
    return PromptRow(row["seq"], row["created_at"], text[:most], images)


def _words(block: Block) -> str:
    match block:
        case TextBlock(text=text, attached=""):
            return text
        case ToolUseBlock(input_json=arguments):
            return f"! {command_of(arguments)}"
        case _:
            return ""


class _Shell(msgspec.Struct):
    command: str = ""


def command_of(arguments: str) -> str:
    """The command that a call runs; its arguments as they are where they name none."""
    try:
        return msgspec.json.decode(arguments, type=_Shell).command
    except msgspec.DecodeError:
        return arguments


def copy(connection: sqlite3.Connection, source_id: str, new_id: str, last_seq: int) -> None:
    """Give a fork the steps of the messages that it shares; open steps stay with the source."""
    connection.execute(
        """INSERT INTO file_steps (id, conversation_id, kind, state, seq, folder, look, began, changes, coverage,
            target_seq) SELECT lower(hex(randomblob(16))), ?, kind, state, seq, folder, look, began, changes, coverage,
            target_seq FROM file_steps WHERE conversation_id = ? AND seq <= ? AND state = 'done'
            ORDER BY began, rowid""",
        (new_id, source_id, last_seq),
    )


def of_conversation(connection: sqlite3.Connection, conversation_id: str) -> list[FileStep]:
    """All of a conversation, oldest first."""
    rows = connection.execute(
        "SELECT * FROM file_steps WHERE conversation_id = ? ORDER BY began, rowid", (conversation_id,)
    ).fetchall()
    return [_step(row) for row in rows]


def open_of(connection: sqlite3.Connection, conversation_id: str) -> list[FileStep]:
    """Open steps, oldest first; `state <> 'done'` matches their partial index."""
    rows = connection.execute(
        """SELECT * FROM file_steps INDEXED BY file_steps_unfinished
            WHERE state <> 'done' AND state = 'open' AND conversation_id = ? ORDER BY began, rowid""",
        (conversation_id,),
    ).fetchall()
    return [_step(row) for row in rows]


def restored(connection: sqlite3.Connection, conversation_id: str, from_seq: int) -> list[FileStep]:
    """The restores of files alone since the message `from_seq`, oldest first."""
    rows = connection.execute(
        """SELECT * FROM file_steps WHERE conversation_id = ? AND kind = 'restore' AND state = 'done' AND seq >= ?
            ORDER BY began, rowid""",
        (conversation_id, from_seq),
    ).fetchall()
    return [_step(row) for row in rows]


def every_change(connection: sqlite3.Connection) -> list[FileChange]:
    """The changes of all conversations."""
    rows = connection.execute("SELECT changes FROM file_steps").fetchall()
    return [change for row in rows for change in _changes(row["changes"])]


def open_looks(connection: sqlite3.Connection) -> list[str]:
    """The looks that open steps begin with."""
    rows = connection.execute("SELECT look FROM file_steps WHERE state = 'open' AND look <> ''").fetchall()
    return [str(row["look"]) for row in rows]


def prompts(connection: sqlite3.Connection, conversation_id: str, limit: int) -> list[PromptRow]:
    """Prompts to go back to, newest first, the beginning of each."""
    rows = connection.execute(f"{_PROMPTS} ORDER BY seq DESC LIMIT ?", (conversation_id, limit)).fetchall()
    return [_prompt(row, PROMPT_CHARACTERS) for row in rows]


def prompt(connection: sqlite3.Connection, conversation_id: str, seq: int) -> PromptRow | None:
    """One of them with its whole text."""
    row = connection.execute(f"{_PROMPTS} AND seq = ?", (conversation_id, seq)).fetchone()
    return _prompt(row, None) if row else None
