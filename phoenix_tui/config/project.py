"""The files of a working directory that would change Phoenix's behaviour there, found and read but not interpreted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from tools.files.own_files import read_regular
from tools.secret_fields import SecretFields

INSTRUCTIONS = "AGENTS.md"
FOLDER = ".phoenix"
SETTINGS = "config.toml"
FILE_LIMIT = 1024 * 1024
"""Bytes of one file; a longer one is cut, and its digest is that of the cut."""
COUNT_LIMIT = 200
"""Files, and folders, below one `.phoenix`."""
TOTAL_LIMIT = 8 * 1024 * 1024
"""Bytes of all files together: they are read at every start."""


class ProjectFile(SecretFields, Struct, frozen=True):
    """One file, with the very bytes whose digest is trusted."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({"content"})

    path: Path
    content: bytes
    known_digest: str = ""
    """Digest of a file whose content is no longer kept."""

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        import hashlib  # noqa: PLC0415 - OpenSSL behind it takes 2 ms, and most folders have no such file

        return self.known_digest or hashlib.sha256(self.content).hexdigest()

    def without_content(self) -> ProjectFile:
        """The same file with its digest alone."""
        return ProjectFile(self.path, b"", self.digest)

    @property
    def text(self) -> str:
        """The content as text; bytes that are no UTF-8 are replaced."""
        return self.content.decode("utf-8", "replace")


class Project(Struct, frozen=True):
    """A working directory and the files in it that wait for trust."""

    folder: Path
    """The real path."""
    files: tuple[ProjectFile, ...] = ()
    left_out: tuple[Path, ...] = ()
    """Files that are none of the folder's: a link leads out of it, or there is no end of them."""

    def without_contents(self) -> Project:
        """The same files with their digests alone, for a folder that is not trusted."""
        return Project(self.folder, tuple(file.without_content() for file in self.files), self.left_out)

    def settings_files(self) -> tuple[ProjectFile, ...]:
        """`.phoenix/config.toml`, the repository's before the folder's own."""
        return tuple(file for file in self.files if file.path.parts[-2:] == (FOLDER, SETTINGS))

    def instructions(self) -> str:
        """All AGENTS.md as one text, the repository's before the folder's own."""
        found = [file for file in self.files if file.path.name == INSTRUCTIONS and file.path.parent.name != FOLDER]
        return "\n\n".join(f"# {file.path}\n\n{file.text.strip()}" for file in found if file.text.strip())


def find_project(folder: Path) -> Project:
    """Find the project files in `folder` and, inside a repository, in the folders above it up to its root."""
    real = folder.resolve()
    files: list[ProjectFile] = []
    left_out: list[Path] = []
    places, total = _places(real), 0
    for place in places:
        for path in (place / INSTRUCTIONS, *_below(place / FOLDER, places[0])):
            content = _content(path, places[0])
            if content is None:
                left_out += [path] if path.is_symlink() and not _inside(path, places[0]) else []
            elif total + len(content) > TOTAL_LIMIT:
                left_out.append(path)
            else:
                total += len(content)
                files.append(ProjectFile(path, content))
    return Project(real, tuple(files), tuple(dict.fromkeys(left_out)))


def _content(path: Path, root: Path) -> bytes | None:
    """Content of a regular file of the folder `root`, through any links inside it; None for anything else.

    The path is resolved before it is opened, and a last part that became a link since then is refused.
    """
    real = _inside(path, root)
    return read_regular(real, FILE_LIMIT, follow=False) if real is not None else None


def _inside(path: Path, root: Path) -> Path | None:
    """The resolved path, None where it leads out of the folder or nowhere."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return real if real.is_relative_to(root) else None


def _places(folder: Path) -> list[Path]:
    """Folders from the root of the repository down to `folder`; only `folder` outside a repository.

    `.git` is looked for and never read: a worktree's pointer must not send us elsewhere (FAULTS 65).
    """
    chain = [folder, *folder.parents]
    for index, place in enumerate(chain):
        if os.path.lexists(place / ".git"):
            return list(reversed(chain[: index + 1]))
    return [folder]


def _below(folder: Path, root: Path) -> list[Path]:
    """The first files below `.phoenix`; the folder itself where it leads out of `root`, for the caller to say so."""
    if os.path.lexists(folder) and _inside(folder, root) is None:
        return [folder]
    found: list[Path] = []
    for count, (parent, folders, names) in enumerate(os.walk(folder)):
        folders.sort()
        found += [Path(parent) / name for name in sorted(names)]
        if len(found) >= COUNT_LIMIT or count >= COUNT_LIMIT:
            break
    return found[:COUNT_LIMIT]
