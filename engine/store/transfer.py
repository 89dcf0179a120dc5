"""A conversation as one JSON document, and back, with nothing lost (CONTRACT 1: export, import)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import sqlite3
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from engine.codec import storable
from engine.ports import StorageError
from engine.records import TitleBy
from engine.store import agents
from engine.store.attachments import store_file
from engine.store.copying import (
    TABLES,
    Row,
    Rows,
    Value,
    check,
    fresh_ids,
    insert_rows,
    is_taken,
    read_rows,
    renamed,
)
from tools.contract import JsonObject, JsonValue

FORMAT = "phoenix-conversation"
FORMAT_VERSION = 1
ROW_BYTES = 200
"""What a row costs beside its texts."""
_TELLING = frozenset({"content_json", "text", "input_json", "output_text", "output_json", "display_json"})
"""Columns whose text may name a sub-agent."""
_ID = re.compile("[A-Za-z0-9_-]{1,64}")
_NO_EXPORT = "This is no conversation that Phoenix exported: `conversations export --format json` writes one."


def export(connection: sqlite3.Connection, folder: Path, conversation_id: str) -> JsonObject:
    """`{"format", "version", "tables": {table: [row]}, "agents": [tables], "files": {sha256: base64}}`."""
    rows = read_rows(connection, conversation_id)
    below = [read_rows(connection, agent_id) for agent_id in agents.ids_of(connection, conversation_id)]
    images = [row for tables in (rows, *below) for row in tables["attachments"]]
    files = {str(row["sha256"]): folder / str(row["path"]) for row in images}
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "tables": cast("JsonObject", rows),
        "agents": cast("list[JsonValue]", below),
        "files": {
            digest: base64.b64encode(path.read_bytes()).decode() for digest, path in files.items() if path.exists()
        },
    }


class Import:
    """One import in the making (`engine.store.slices`)."""

    def __init__(self, folder: Path, rows: Rows, below: Sequence[Rows], contents: Sequence[bytes]) -> None:
        """`below` are its sub-agents."""
        self.conversation_id = str(rows["conversations"][0]["id"])
        self._folder = folder
        self._contents = contents
        self._first = rows["conversations"][0]
        every = (rows, *below)
        self._rest = deque((table, row) for table in TABLES for tables in every for row in tables[table])
        self._rest.popleft()

    def begin(self, connection: sqlite3.Connection, by: str) -> None:
        """Insert the row of the conversation. Raises StorageError where its id was taken meanwhile."""
        insert_rows(connection, {"conversations": [{**self._first, "partial": by}]})

    def go_on(self, connection: sqlite3.Connection, size: int) -> bool:
        """Insert rows with about `size` bytes of text; a message may name a run that comes with them only."""
        slice_: Rows = {}
        while self._rest and size > 0:
            table, row = self._rest.popleft()
            slice_.setdefault(table, []).append(row)
            size -= ROW_BYTES + sum(len(value) for value in row.values() if isinstance(value, str))
        insert_rows(connection, slice_)
        return not self._rest

    def finish(self, connection: sqlite3.Connection) -> None:
        """Store its files and make it visible."""
        for content in self._contents:
            store_file(self._folder, content)
        connection.execute("UPDATE conversations SET partial = NULL WHERE id = ?", (self.conversation_id,))


def prepare(connection: sqlite3.Connection, folder: Path, document: JsonObject) -> Import:
    """What `export` wrote, read and checked; writes nothing.

    Raises:
        StorageError: it is no such document, or its parts cannot be read.
    """
    if document.get("format") != FORMAT:
        raise StorageError(_NO_EXPORT)
    if document.get("version") != FORMAT_VERSION:
        raise StorageError(f"This export has format {document.get('version')!r:.20}: update Phoenix to read it.")
    found = [_parse_rows(tables) for tables in (document.get("tables"), *_parse_list(document.get("agents", [])))]
    for rows in found:
        check(connection, rows)
        conversation = rows["conversations"][0]
        conversation["slug"] = None
        conversation.setdefault("title_by", TitleBy.USER.value if conversation.get("title") else "")
    if any(is_taken(connection, rows) for rows in found):
        found = _renamed(found)
    images = [row for rows in found for row in rows["attachments"]]
    contents = _parse_files(document, {str(row.get("sha256")) for row in images})
    for row in images:
        row["path"] = str(row.get("sha256"))
    first, *below = found
    for rows in below:
        rows["conversations"][0]["parent_id"] = first["conversations"][0]["id"]
    return Import(folder, first, below, contents)


def _renamed(found: Sequence[Rows]) -> list[Rows]:
    """A conversation and its sub-agents under fresh ids, also where one is told what a sub-agent is called."""
    fresh = {old: new for rows in found for old, new in fresh_ids(rows).items()}
    result = [renamed(rows, fresh) for rows in found]
    called = {str(rows["conversations"][0]["id"]): fresh[rows["conversations"][0]["id"]] for rows in found[1:]}
    for rows in result:
        for row in (*rows["messages"], *rows["tool_calls"], *rows["inbox"]):
            row.update({column: _replaced(cell, called) for column, cell in row.items() if column in _TELLING})
    return result


def _replaced(cell: Value, called: Mapping[str, str]) -> Value:
    for old, new in called.items() if isinstance(cell, str) else ():
        cell = cell.replace(old, new) if isinstance(cell, str) else cell
    return cell


def _parse_rows(tables: JsonValue) -> Rows:
    if not isinstance(tables, dict):
        raise StorageError(_NO_EXPORT)
    rows = {table: [_parse_row(row) for row in _parse_list(tables.get(table, []))] for table in TABLES}
    if len(rows["conversations"]) != 1 or not _ID.fullmatch(str(rows["conversations"][0].get("id"))):
        raise StorageError(_NO_EXPORT)
    return rows


def _parse_list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise StorageError(_NO_EXPORT)
    return value


def _parse_row(value: JsonValue) -> Row:
    if not isinstance(value, dict) or any(isinstance(item, list | dict) for item in value.values()):
        raise StorageError(_NO_EXPORT)
    row = cast("Row", value)
    return {column: storable(cell) if isinstance(cell, str) else cell for column, cell in row.items()}


def _parse_files(document: JsonObject, digests: set[str]) -> list[bytes]:
    """The contents of the files that rows name, each checked against its SHA-256."""
    files = document.get("files")
    if not isinstance(files, dict):
        raise StorageError(_NO_EXPORT)
    contents: list[bytes] = []
    for digest in sorted(digests & files.keys()):
        encoded = files[digest]
        try:
            content = base64.b64decode(encoded if isinstance(encoded, str) else "", validate=True)
        except (binascii.Error, ValueError) as error:
            raise StorageError("An image of this export is damaged: export the conversation again.") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise StorageError("An image of this export is damaged: export the conversation again.")
        contents.append(content)
    return contents
