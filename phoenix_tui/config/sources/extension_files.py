"""Kinds of files that extend Phoenix, the folders that `--plugin-dir` names, and digests kept while
a file is the same.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias, cast

from msgspec import Struct, field

from tools.clean import clean_line
from tools.files.own_files import open_own, read_regular


class SourceKind(StrEnum):
    """Use of a file."""

    SERVERS = "servers"
    HOOKS = "hooks"
    PROGRAM = "program"
    """A file of the project that a hook or a server is started from."""
    INSTRUCTIONS = "instructions"
    SKILL = "skill"
    AGENT = "agent"
    COMMAND = "command"


class SourceGroup(StrEnum):
    """Power of a file once it is trusted; a change switches its group off."""

    RUNS = "runs programs"
    INSTRUCTS = "instructs the model"
    ADDS = "adds commands"


GROUPS: Final = {
    SourceKind.SERVERS: SourceGroup.RUNS,
    SourceKind.HOOKS: SourceGroup.RUNS,
    SourceKind.PROGRAM: SourceGroup.RUNS,
    SourceKind.INSTRUCTIONS: SourceGroup.INSTRUCTS,
    SourceKind.SKILL: SourceGroup.INSTRUCTS,
    SourceKind.AGENT: SourceGroup.INSTRUCTS,
    SourceKind.COMMAND: SourceGroup.ADDS,
}


class Plugin(Struct, frozen=True):
    """A folder whose files count for one run, because the caller has named it."""

    name: str
    """Prefix of what it adds."""
    folder: Path
    """A real path."""
    has_servers: bool = True
    """False where its MCP servers do not count."""


class SourceFile(Struct, frozen=True):
    """One file, by the path under which it was found."""

    path: Path
    kind: SourceKind
    unit: Path
    """Owner it is switched off with: the folder of a skill, else the file itself."""
    digest: str
    """SHA-256 of the whole content."""
    is_users: bool = False
    """True for a file of the user's own folders, which needs no trust."""
    plugin: Plugin | None = None

    @property
    def group(self) -> SourceGroup:
        """Power of the file."""
        return GROUPS[self.kind]


class LeftOutFile(Struct, frozen=True):
    """A file that is not used, and the reason as a clause."""

    path: Path
    reason: str


class Sources(Struct, frozen=True):
    """Files of one folder, those nearest to it first, and what was left out."""

    files: tuple[SourceFile, ...] = ()
    left_out: tuple[LeftOutFile, ...] = ()

    def of(self, kind: SourceKind) -> tuple[SourceFile, ...]:
        """Files of a kind, in their order."""
        return tuple(file for file in self.files if file.kind is kind)


MANIFEST: Final = Path(".claude-plugin") / "plugin.json"
MOST_BYTES: Final = 256 * 1024
ROOT: Final = "${CLAUDE_PLUGIN_ROOT}"
"""Name of a plugin's folder in its hooks and servers."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SIGNS: Final = re.compile(r"[\x00-\x1f\x7f\"'$`\\]")
"""Signs that would mean something else where a shell reads the path of a folder."""


def find_plugin(text: str, cwd: Path) -> Plugin:
    """The plugin of a folder; its name is that of its manifest, else of the folder.

    Raises:
        ValueError: it is none; a clause that says why.
    """
    try:
        folder = (cwd / Path(text).expanduser()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError("there is no such folder") from error
    if not folder.is_dir():
        raise ValueError("it is no folder")
    if _SIGNS.search(str(folder)):
        raise ValueError("its path has quotes or other signs of a shell")
    name = _read_plugin_name(folder)
    if not _NAME.fullmatch(name):
        raise ValueError("its name may have letters, digits, '-', '_' and '.' only, at most 64")
    return Plugin(name, folder)


def fill_root(content: bytes, plugin: Plugin | None) -> bytes:
    """A text of JSON with the folder of its plugin filled in."""
    return content if plugin is None else content.replace(ROOT.encode(), str(plugin.folder).encode())


def _read_plugin_name(folder: Path) -> str:
    content = read_regular(folder / MANIFEST, MOST_BYTES)
    if content is None:
        return folder.name
    try:
        manifest: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{MANIFEST} is no JSON ({clean_line(str(error))[:100]})") from error
    table = cast("dict[str, object]", manifest) if isinstance(manifest, dict) else {"name": None}
    name = table.get("name", folder.name)
    if not isinstance(name, str):
        raise ValueError(f"{MANIFEST} has no name")  # noqa: TRY004 - a fault of the file
    return name


SETTLED: Final = 50_000_000
"""Nanoseconds after which a further change of a file has another time, also where the kernel's clock ticks coarsely
(docs/decisions/rewind.md)."""
_PathVersion: TypeAlias = tuple[int, int, int, int, int, int] | None


class Fingerprint(Struct, eq=False):
    """Paths of one search, files that were not there included; a check costs 1.5 us a path.

    A path is noted before it is read: a change meanwhile then shows. Links are followed; one that leads elsewhere
    changes the folder that it is in.
    """

    _seen: dict[str, _PathVersion] = field(default_factory=dict[str, _PathVersion])
    _begun: int = field(default_factory=time.time_ns)
    _newest: int = 0

    def note(self, path: Path) -> None:
        """Remember the version of a file or folder, or that there is none."""
        name = str(path)
        if name not in self._seen:
            self._seen[name] = version = _read_version(name)
            # A program can set back every time but this one.
            self._newest = max(self._newest, version[5] if version is not None else 0)

    def holds(self) -> bool:
        """True when nothing has changed; never where something had changed just before the search."""
        if self._newest > self._begun - SETTLED:
            return False
        return all(_read_version(name) == version for name, version in self._seen.items())


def _read_version(name: str) -> _PathVersion:
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


PIECE: Final = 256 * 1024
"""Bytes read at a time."""
MOST_KEPT: Final = 20_000
"""Digests in memory, about 8 MB."""


class _Version(Struct, frozen=True):
    """Identity of a version of a file; a program can set back the modification time, not the change."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


class Digests(Struct, eq=False):
    """Digests by path; may be used by several threads."""

    _kept: dict[Path, tuple[_Version, str]] = field(default_factory=dict[Path, tuple[_Version, str]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def digest(self, path: Path, most: int) -> tuple[str, int]:
        """SHA-256 of a regular file of at most `most` bytes, and its size.

        Raises:
            OSError: it is gone, larger, a link or no regular file.
        """
        descriptor = open_own(path)
        try:
            now = os.fstat(descriptor)
            version = _Version(now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
            with self._lock:
                kept = self._kept.get(path)
            if kept is not None and kept[0] == version:
                return _within(kept[1], version.size, most)
            found = _read(descriptor, _within("", version.size, most)[1])
        finally:
            os.close(descriptor)
        if version.changed <= time.time_ns() - SETTLED:  # a second change could have the same time
            with self._lock:
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                self._kept[path] = (version, found)
        return found, version.size


def digest_of(content: bytes) -> str:
    """SHA-256 of a content."""
    import hashlib  # noqa: PLC0415 - OpenSSL behind it takes 2 ms, and most folders have no such file

    return hashlib.sha256(content).hexdigest()


def _within(digest: str, size: int, most: int) -> tuple[str, int]:
    if size > most:
        raise OSError("it is larger than what is left of the limit")
    return digest, size


def _read(descriptor: int, size: int) -> str:
    """Digest of the first `size` bytes and one more: a file that grew meanwhile has no digest of its beginning."""
    import hashlib  # noqa: PLC0415 - as above

    total, left = hashlib.sha256(), size + 1
    while left > 0 and (piece := os.read(descriptor, min(PIECE, left))):
        total.update(piece)
        left -= len(piece)
    return total.hexdigest()
