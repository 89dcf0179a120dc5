"""The notes of a user and a project: appended, found, read, listed. The index follows the files before each search."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.memory.note_files import NoteFolder, NoteRefused, project_scope
from engine.memory.passages import excerpt, passages, words_of
from engine.permissions.projects import project_of
from engine.ports.note_index import NoteFile, NoteIndex, Passage
from tools.redaction import without_keys

log = logging.getLogger(__name__)

INDEX_SECONDS: Final = 3.0
"""Longest time that one search spends on files that changed; the next one goes on."""
SLICE_FILES: Final = 200
SLICE_BYTES: Final = 400_000
"""Files and bytes that are indexed in one transaction, so that no move waits long."""
SETTLED_SECONDS: Final = 2.0
"""Age from which a later change of a file is sure to bear another time."""
BEGINNING: Final = 2_000
"""Bytes of a file that are read for its first line."""
LISTED: Final = 500
"""Files of a scope that are listed, the newest."""
HEADING: Final = "## "
_SHORTEST_SECRET: Final = 8


class NotesFound(Struct, frozen=True):
    """Result of a search in the notes."""

    hits: tuple[FoundNote, ...]
    complete: bool
    """False where not every changed file is in the index yet."""


class FoundNote(Struct, frozen=True):
    """A place in a note."""

    path: str
    line: int
    text: str


class NoteRow(Struct, frozen=True):
    """One file of notes in a list."""

    path: str
    name: str
    """Date of it, or the name that the user gave it."""
    size: int
    changed: float
    first_line: str
    """First line of it that is no heading."""


class KeyHolder(Protocol):
    """Knows the keys of model services."""

    def secrets(self) -> Sequence[str]:
        """All of them."""
        ...


class Memory:
    """Files and index of notes. Methods raise StorageError, OSError and NoteRefused."""

    def __init__(self, folder: NoteFolder, index: NoteIndex, keys: KeyHolder | None = None) -> None:
        self.index = index
        self._folder = folder
        self._keys = keys
        self._refreshing = asyncio.Lock()

    async def project(self, cwd: Path) -> str:
        """The scope of the project that a folder belongs to."""
        return await asyncio.to_thread(lambda: project_scope(project_of(cwd)))

    async def scopes(self) -> list[str]:
        """Every scope with notes, the user's first."""
        return await asyncio.to_thread(self._folder.scopes)

    async def search(self, query: str, scopes: Sequence[str], limit: int) -> NotesFound:
        """The best places in the notes of these scopes."""
        words = words_of(query)
        complete = all([await self.refresh(scope) for scope in scopes])
        hits = await self.index.search(words, scopes, limit)
        return NotesFound(tuple(_found(hit.path, hit.line, hit.text, words) for hit in hits), complete)

    async def refresh(self, scope: str) -> bool:
        """Bring the index of a scope up to date with its files; False where the time was too short for all of them."""
        async with self._refreshing:
            deadline = time.monotonic() + INDEX_SECONDS
            files = {file.path: file for file in await asyncio.to_thread(self._folder.files, scope)}
            known = await self.index.known(scope)
            changed = [file for path, file in files.items() if not _is_same(known.get(path), file)]
            gone = [path for path in known if path not in files]
            while changed or gone:
                if time.monotonic() > deadline:
                    return False
                batch, changed = await asyncio.to_thread(self._batch, changed)
                await self.index.update(scope, batch, gone)
                gone = []
            return True

    async def append(self, path: str, entry: str) -> None:
        """Add an entry to a file, without what looks like a credential."""
        text = without_keys(entry.replace("\x00", ""))
        for secret in self._keys.secrets() if self._keys is not None else ():
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "[redacted]")
        await asyncio.to_thread(self._folder.append, path, text)

    async def read(self, path: str) -> str:
        """The text of a file."""
        return await asyncio.to_thread(self._folder.read, path)

    async def rows(self, scope: str) -> list[NoteRow]:
        """The newest files of a scope, for a list."""
        return await asyncio.to_thread(self._rows, scope)

    async def remove(self, path: str) -> bytes:
        """Delete a file; gives its content for `put_back`."""
        return await asyncio.to_thread(self._folder.remove, path)

    async def put_back(self, path: str, content: bytes) -> None:
        """Make a file again that was deleted; raises FileExistsError where there is a new one."""
        await asyncio.to_thread(self._folder.create, path, content)

    async def place(self, path: str) -> Path:
        """The file itself, for an editor."""
        return await asyncio.to_thread(self._folder.place, path)

    def _batch(self, files: Sequence[NoteFile]) -> tuple[list[tuple[NoteFile, list[Passage]]], list[NoteFile]]:
        """The passages of the first files, and the files that are left."""
        batch: list[tuple[NoteFile, list[Passage]]] = []
        size = 0
        for file in files[:SLICE_FILES]:
            if size > SLICE_BYTES:
                break
            now = time.time()
            try:
                text = self._folder.read(file.path)
            except (OSError, NoteRefused) as error:
                log.info("a note is not indexed: %s", error)
                text = ""
            size += len(text)
            settled = file.changed if abs(now - file.changed) > SETTLED_SECONDS else 0.0
            batch.append((replace(file, changed=settled), passages(text)))
        return batch, list(files[len(batch) :])

    def _rows(self, scope: str) -> list[NoteRow]:
        rows: list[NoteRow] = []
        for file in self._folder.files(scope)[:LISTED]:
            try:
                beginning = self._folder.beginning(file.path, BEGINNING)
            except (OSError, NoteRefused) as error:
                beginning = f"({error})"
            name = file.path.rpartition("/")[2].removesuffix(".md")
            rows.append(NoteRow(file.path, name, file.size, file.changed, first_line(beginning)))
        return rows


def first_line(text: str) -> str:
    """The first line of a note that says something; a heading where there is nothing else."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")


def entry_text(heading: str, body: str) -> str:
    """An entry of a file of notes: a heading that says where it is from, and its text without headings of that rank."""
    return f"{HEADING}{heading}\n{re.sub(r'(?m)^#{1,2} ', '### ', body.strip())}"


def _is_same(known: NoteFile | None, file: NoteFile) -> bool:
    return known is not None and (known.size, known.changed) == (file.size, file.changed)


def _found(path: str, line: int, text: str, words: Sequence[str]) -> FoundNote:
    offset, shown = excerpt(text, words)
    return FoundNote(path, line + offset - 1, shown)
