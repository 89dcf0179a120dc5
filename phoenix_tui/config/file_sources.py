"""`--setting-sources`: whose files count in one run, whatever the user has answered about a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

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
    for name in _listed(text):
        if name not in NAMES:
            raise ValueError(UNKNOWN.format(name=name[:60]))


def file_sources(text: str, folder: Path) -> FileSources:
    """The sources that a checked value names."""
    users, projects, own = (name in _listed(text) for name in NAMES)
    return FileSources(users, projects, own, folder)


def _listed(text: str) -> list[str]:
    return [name for one in text.split(",") if (name := one.strip())]
