"""Folders with skills and command files, and the catalogue of one."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.ports.extensions import InvocableCatalogue
from phoenix_tui.config.sources.catalogues import CatalogueReader
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import TrustFile
from tests.support.extended_folder import write
from tests.support.git_repositories import empty_repository


def skill(folder: Path, name: str, front: str = "description: Does it.", body: str = "Do it.") -> Path:
    """A skill below a folder of skills; returns its SKILL.md."""
    return write(folder / name / "SKILL.md", f"---\n{front}\n---\n{body}\n")


def command(folder: Path, name: str, front: str = "description: Does it.", body: str = "Do it.") -> Path:
    """A command file below a folder of commands; `name` may have slashes."""
    return write(folder / f"{name}.md", f"---\n{front}\n---\n{body}\n")


def sources_of(home: Path) -> ProjectSources:
    """The sources of a user whose folders are below `home`."""
    return ProjectSources(home / "config", home / "user", TrustFile(home / "trust.json"))


def catalogue(
    root: Path, sources: ProjectSources, taken: Collection[str] = ("help", "compact"), *, trusted: bool = True
) -> InvocableCatalogue:
    """The catalogue of a folder, whose files are trusted as they are now unless told otherwise."""
    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        empty_repository(root)
    found = sources.answer(root, trusted=True) if trusted else sources.look(root)
    return CatalogueReader(taken).read(found, (), {})
