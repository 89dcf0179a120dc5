"""Files of notes in Phoenix's own data folder: one scope for the user, one for each project.

Nothing here is inside a repository, so no repository can bring notes with it. Agents only append; the user edits and
deletes. Every method is blocking and belongs in a thread.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.ports.note_index import NoteFile
from tools.files.locked_file import FileLocked, locked_file
from tools.files.own_files import make_folder, new_file, read_file, read_start

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
        _check_scope(scope)
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
        with _locked(place) as descriptor:
            size = os.fstat(descriptor).st_size
            data = (_gap(descriptor, size) + entry + "\n").encode("utf-8", "replace")
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


def _check_scope(scope: str) -> None:
    if not _SCOPE.fullmatch(scope):
        raise NoteRefused("There is no such scope of notes.")


def _refuse_links(folder: Path) -> None:
    """Refuse a link below the memory folder, and the folder itself as a link: it could lead anywhere."""
    if folder.is_symlink():
        raise NoteRefused("The folder of notes is, or runs through, a symbolic link; nothing is read or written there.")


@contextmanager
def _locked(place: Path) -> Generator[int]:
    """Open and lock the file that has this name, also where an editor has just put another one in its place."""
    try:
        with locked_file(place, os.O_RDWR | os.O_APPEND) as descriptor:
            yield descriptor
    except FileLocked:
        raise NoteRefused("Another program keeps this file of notes locked.") from None


def _gap(descriptor: int, size: int) -> str:
    """Line ends between the text that is there and the next entry: one blank line."""
    end = os.pread(descriptor, 2, max(size - 2, 0))
    if not size:
        return ""
    return "" if end == b"\n\n" else "\n" if end.endswith(b"\n") else "\n\n"
