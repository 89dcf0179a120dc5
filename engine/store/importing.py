"""Import of the JSON document of `transfer.export`, on the terms of the importing user.

The file may come from anybody: every value is checked before the first row is written, every reference stays inside the
file, and nothing of it is a setting, a path or pending work.
"""

from __future__ import annotations

import base64
import binascii
import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.ports import ImportRefused, ImportTerms
from engine.store import model_calls, spans
from engine.store.attachments import digest_of, store_file
from engine.store.copying import TABLES, Row, TableRows, Unfit, insert_rows
from engine.store.import_rows import NO_EXPORT, name_own_images, parse_list, parse_rows, taken, under_free_ids
from engine.store.recovery import answer_dangling
from engine.store.slugs import give_slug
from engine.store.tool_calls import interrupt_open
from engine.store.transfer import FORMAT, FORMAT_VERSION
from tools.clean import clean_line
from tools.contract import JsonObject
from tools.wording import counted, one_line

ROW_BYTES = 200
"""Cost of a row in bytes besides its texts."""
_QUOTED = 60
"""Characters of the file's own words quoted in a message."""
_SETTINGS = {
    "system_prompt_static": "its system prompt",
    "append_system_prompt": "its appended system prompt",
    "profile": "its profile",
    "draft": "its draft",
    "archived_at": "its place in the archive",
    "deleted_at": "its place in the trash",
    "pinned_at": "its pin",
    "supervisor": "its supervisor",
    "compact_percent": "its compaction threshold",
}
"""Columns that are left out and named where they held something."""
_PENDING = {"queued_messages": "queued message", "inbox": "undelivered note"}
_DAMAGED = "An image of this export is damaged; export the conversation again."


class Import:
    """One import in the making (`engine.store.slices`)."""

    def __init__(
        self, folder: Path, found: Sequence[TableRows], contents: Sequence[bytes], left_out: tuple[str, ...], at: float
    ) -> None:
        """The first of `found` is the conversation, the others are its sub-agents."""
        self.left_out = left_out
        self._folder = folder
        self._contents = contents
        self._at = at
        self._ids = [str(rows["conversations"][0]["id"]) for rows in found]
        self._first = found[0]["conversations"][0]
        self._rest = deque((table, row) for table in TABLES for rows in found for row in rows.get(table, ()))
        self._rest.popleft()

    @property
    def conversation_id(self) -> str:
        """The one that is being made."""
        return self._ids[0]

    def begin(self, connection: sqlite3.Connection, by: str) -> None:
        """Insert the row of the conversation. Raises ImportRefused where its id was taken meanwhile."""
        _insert(connection, {"conversations": [{**self._first, "partial": by}]})

    def go_on(self, connection: sqlite3.Connection, size: int) -> bool:
        """Insert rows with about `size` bytes of text; a message may name a run that comes with them only."""
        slice_: TableRows = {}
        while self._rest and size > 0:
            table, row = self._rest.popleft()
            slice_.setdefault(table, []).append(row)
            size -= ROW_BYTES + sum(len(value) for value in row.values() if isinstance(value, str))
        _insert(connection, slice_)
        return not self._rest

    def finish(self, connection: sqlite3.Connection) -> None:
        """Store its files, end its open calls, and make it visible."""
        for content in self._contents:
            store_file(self._folder, content)
        for conversation_id in self._ids:
            interrupt_open(connection, conversation_id, self._at)
            answer_dangling(connection, conversation_id, "", self._at)
            model_calls.settle(connection, conversation_id)
            spans.fill_in_asides(connection, conversation_id)
        connection.execute("UPDATE conversations SET partial = NULL WHERE id = ?", (self.conversation_id,))
        give_slug(connection, self.conversation_id)


def prepare(
    connection: sqlite3.Connection, folder: Path, document: JsonObject, terms: ImportTerms, at: float
) -> Import:
    """Read and check the output of `export`; writes nothing.

    Raises:
        ImportRefused: it is no such document, or its parts cannot be.
    """
    if document.get("format") != FORMAT:
        raise ImportRefused(NO_EXPORT)
    if document.get("version") != FORMAT_VERSION:
        raise ImportRefused("This export has an unknown format; update Phoenix to read it.")
    given = [
        parse_rows(connection, tables) for tables in (document.get("tables"), *parse_list(document.get("agents", [])))
    ]
    parent_id = str(given[0]["conversations"][0]["id"])
    left_out = list(_left_out(given, terms))
    found = [taken(rows, terms, parent_id if number else "") for number, rows in enumerate(given)]
    contents = _contents(document)
    missing = _keep_images(found, contents)
    if missing:
        left_out.append(f"{counted(missing, 'image')} without contents in the file")
    name_own_images(found)
    found = under_free_ids(connection, found)
    wanted = {str(row["path"]) for rows in found for row in rows["attachments"]}
    return Import(folder, found, [contents[digest] for digest in sorted(wanted)], tuple(left_out), at)


def _insert(connection: sqlite3.Connection, rows: TableRows) -> None:
    try:
        insert_rows(connection, rows)
    except Unfit as error:
        raise ImportRefused(str(error)) from error


def _left_out(given: Sequence[TableRows], terms: ImportTerms) -> Iterator[str]:
    """Describe the settings and the pending work of the file."""
    first = given[0]["conversations"][0]
    own: Row = {
        "permission_mode": terms.permission_mode.value,
        "sandbox": terms.sandbox.value,
        "model": terms.model,
        "cwd": str(terms.cwd),
    }
    names = {"permission_mode": "permission mode", "sandbox": "sandbox", "model": "model", "cwd": "folder"}
    for column, name in names.items():
        if first.get(column) and first[column] != own[column]:
            yield f"its {name} {_quoted(first[column])}"
    yield from (name for column, name in _SETTINGS.items() if first.get(column))
    if first.get("state") not in {None, "idle"}:
        yield "its unfinished turn"
    for table, name in _PENDING.items():
        if number := sum(len(rows[table]) for rows in given):
            yield counted(number, name)


def _quoted(value: object) -> str:
    return one_line(clean_line(str(value)[: _QUOTED * 4]), _QUOTED)


def _contents(document: JsonObject) -> dict[str, bytes]:
    """The contents of the files by their SHA-256, which is reckoned here and not believed."""
    files = document.get("files")
    if not isinstance(files, dict):
        raise ImportRefused(NO_EXPORT)
    contents: dict[str, bytes] = {}
    for digest, encoded in files.items():
        try:
            content = base64.b64decode(encoded if isinstance(encoded, str) else "?", validate=True)
        except (binascii.Error, ValueError) as error:
            raise ImportRefused(_DAMAGED) from error
        if digest_of(content) != digest:
            raise ImportRefused(_DAMAGED)
        contents[digest] = content
    return contents


def _keep_images(found: Sequence[TableRows], contents: Mapping[str, bytes]) -> int:
    """Keep the rows whose contents the file holds, named by them; returns how many are missing."""
    missing = 0
    for rows in found:
        kept: list[Row] = []
        for row in rows["attachments"]:
            digest = str(row.get("sha256"))
            if digest in contents:
                kept.append({**row, "path": digest, "bytes": len(contents[digest])})
            else:
                missing += 1
        rows["attachments"] = kept
    return missing
