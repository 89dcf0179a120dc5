"""Finds the files that extend Phoenix, in a project and in the user's own folders; interprets none of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from phoenix_tui.config.project import places_of
from phoenix_tui.config.sources.digests import Digests
from phoenix_tui.config.sources.kinds import LeftOut, SourceFile, SourceKind, Sources

MOST_FILES: Final = 2_000
MOST_BYTES: Final = 64 * 1024 * 1024
"""Files and bytes of one project."""
MOST_FOLDERS: Final = 2_000
DEPTH: Final = 8
"""Folders below a folder of skills or commands."""
SKILL_FILE: Final = "SKILL.md"
_PASSED: Final = frozenset({".git", "node_modules", "__pycache__", ".venv"})
_TOO_MUCH: Final = f"a folder has at most {MOST_FILES:,} such files and {MOST_BYTES // 1024**2} MB"
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


def find_sources(folder: Path, digests: Digests) -> Sources:
    """Files of `folder` and, inside a repository, of the folders above it; the nearest first."""
    places = places_of(folder.resolve())
    search = _Search(places[0], digests)
    for place in reversed(places):
        for rule in _PROJECT_RULES:
            search.take(place / rule.name, rule)
    return Sources(tuple(search.files), tuple(search.left_out))


def find_users_sources(config: Path, home: Path, digests: Digests, *, claude_hooks: bool = False) -> Sources:
    """Files of the user's own folders: Phoenix's first, then those of other programs; links are followed.

    `claude_hooks`: the hooks of another program's settings count too.
    """
    search = _Search(None, digests)
    for path, kind, suffix in (
        (config / "hooks.json", SourceKind.HOOKS, ""),
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


def with_programs(sources: Sources, programs: Iterator[Path], root: Path, digests: Digests) -> Sources:
    """The sources together with files of the project that hooks and servers are started from."""
    search = _Search(root, digests, sources)
    known = {file.path for file in sources.files}
    for path in programs:
        if path not in known and not search.is_full:
            known.add(path)
            search.add(path, SourceKind.PROGRAM, path)
    return Sources(tuple(search.files), tuple(search.left_out))


class _Search:
    """Takes files within the limits; below `root` alone, where there is one."""

    def __init__(self, root: Path | None, digests: Digests, known: Sources | None = None) -> None:
        self._root = root
        self._digests = digests
        self._room = MOST_BYTES
        self._folders = MOST_FOLDERS
        self.files: list[SourceFile] = list(known.files) if known is not None else []
        self.left_out: list[LeftOut] = list(known.left_out) if known is not None else []

    @property
    def is_full(self) -> bool:
        """True when no further file is taken."""
        return len(self.files) >= MOST_FILES or self._room <= 0

    def take(self, path: Path, rule: _Rule) -> None:
        """Take one file, or the files below a folder."""
        if not os.path.lexists(path):
            return
        if self._outside(path):
            self.left_out.append(LeftOut(path, _OUTSIDE))
        elif not path.is_dir():
            self.add(path, rule.kind, path)
        elif rule.kind is SourceKind.SKILL:
            for skill in self._children(path):
                if skill.is_dir() and os.path.lexists(skill / SKILL_FILE) and not self._outside(skill):
                    self._walk(skill, rule, DEPTH, skill)
        else:
            self._walk(path, rule, DEPTH, None)

    def _walk(self, folder: Path, rule: _Rule, depth: int, unit: Path | None) -> None:
        for path in self._children(folder):
            if self._outside(path):
                self.left_out.append(LeftOut(path, _OUTSIDE))
            elif path.is_dir():
                if depth:
                    self._walk(path, rule, depth - 1, unit)
            elif path.name.endswith(rule.suffix):
                self.add(path, rule.kind, unit or path)

    def add(self, path: Path, kind: SourceKind, unit: Path) -> None:
        """Take a file with its digest; leave out one beyond the limits, or that cannot be read."""
        if self.is_full:
            if not self.left_out or self.left_out[-1].reason != _TOO_MUCH:
                self.left_out.append(LeftOut(path, _TOO_MUCH))
            return
        try:
            digest, size = self._digests.digest(path.resolve(strict=True), self._room)
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            self.left_out.append(LeftOut(path, (reason or str(error)).lower()))
            return
        self._room -= size
        self.files.append(SourceFile(path, kind, unit, digest, is_users=self._root is None))

    def _children(self, folder: Path) -> list[Path]:
        """Entries of a folder by name; none when too many folders were looked at."""
        self._folders -= 1
        if self._folders < 0:
            return []
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 - names alone, of a folder that may be large
        except OSError:
            return []
        return [folder / name for name in names[: MOST_FILES + 1] if name not in _PASSED]

    def _outside(self, path: Path) -> bool:
        """True where a path leads out of the project, or nowhere."""
        if self._root is None:
            return False
        try:
            return not path.resolve(strict=True).is_relative_to(self._root)
        except (OSError, RuntimeError):
            return True
