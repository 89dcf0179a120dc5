"""The files that extend Phoenix in a folder: which kinds there are, and what each of them can do."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct


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


class LeftOut(Struct, frozen=True):
    """A file that is not used, and the reason as a clause."""

    path: Path
    reason: str


class Sources(Struct, frozen=True):
    """Files of one folder, those nearest to it first, and what was left out."""

    files: tuple[SourceFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def of(self, kind: SourceKind) -> tuple[SourceFile, ...]:
        """Files of a kind, in their order."""
        return tuple(file for file in self.files if file.kind is kind)
