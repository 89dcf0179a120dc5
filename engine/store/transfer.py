"""A conversation as one JSON document (CONTRACT 1: export); `importing` reads it again."""

from __future__ import annotations

import base64
import sqlite3
from pathlib import Path
from typing import cast

from engine.store import agent_rows, attachments
from engine.store.copying import read_rows
from tools.contract import JsonObject, JsonValue

FORMAT = "phoenix-conversation"
FORMAT_VERSION = 1


def export(connection: sqlite3.Connection, folder: Path, conversation_id: str) -> JsonObject:
    """`{"format", "version", "tables": {table: [row]}, "agents": [tables], "files": {sha256: base64}}`."""
    rows = read_rows(connection, conversation_id)
    below = [read_rows(connection, agent_id) for agent_id in agent_rows.ids_of(connection, conversation_id)]
    digests = {str(row["path"]) for tables in (rows, *below) for row in tables["attachments"]}
    files = {digest: attachments.contents(folder, digest) for digest in sorted(digests)}
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "tables": cast("JsonObject", rows),
        "agents": cast("list[JsonValue]", below),
        "files": {digest: base64.b64encode(data).decode() for digest, data in files.items() if data is not None},
    }
