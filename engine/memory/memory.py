"""The notes of a user and a project: appended, found, read, listed. The index follows the files before each search."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.memory.passages import cut_excerpt, split_passages, words_of
from engine.permissions.place import project_of
from engine.ports.note_index import NoteFile, NoteIndex, Passage
from tools.files.locked_file import FileLocked, hold_locked_file
from tools.files.own_files import make_folder, new_file, read_file, read_start
from tools.redaction import without_keys

USER: Final = "user"
"""Scope of the notes that hold in every project; only the user writes them."""
PROJECTS: Final = "projects"
LONGEST_ENTRY: Final = 8_000
"""Characters that an agent appends at once."""
LARGEST_FILE: Final = 256 * 1024
"""Bytes up to which agents append to a file."""
LARGEST_EDITED: Final = 1024 * 1024
"""Bytes of a file that are read, whoever wrote it."""
MOST_FILES: Final = 20_000
"""Files of a scope that are looked at."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.md")
_SCOPE: Final = re.compile(rf"{USER}|{PROJECTS}/[a-z0-9-]{{1,60}}")
_NOT_PLAIN: Final = re.compile(r"[^a-z0-9]+")
_LONGEST_PROJECT: Final = 32


class NoteRefused(Exception):
    """Raised where a note cannot be read or written; the message is one sentence."""


def project_scope(project: Path) -> str:
    """The scope of a project: its name to read, and a key made of its whole path."""
    key = hashlib.sha256(os.fsencode(project)).hexdigest()[:16]
    name = _NOT_PLAIN.sub("-", project.name[:200].lower())[:_LONGEST_PROJECT].strip("-")
    return f"{PROJECTS}/{name or 'project'}-{key}"


class NoteFolder(Struct, frozen=True):
    """The memory folder."""

    folder: Path

    def files(self, scope: str) -> list[NoteFile]:
        """The files of a scope, those with the last names first; links and other things are passed over."""
        if not _SCOPE.fullmatch(scope):
            raise NoteRefused("There is no such scope of notes.")
        found: list[NoteFile] = []
        try:
            with os.scandir(self._folder_of(scope)) as entries:
                for entry in entries:
                    if not _NAME.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                        continue
                    status = entry.stat(follow_symlinks=False)
                    found.append(NoteFile(f"{scope}/{entry.name}", status.st_size, status.st_mtime))
                    if len(found) == MOST_FILES:
                        break
        except FileNotFoundError:
            return []
        return sorted(found, key=lambda file: file.path, reverse=True)

    def scopes(self) -> list[str]:
        """Every scope with a folder, the user's first."""
        projects = self.folder / PROJECTS
        try:
            _refuse_links(projects)
            names = sorted(entry.name for entry in projects.iterdir() if not entry.is_symlink() and entry.is_dir())
        except FileNotFoundError:
            names = []
        return [USER, *(scope for name in names if _SCOPE.fullmatch(scope := f"{PROJECTS}/{name}"))]

    def place(self, path: str) -> Path:
        """The file behind a path inside the folder. Raises NoteRefused for any other name, and for links."""
        scope, _, name = path.rpartition("/")
        if not _NAME.fullmatch(name) or not _SCOPE.fullmatch(scope):
            raise NoteRefused("There is no such note; notes are named like 2026-11-24.md.")
        return self._folder_of(scope) / name

    def read(self, path: str) -> str:
        """The text of a file. Raises NoteRefused, OSError."""
        return read_file(self.place(path), LARGEST_EDITED, follow=False).decode("utf-8", "replace")

    def beginning(self, path: str, most: int) -> str:
        """The first `most` bytes of a file as text. Raises NoteRefused, OSError."""
        return read_start(self.place(path), most, follow=False).decode("utf-8", "replace")

    def append(self, path: str, entry: str) -> None:
        """Add an entry to the end of a file, which is made where it is missing; all of it, or nothing.

        Raises:
            NoteRefused: the entry or the file is too large, or the file stays locked.
            OSError: it cannot be written.
        """
        entry = entry.strip()
        if len(entry) > LONGEST_ENTRY:
            raise NoteRefused(f"An entry has at most {LONGEST_ENTRY:,} characters; this one has {len(entry):,}.")
        place = self.place(path)
        make_folder(place.parent)
        with _lock_file(place) as descriptor:
            size = os.fstat(descriptor).st_size
            data = (_choose_gap(descriptor, size) + entry + "\n").encode("utf-8", "replace")
            if size + len(data) > LARGEST_FILE:
                raise NoteRefused(f"This file of notes is full ({LARGEST_FILE // 1024} KB).")
            if os.write(descriptor, data) < len(data):
                os.ftruncate(descriptor, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
            os.fsync(descriptor)

    def create(self, path: str, content: bytes) -> None:
        """Make a file that is not there. Raises FileExistsError, NoteRefused, OSError."""
        place = self.place(path)
        make_folder(place.parent)
        with os.fdopen(new_file(place), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def remove(self, path: str) -> bytes:
        """Delete a file and return its content, with which `create` makes it again. Raises NoteRefused, OSError."""
        place = self.place(path)
        content = read_file(place, LARGEST_EDITED, follow=False)
        place.unlink()
        return content

    def _folder_of(self, scope: str) -> Path:
        folder = self.folder
        _refuse_links(folder)
        for part in scope.split("/"):
            folder /= part
            _refuse_links(folder)
        return folder


def _refuse_links(folder: Path) -> None:
    """Refuse a link below the memory folder, and the folder itself as a link: it could lead anywhere."""
    if folder.is_symlink():
        raise NoteRefused("The folder of notes is, or runs through, a symbolic link; nothing is read or written there.")


@contextmanager
def _lock_file(place: Path) -> Generator[int]:
    """Open and lock the file that has this name, also where an editor has just put another one in its place."""
    try:
        with hold_locked_file(place, os.O_RDWR | os.O_APPEND) as descriptor:
            yield descriptor
    except FileLocked:
        raise NoteRefused("Another program keeps this file of notes locked.") from None


def _choose_gap(descriptor: int, size: int) -> str:
    """Line ends between the text that is there and the next entry: one blank line."""
    end = os.pread(descriptor, 2, max(size - 2, 0))
    if not size:
        return ""
    return "" if end == b"\n\n" else "\n" if end.endswith(b"\n") else "\n\n"


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
        found: list[FoundNote] = []
        for hit in hits:
            offset, shown = cut_excerpt(hit.text, words)
            found.append(FoundNote(hit.path, hit.line + offset - 1, shown))
        return NotesFound(tuple(found), complete)

    async def refresh(self, scope: str) -> bool:
        """Bring the index of a scope up to date with its files; False where the time was too short for all of them."""
        async with self._refreshing:
            deadline = time.monotonic() + INDEX_SECONDS
            files = {file.path: file for file in await asyncio.to_thread(self._folder.files, scope)}
            known = await self.index.list_known(scope)
            stamps = {path: (file.size, file.changed) for path, file in known.items()}
            changed = [file for path, file in files.items() if stamps.get(path) != (file.size, file.changed)]
            gone = [path for path in known if path not in files]
            while changed or gone:
                if time.monotonic() > deadline:
                    return False
                batch, changed = await asyncio.to_thread(self._read_batch, changed)
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
        return await asyncio.to_thread(self._list_rows, scope)

    async def remove(self, path: str) -> bytes:
        """Delete a file; gives its content for `put_back`."""
        return await asyncio.to_thread(self._folder.remove, path)

    async def put_back(self, path: str, content: bytes) -> None:
        """Make a file again that was deleted; raises FileExistsError where there is a new one."""
        await asyncio.to_thread(self._folder.create, path, content)

    async def place(self, path: str) -> Path:
        """The file itself, for an editor."""
        return await asyncio.to_thread(self._folder.place, path)

    def _read_batch(self, files: Sequence[NoteFile]) -> tuple[list[tuple[NoteFile, list[Passage]]], list[NoteFile]]:
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
            batch.append((replace(file, changed=settled), split_passages(text)))
        return batch, list(files[len(batch) :])

    def _list_rows(self, scope: str) -> list[NoteRow]:
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
