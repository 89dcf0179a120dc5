"""Finds the files that extend Phoenix, in a project and in the user's own folders; interprets none of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from phoenix_tui.config.project import places_of
from phoenix_tui.config.sources.digests import Digests
from phoenix_tui.config.sources.fingerprint import Fingerprint
from phoenix_tui.config.sources.kinds import LeftOut, Plugin, SourceFile, SourceKind, Sources
from phoenix_tui.config.sources.programs import TOO_FAR, ProgramSearch

MOST_FILES: Final = 2_000
MOST_BYTES: Final = 64 * 1024 * 1024
"""Files and bytes of one project."""
MOST_FOLDERS: Final = 2_000
MOST_ENTRIES: Final = 20_000
"""Entries of all these folders that are looked at, whatever they are."""
DEPTH: Final = 8
"""Folders below a folder of skills or commands."""
SKILL_FILE: Final = "SKILL.md"
_PASSED: Final = frozenset({".git", "node_modules", "__pycache__", ".venv"})
_TOO_MUCH: Final = f"a folder has at most {MOST_FILES:,} such files and {MOST_BYTES // 1024**2} MB"
_TOO_WIDE: Final = f"only {MOST_FOLDERS:,} folders and {MOST_ENTRIES:,} entries of them are looked at"
_OUTSIDE: Final = "a link leads out of the project"


class _Rule(Struct, frozen=True):
    """Place of the files of a kind, relative to a folder of a project."""

    name: str
    kind: SourceKind
    suffix: str = ""
    """Empty: the name is one file, or every file below the folder counts."""


_PROJECT_RULES: Final = (
    _Rule("CLAUDE.local.md", SourceKind.INSTRUCTIONS),
    _Rule(".mcp.json", SourceKind.SERVERS),
    _Rule(".phoenix/hooks.json", SourceKind.HOOKS),
    _Rule(".phoenix/skills", SourceKind.SKILL),
    _Rule(".phoenix/commands", SourceKind.COMMAND, ".md"),
    _Rule(".agents/skills", SourceKind.SKILL),
    _Rule(".claude/settings.json", SourceKind.HOOKS),
    _Rule(".claude/settings.local.json", SourceKind.HOOKS),
    _Rule(".claude/skills", SourceKind.SKILL),
    _Rule(".claude/commands", SourceKind.COMMAND, ".md"),
    _Rule(".claude/agents", SourceKind.AGENT, ".md"),
    _Rule(".claude/rules", SourceKind.INSTRUCTIONS, ".md"),
)


def find_sources(folder: Path, digests: Digests, seen: Fingerprint | None = None) -> Sources:
    """Files of `folder` and, inside a repository, of the folders above it; the nearest first.

    `seen` gets every path that this depends on.
    """
    places = places_of(folder.resolve())
    search = _Search(places[0], digests, seen)
    for place in reversed(places):
        for rule in _PROJECT_RULES:
            search.take(place / rule.name, rule)
    return Sources(tuple(search.files), tuple(search.left_out))


def find_users_sources(
    config: Path, home: Path, digests: Digests, seen: Fingerprint | None = None, *, claude_hooks: bool = False
) -> Sources:
    """Files of the user's own folders: Phoenix's first, then those of other programs; links are followed.

    `claude_hooks`: the hooks of another program's settings count too.
    """
    search = _Search(None, digests, seen)
    for path, kind, suffix in (
        (config / "hooks.json", SourceKind.HOOKS, ""),
        (config / "config.toml", SourceKind.HOOKS, ""),
        (config / "skills", SourceKind.SKILL, ""),
        (config / "commands", SourceKind.COMMAND, ".md"),
        (home / ".agents" / "skills", SourceKind.SKILL, ""),
        (home / ".claude" / "skills", SourceKind.SKILL, ""),
        (home / ".claude" / "commands", SourceKind.COMMAND, ".md"),
        (home / ".claude" / "agents", SourceKind.AGENT, ".md"),
    ):
        search.take(path, _Rule(path.name, kind, suffix))
    if claude_hooks:
        search.take(home / ".claude" / "settings.json", _Rule("settings.json", SourceKind.HOOKS))
    return Sources(tuple(search.files), tuple(search.left_out))


def find_plugins_sources(plugins: Sequence[Plugin], digests: Digests, seen: Fingerprint | None = None) -> Sources:
    """Files of plugins, in their order; links are followed."""
    search = _Search(None, digests, seen)
    for plugin in plugins:
        search.plugin = plugin
        for name, kind, suffix in (
            ("hooks/hooks.json", SourceKind.HOOKS, ""),
            (".mcp.json", SourceKind.SERVERS, ""),
            ("skills", SourceKind.SKILL, ""),
            ("commands", SourceKind.COMMAND, ".md"),
        ):
            if kind is not SourceKind.SERVERS or plugin.has_servers:
                search.take(plugin.folder / name, _Rule(name, kind, suffix))
    return Sources(tuple(search.files), tuple(search.left_out))


def with_programs(sources: Sources, programs: ProgramSearch, digests: Digests) -> Sources:
    """The sources together with files of the project that hooks and servers are started from; without hooks and servers
    where not all of those can be compared before each run.
    """
    search = _Search(programs.root, digests, programs.seen, sources)
    known = {file.path for file in sources.files}
    for path in programs.found:
        if path not in known and (real := search.inside(path)) is not None:
            known.add(path)
            search.add(path, real, SourceKind.PROGRAM, path)
    if programs.is_cut or search.is_full:
        runs = [file for file in search.files if file.kind in {SourceKind.HOOKS, SourceKind.SERVERS}]
        search.files = [file for file in search.files if file not in runs]
        search.left_out += [LeftOut(file.path, TOO_FAR) for file in runs]
    return Sources(tuple(search.files), tuple(search.left_out))


class _Entry(Struct, frozen=True):
    """Entry of a folder; `real` is its resolved path, None where it leads out of the project, or nowhere."""

    path: Path
    real: Path | None
    is_folder: bool


class _Search:
    """Takes files within the limits; below `root` alone, where there is one."""

    def __init__(
        self, root: Path | None, digests: Digests, seen: Fingerprint | None, known: Sources | None = None
    ) -> None:
        self._root = root
        self._digests = digests
        self._seen = seen or Fingerprint()
        self._room = MOST_BYTES
        self._folders = MOST_FOLDERS
        self._entries = MOST_ENTRIES
        self.plugin: Plugin | None = None
        self.files: list[SourceFile] = list(known.files) if known is not None else []
        self.left_out: list[LeftOut] = list(known.left_out) if known is not None else []

    @property
    def is_full(self) -> bool:
        """True when no further file is taken."""
        return len(self.files) >= MOST_FILES or self._room <= 0

    def take(self, path: Path, rule: _Rule) -> None:
        """Take one file, or the files below a folder."""
        self._seen.note(path)
        if not os.path.lexists(path):
            return
        real = self.inside(path)
        if real is None:
            self.left_out.append(LeftOut(path, _OUTSIDE))
        elif not real.is_dir():
            self.add(path, real, rule.kind, path)
        elif rule.kind is SourceKind.SKILL:
            for one in self._children(path, real):
                if one.is_folder and one.real is not None:
                    self._take_skill(one.path, one.real, rule)
        else:
            self._walk(path, real, rule, DEPTH, None)

    def _take_skill(self, path: Path, real: Path, rule: _Rule) -> None:
        self._seen.note(path)
        if os.path.lexists(path / SKILL_FILE):
            self._walk(path, real, rule, DEPTH, path)

    def _walk(self, folder: Path, real: Path, rule: _Rule, depth: int, unit: Path | None) -> None:
        for one in self._children(folder, real):
            if one.real is None:
                self._seen.note(one.path)
                self.left_out.append(LeftOut(one.path, _OUTSIDE))
            elif one.is_folder:
                if depth:
                    self._walk(one.path, one.real, rule, depth - 1, unit)
            elif one.path.name.endswith(rule.suffix):
                self.add(one.path, one.real, rule.kind, unit or one.path)

    def add(self, path: Path, real: Path, kind: SourceKind, unit: Path) -> None:
        """Take a file with its digest; leave out one beyond the limits, or that cannot be read."""
        self._seen.note(path)
        if self.is_full:
            self._leave_out_once(path, _TOO_MUCH)
            return
        try:
            digest, size = self._digests.digest(real, self._room)
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            self.left_out.append(LeftOut(path, (reason or str(error)).lower()))
            return
        self._room -= size
        self.files.append(SourceFile(path, kind, unit, digest, is_users=self._root is None, plugin=self.plugin))

    def _leave_out_once(self, path: Path, reason: str) -> None:
        if not self.left_out or self.left_out[-1].reason != reason:
            self.left_out.append(LeftOut(path, reason))

    def _children(self, folder: Path, real: Path) -> list[_Entry]:
        """Entries of a folder by name; none where the search is full or has looked at too many."""
        self._seen.note(folder)
        self._folders -= 1
        if self._folders < 0 or self._entries <= 0:
            self._leave_out_once(folder, _TOO_WIDE)
            return []
        try:
            with os.scandir(real) as found:
                entries = list(islice(found, self._entries + 1))
        except OSError:
            return []
        if len(entries) > self._entries:
            self._leave_out_once(folder, _TOO_WIDE)
        entries = [one for one in entries[: self._entries] if one.name not in _PASSED]
        self._entries -= len(entries)
        return [self._entry(folder, real, one) for one in sorted(entries, key=_name)]

    def _entry(self, folder: Path, real: Path, found: os.DirEntry[str]) -> _Entry:
        path = folder / found.name
        if not found.is_symlink():  # below a folder of the project, without a link, nothing leads out of it
            return _Entry(path, real / found.name, found.is_dir(follow_symlinks=False))
        target = self.inside(path)
        return _Entry(path, target, target is not None and target.is_dir())

    def inside(self, path: Path) -> Path | None:
        """The resolved path; None where it leads out of the project, or nowhere."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return None
        return real if self._root is None or real.is_relative_to(self._root) else None


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name
