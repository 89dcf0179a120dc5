"""Trust in a folder's own files, by real path, device, inode and the digest of every file (FAULTS 63-65)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.config.project import Project
from phoenix_tui.config.shared_files import lock_file
from tools.clean import reveal_name
from tools.files.own_files import read_file, write_file

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
