"""The files of a working directory that would change what Phoenix does there, found and read but not interpreted."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from phoenix_tui.config.files import read_regular

INSTRUCTIONS = "AGENTS.md"
FOLDER = ".phoenix"
SETTINGS = "config.toml"
FILE_LIMIT = 1024 * 1024
"""Bytes of one file; a longer one is cut, and its digest is that of the cut."""
COUNT_LIMIT = 200


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """One file, with the very bytes whose digest is trusted."""

    path: Path
    content: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        import hashlib  # noqa: PLC0415 - OpenSSL behind it takes 2 ms, and most folders have no such file

        return hashlib.sha256(self.content).hexdigest()

    @property
    def text(self) -> str:
        """The content as text; bytes that are no UTF-8 are replaced."""
        return self.content.decode("utf-8", "replace")


class Project(Struct, frozen=True):
    """A working directory and the files in it that wait for trust."""

    folder: Path
    """The real path."""
    files: tuple[ProjectFile, ...] = ()

    def settings_files(self) -> tuple[ProjectFile, ...]:
        """`.phoenix/config.toml`, the repository's before the folder's own."""
        return tuple(file for file in self.files if file.path.parts[-2:] == (FOLDER, SETTINGS))

    def instructions(self) -> str:
        """All AGENTS.md as one text, the repository's before the folder's own."""
        found = [file for file in self.files if file.path.name == INSTRUCTIONS and file.path.parent.name != FOLDER]
        return "\n\n".join(f"# {file.path}\n\n{file.text.strip()}" for file in found if file.text.strip())


def find_project(folder: Path) -> Project:
    """What stands in `folder` and, inside a repository, in the folders above it up to its root."""
    real = folder.resolve()
    files: list[ProjectFile] = []
    for place in _places(real):
        candidates = [place / INSTRUCTIONS, *_below(place / FOLDER)]
        for path in candidates[:COUNT_LIMIT]:
            content = read_regular(path, FILE_LIMIT)
            if content is not None:
                files.append(ProjectFile(path, content))
    return Project(real, tuple(files))


def _places(folder: Path) -> list[Path]:
    """From the root of the repository down to `folder`; only `folder` where there is no repository.

    `.git` is looked for and never read: a worktree's pointer must not send us elsewhere (FAULTS 65).
    """
    chain = [folder, *folder.parents]
    for index, place in enumerate(chain):
        if os.path.lexists(place / ".git"):
            return list(reversed(chain[: index + 1]))
    return [folder]


def _below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders.sort()
        found += [Path(parent) / name for name in sorted(names)]
        if len(found) >= COUNT_LIMIT:
            break
    return found
