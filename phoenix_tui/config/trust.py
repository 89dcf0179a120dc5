"""Files of a working directory that would change Phoenix's behaviour there, and the user's trust in
them.

They are found and read, but not interpreted before the user's answer, which is kept by real path, device, inode and the
digest of every file (FAULTS 63-65).
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.config.paths import lock_file
from tools.clean import reveal_name
from tools.files.own_files import read_file, read_regular, write_file
from tools.git.repository import has_repository
from tools.known_secrets import SecretFields

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md")
"""Names of instruction files; in each folder the first that is there counts."""
_INSTRUCTION_NAMES = frozenset(name.rpartition("/")[2] for name in INSTRUCTIONS)
MOST_MISSING = 5
"""Missing imports that are named."""
FOLDER = ".phoenix"
SETTINGS = "config.toml"
_LATER = frozenset({"skills", "commands", "hooks.json"})
"""Entries of `.phoenix` that are found after the first frame, with those of other programs (`config/sources`)."""
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
    imported_by: Path | None = None
    """The instruction file that names it as `@path`."""
    known_digest: str = ""
    """Digest of a file whose content is no longer kept."""

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        import hashlib  # noqa: PLC0415 - OpenSSL behind it takes 2 ms, and most folders have no such file

        return self.known_digest or hashlib.sha256(self.content).hexdigest()

    def without_content(self) -> ProjectFile:
        """The same file with its digest alone."""
        return ProjectFile(self.path, b"", self.imported_by, self.digest)

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
    missing: tuple[tuple[Path, str], ...] = ()
    """Instruction files, each with the name of a file that it imports and that is not there."""

    def without_contents(self) -> Project:
        """The same files with their digests alone, for a folder that is not trusted."""
        return Project(self.folder, tuple(file.without_content() for file in self.files), self.left_out, self.missing)

    def settings_files(self) -> tuple[ProjectFile, ...]:
        """`.phoenix/config.toml`, the repository's before the folder's own."""
        return tuple(file for file in self.files if file.path.parts[-2:] == (FOLDER, SETTINGS))

    def instructions(self) -> tuple[ProjectFile, ...]:
        """The instruction file of each folder, the repository's before the folder's own, each before its imports."""
        return tuple(file for file in self.files if file.imported_by or _is_instructions(file.path))

    def below_phoenix(self, name: str) -> tuple[ProjectFile, ...]:
        """`.phoenix/NAME` of each folder, the repository's before the folder's own."""
        return tuple(file for file in self.files if file.path.parts[-2:] == (FOLDER, name) and not file.imported_by)


def find_project(folder: Path) -> Project:
    """Find the project files in `folder` and, inside a repository, in the folders above it up to its root."""
    real = folder.resolve()
    places = places_of(real)
    search = _Search(places[0])
    for place in places:
        for path in (instructions_path(place), *_below(place / FOLDER, places[0])):
            search.take(path)
    missing = tuple(dict.fromkeys(search.missing))[:MOST_MISSING]
    return Project(real, tuple(search.files), tuple(dict.fromkeys(search.left_out)), missing)


def instructions_path(folder: Path) -> Path:
    """The instruction file of a folder: the first of `INSTRUCTIONS` that is there, else AGENTS.md."""
    return next((path for name in INSTRUCTIONS if os.path.lexists(path := folder / name)), folder / INSTRUCTIONS[0])


class _Search:
    """Reads the files of a project within the limits."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._total = 0
        self._seen: set[Path] = set()
        self.files: list[ProjectFile] = []
        self.left_out: list[Path] = []
        self.missing: list[tuple[Path, str]] = []

    def take(self, path: Path) -> None:
        """Add a file, and the imports of an instruction file; note one that cannot be taken."""
        content = _content(path, self._root)
        if content is None:
            self.left_out += [path] if path.is_symlink() and not _inside(path, self._root) else []
        elif self._add(ProjectFile(path, content)) and _is_instructions(path):
            self._seen.add(path.resolve())
            self._import(self.files[-1], 1)

    def _add(self, file: ProjectFile) -> bool:
        if self._total + len(file.content) > TOTAL_LIMIT:
            self.left_out.append(file.path)
            return False
        self._total += len(file.content)
        self.files.append(file)
        return True

    def _import(self, file: ProjectFile, depth: int) -> None:
        """Add the files that one names, depth first; each real file once."""
        from phoenix_tui.config import imports  # noqa: PLC0415 - most folders have no such file

        for name in imports.import_names(file.text):
            if depth > imports.DEPTH or sum(one.imported_by is not None for one in self.files) >= imports.MOST_IMPORTS:
                return
            path = imports.import_path(name, file.path)
            found = imports.read_import(path, self._root, FILE_LIMIT) if path is not None else None
            if found is None:
                is_there = path is not None and os.path.lexists(path)
                self.left_out += [path] if path is not None and is_there else []
                self.missing += [(file.path, name)] if not is_there and imports.is_file_name(name) else []
            elif found[0] not in self._seen:
                self._seen.add(found[0])
                if self._add(ProjectFile(*found, imported_by=file.path)):
                    self._import(self.files[-1], depth + 1)


def _is_instructions(path: Path) -> bool:
    return path.name in _INSTRUCTION_NAMES and path.parent.name != FOLDER


def place_of(path: Path) -> Path:
    """The folder for which an instruction file is meant: `.claude/CLAUDE.md` is one of the folder above."""
    return path.parent.parent if path.parent.name == ".claude" else path.parent


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


def places_of(folder: Path) -> list[Path]:
    """Folders from the root of the repository down to `folder`; only `folder` outside a repository.

    What a `.git` names is not followed: a worktree's pointer must not send us elsewhere (FAULTS 65).
    """
    chain = [folder, *folder.parents]
    for index, place in enumerate(chain):
        if has_repository(place):
            return list(reversed(chain[: index + 1]))
    return [folder]


def _below(folder: Path, root: Path) -> list[Path]:
    """The first files below `.phoenix`; the folder itself where it leads out of `root`, for the caller to say so."""
    if os.path.lexists(folder) and _inside(folder, root) is None:
        return [folder]
    found: list[Path] = []
    for count, (parent, folders, names) in enumerate(os.walk(folder)):
        if not count:
            folders[:] = [name for name in folders if name not in _LATER]
            names = [name for name in names if name not in _LATER]
        folders.sort()
        found += [Path(parent) / name for name in sorted(names)]
        if len(found) >= COUNT_LIMIT or count >= COUNT_LIMIT:
            break
    return found[:COUNT_LIMIT]


NAMES: Final = ("user", "project", "local")
LOCAL: Final = frozenset({"CLAUDE.local.md", "settings.local.json"})
"""Files of a project that its owner keeps for themselves."""
UNKNOWN: Final = "There is no setting source {name}; use user, project, local, or an empty list."


class FileSources(Struct, frozen=True):
    """Owners of the files that count; those of a project need no answer, because the caller has named it."""

    users: bool
    projects: bool
    locals: bool
    folder: Path
    """Empty folder of this run: its trust is kept there and goes with it."""

    @property
    def trusts(self) -> bool:
        """True where files of the working directory count."""
        return self.projects or self.locals

    def counts(self, path: Path) -> bool:
        """True for a file of a project that counts."""
        return self.locals if path.name in LOCAL else self.projects


def check_sources(text: str) -> None:
    """Check a value of the flag. Raises ValueError with a sentence."""
    for name in _split_list(text):
        if name not in NAMES:
            raise ValueError(UNKNOWN.format(name=name[:60]))


def file_sources(text: str, folder: Path) -> FileSources:
    """The sources that a checked value names."""
    users, projects, own = (name in _split_list(text) for name in NAMES)
    return FileSources(users, projects, own, folder)


def _split_list(text: str) -> list[str]:
    return [name for one in text.split(",") if (name := one.strip())]


MOST_KEPT = 256 * 1024 * 1024
"""Bytes of trust.json: texts of many large projects."""
TEXT_LIMIT = 64 * 1024
"""Bytes of a file up to which its text is kept for a later diff."""


class Trust(StrEnum):
    """Trust in a folder."""

    NOT_NEEDED = "not-needed"
    """The folder has no files that would be interpreted."""
    GIVEN = "given"
    UNKNOWN = "unknown"
    """No answer yet."""
    REFUSED = "refused"
    """The answer was to work without its files."""
    CHANGED = "changed"
    """Trusted once, but a file is new, gone or different since."""


class TrustStatus(Struct, frozen=True):
    """Trust in a folder, and the files that an answer is about."""

    trust: Trust
    changed: tuple[Path, ...] = ()


class SourcesAnswer(Struct, frozen=True):
    """The user's last answer about the files that extend Phoenix in a folder."""

    trusted: bool
    digests: dict[str, str]
    texts: dict[str, str]
    """Texts of these files then, to show a change; long ones are left out."""


class _Entry(Struct, frozen=True):
    device: int
    inode: int
    trusted: bool
    digests: dict[str, str]
    texts: dict[str, str]
    """Texts of the files when the answer was given, to show a change; long ones are left out."""
    sources: SourcesAnswer | None = None
    """None: not asked."""


class TrustFile(Struct, frozen=True):
    """trust.json: one entry per real path; a folder inherits nothing from those above it."""

    path: Path

    def status(self, project: Project) -> TrustStatus:
        """Check if the files of `project`, as they were read, may be interpreted."""
        if not project.files:
            return TrustStatus(Trust.NOT_NEEDED)
        found = {str(file.path): file.digest for file in project.files}
        entry = self._entries().get(str(project.folder))
        if entry is None or not entry.digests or (entry.device, entry.inode) != _identity(project.folder):
            return TrustStatus(Trust.UNKNOWN, tuple(file.path for file in project.files))
        changed = {name for name in found.keys() | entry.digests.keys() if found.get(name) != entry.digests.get(name)}
        if changed:
            return TrustStatus(Trust.CHANGED, tuple(Path(name) for name in sorted(changed)))
        return TrustStatus(Trust.GIVEN if entry.trusted else Trust.REFUSED)

    def may_be_trusted(self, folder: Path) -> bool:
        """True when the user trusted this very folder; otherwise its files need not be read."""
        real = folder.resolve()
        entry = self._entries().get(str(real))
        if entry is None or not entry.trusted:
            return False
        try:
            return (entry.device, entry.inode) == _identity(real)
        except OSError:
            return False

    def answer(self, project: Project, *, trusted: bool) -> None:
        """Keep the user's answer for exactly these files.

        Raises:
            OSError: the file cannot be written.
        """
        device, inode = _identity(project.folder)
        digests = {str(file.path): file.digest for file in project.files}
        # A refused text is not kept: only its digest, to notice changes.
        kept = project.files if trusted else ()
        texts = {str(file.path): file.text for file in kept if len(file.content) <= TEXT_LIMIT}
        with lock_file(self.path):
            entries = self._entries()
            sources = _sources_of(entries, project.folder)
            entries[str(project.folder)] = _Entry(device, inode, trusted, digests, texts, sources)
            self._write(entries)

    def sources_answer(self, folder: Path) -> SourcesAnswer | None:
        """The last answer about the files that extend Phoenix in `folder`, a real path; None: not asked."""
        return _sources_of(self._entries(), folder)

    def answer_sources(self, folder: Path, answer: SourcesAnswer) -> None:
        """Keep the user's answer about the files that extend Phoenix in `folder`, a real path.

        Raises:
            OSError: the file cannot be written.
        """
        device, inode = _identity(folder)
        with lock_file(self.path):
            entries = self._entries()
            known = entries.get(str(folder))
            if known is None or (known.device, known.inode) != (device, inode):
                known = _Entry(device, inode, trusted=False, digests={}, texts={})
            entries[str(folder)] = replace(known, sources=answer)
            self._write(entries)

    def changes(self, project: Project) -> str:
        """Changes since the last answer, as a unified diff (FAULTS 64)."""
        from tools.files.content import diff_lines  # noqa: PLC0415 - the first frame has no use for it

        entry = self._entries().get(str(project.folder))
        before = entry.texts if entry is not None else {}
        after = {str(file.path): file.text for file in project.files}
        lines: list[str] = []
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
            shown = reveal_name(name)
            lines += diff_lines(old, new, f"{shown} (then)", f"{shown} (now)")
        return "\n".join(lines)

    def _write(self, entries: dict[str, _Entry]) -> None:
        import json  # noqa: PLC0415 - most folders need no trust, and the first frame no JSON

        folders = {name: _document(entry) for name, entry in entries.items()}
        write_file(self.path, json.dumps({"folders": folders}, indent=1, sort_keys=True) + "\n")

    def _entries(self) -> dict[str, _Entry]:
        """Entries of the file; an invalid file trusts nothing."""
        import json  # noqa: PLC0415 - as above

        try:
            document: object = json.loads(read_file(self.path, MOST_KEPT))
        except (OSError, ValueError, RecursionError):
            return {}
        folders = cast("dict[str, object]", document).get("folders") if isinstance(document, dict) else None
        if not isinstance(folders, dict):
            return {}
        parsed = {name: _entry(value) for name, value in cast("dict[str, object]", folders).items()}
        return {name: entry for name, entry in parsed.items() if entry is not None}


def _sources_of(entries: dict[str, _Entry], folder: Path) -> SourcesAnswer | None:
    entry = entries.get(str(folder))
    return entry.sources if entry is not None and (entry.device, entry.inode) == _identity(folder) else None


def _entry(value: object) -> _Entry | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    device, inode = fields.get("device"), fields.get("inode")
    files, texts = _texts(fields.get("files")), _texts(fields.get("texts", {}))
    if not isinstance(device, int) or not isinstance(inode, int) or files is None or texts is None:
        return None
    return _Entry(device, inode, fields.get("trusted") is True, files, texts, _sources(fields.get("sources")))


def _sources(value: object) -> SourcesAnswer | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    files, texts = _texts(fields.get("files")), _texts(fields.get("texts", {}))
    return None if files is None or texts is None else SourcesAnswer(fields.get("trusted") is True, files, texts)


def _texts(table: object) -> dict[str, str] | None:
    if not isinstance(table, dict):
        return None
    return {str(name): str(value) for name, value in cast("dict[object, object]", table).items()}


def _document(entry: _Entry) -> dict[str, object]:
    document: dict[str, object] = {
        "device": entry.device,
        "inode": entry.inode,
        "trusted": entry.trusted,
        "files": entry.digests,
        "texts": entry.texts,
    }
    if (sources := entry.sources) is not None:
        document["sources"] = {"trusted": sources.trusted, "files": sources.digests, "texts": sources.texts}
    return document


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino
