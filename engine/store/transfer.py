"""A conversation as one JSON document, and back, with nothing lost (CONTRACT 1: export, import)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import sqlite3
from pathlib import Path
from typing import cast
from uuid import uuid4

from engine.codec import storable
from engine.ports import StorageError
from engine.records import TitleBy
from engine.store.attachments import store_file
from engine.store.copying import TABLES, Row, Rows, check, insert_rows, is_taken, read_rows, renamed
from tools.contract import JsonObject, JsonValue

FORMAT = "phoenix-conversation"
FORMAT_VERSION = 1
_ID = re.compile("[A-Za-z0-9_-]{1,64}")
_NO_EXPORT = "This is no conversation that Phoenix exported: `conversations export --format json` writes one."


def export(connection: sqlite3.Connection, folder: Path, conversation_id: str) -> JsonObject:
    """`{"format", "version", "tables": {table: [row]}, "files": {sha256: base64}}`."""
    rows = read_rows(connection, conversation_id)
    files = {str(row["sha256"]): folder / str(row["path"]) for row in rows["attachments"]}
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "tables": cast("JsonObject", rows),
        "files": {
            digest: base64.b64encode(path.read_bytes()).decode() for digest, path in files.items() if path.exists()
        },
    }


def import_document(connection: sqlite3.Connection, folder: Path, document: JsonObject) -> str:
    """Insert what `export` wrote; gives the id it has here.

    Raises:
        StorageError: it is no such document, or its parts do not fit together.
    """
    rows = _parse_rows(document)
    check(connection, rows)
    conversation = rows["conversations"][0]
    conversation["slug"] = None
    conversation.setdefault("title_by", TitleBy.USER.value if conversation.get("title") else "")
    if is_taken(connection, rows):
        rows = renamed(rows, str(uuid4()))
    contents = _parse_files(document, {str(row.get("sha256")) for row in rows["attachments"]})
    for row in rows["attachments"]:
        row["path"] = str(row.get("sha256"))
    insert_rows(connection, rows)
    for content in contents:
        store_file(folder, content)
    return str(rows["conversations"][0]["id"])


def _parse_rows(document: JsonObject) -> Rows:
    tables = document.get("tables")
    if document.get("format") != FORMAT or not isinstance(tables, dict):
        raise StorageError(_NO_EXPORT)
    if document.get("version") != FORMAT_VERSION:
        raise StorageError(f"This export has format {document.get('version')!r:.20}: update Phoenix to read it.")
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
