"""Skills of subfolders: they join once a file there was read, each folder with an answer of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from phoenix_tui.config.sources.catalogues import NestedSources
from phoenix_tui.config.sources.kinds import SourceFile, SourceKind
from phoenix_tui.config.sources.project_sources import ProjectSources
from tools.clean import clean_line

PLACES: Final = (".phoenix/skills", ".agents/skills", ".claude/skills")
DEPTH: Final = 8
"""Folders below the working directory that are looked at."""
MOST_MET: Final = 100
"""Folders of one working directory that are remembered."""


def met_folders(cwd: Path, paths: Iterable[Path]) -> Iterator[Path]:
    """Folders between the working directory and files that were read there, the nearest to it first."""
    for path in paths:
        if path.is_relative_to(cwd):
            parts = path.relative_to(cwd).parts[:-1][:DEPTH]
            for place in range(1, len(parts) + 1):
                yield cwd.joinpath(*parts[:place])


def nested_skills(sources: ProjectSources, cwd: Path, met: Iterable[Path]) -> list[NestedSources]:
    """Skills of these folders, accepted and waiting; reads the disk."""
    found: list[NestedSources] = []
    for folder in sorted(met):
        if any((folder / place).is_dir() for place in PLACES):
            try:
                looked = sources.look(folder)
            except OSError:
                continue
            name = clean_line(":".join(folder.relative_to(cwd).parts))
            own = tuple(file for file in looked.files if _is_own(file, folder))
            waiting = tuple(file for file in looked.waiting if _is_own(file, folder))
            found.append(NestedSources(name, own, waiting))
    return found


def accept_nested(sources: ProjectSources, folder: Path, shown: Iterable[SourceFile]) -> None:
    """Accept these skills of a subfolder beside what was accepted there before.

    Raises:
        OSError: the answer cannot be written.
    """
    before = tuple(file for file in sources.look(folder).files if not file.is_users)
    sources.answer(folder, trusted=True, shown=(*before, *shown))


def _is_own(file: SourceFile, folder: Path) -> bool:
    below = any(file.unit.parent == folder / place for place in PLACES)
    return file.kind is SourceKind.SKILL and not file.is_users and below
