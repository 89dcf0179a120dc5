"""Files of a project that may be used: those whose digests the user has accepted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.config.sources.finding import SKILL_FILE
from phoenix_tui.config.sources.kinds import LeftOut, SourceFile, SourceGroup, SourceKind, Sources

MODELS_TEXTS: Final = frozenset({SourceKind.SKILL, SourceKind.COMMAND, SourceKind.AGENT, SourceKind.INSTRUCTIONS})
"""Kinds whose texts a model is sent."""
DENIED: Final = "a rule denies reading it"


class SourceChange(Struct, frozen=True):
    """A file that is new, different or gone since the user's last answer."""

    path: Path
    group: SourceGroup
    is_gone: bool = False
    is_new: bool = False


class TrustedSources(Struct, frozen=True):
    """The files of a folder that may be used, and what waits for an answer."""

    files: tuple[SourceFile, ...] = ()
    """The user's own, and those of the project whose digests are accepted."""
    waiting: tuple[SourceFile, ...] = ()
    """Files of the project that are not used."""
    changes: tuple[SourceChange, ...] = ()
    """Reason why they wait, where the folder was trusted before."""
    refused: bool = False
    """True where the user answered to work without these very files: nothing is asked again."""
    trusted: bool = False
    """True where the user's last answer was yes, about these files or others."""
    left_out: tuple[LeftOut, ...] = ()
    """Files that no answer brings into use."""

    def of(self, kind: SourceKind) -> tuple[SourceFile, ...]:
        """Files of a kind that may be used, the nearest first, the user's last."""
        return tuple(file for file in self.files if file.kind is kind)


def sort_sources(project: Sources, users: Sources, accepted: Mapping[str, str], *, trusted: bool) -> TrustedSources:
    """Tell files that may be used from those that wait.

    `accepted` are digests by path at the user's last answer, which `trusted` tells. A changed skill, command or agent
    is off alone; a changed hook, server, program or instruction switches its group off.
    """
    found = {str(file.path): file for file in project.files}
    changed = [file for file in project.files if accepted.get(str(file.path)) != file.digest]
    if not trusted:
        refused = bool(accepted) and not changed
        return TrustedSources(users.files, project.files, refused=refused, left_out=project.left_out)
    gone = [SourceChange(Path(name), _group_of(name), is_gone=True) for name in accepted if name not in found]
    groups = {file.group for file in changed if not _is_alone(file)}
    groups |= {change.group for change in gone if change.group is SourceGroup.RUNS}  # it may have switched hooks off
    units = {file.unit for file in changed}
    waiting = tuple(file for file in project.files if file.group in groups or file.unit in units)
    waits = {file.path for file in waiting}
    used = tuple(file for file in project.files if file.path not in waits)
    differing = (SourceChange(file.path, file.group, is_new=str(file.path) not in accepted) for file in changed)
    changes = (*differing, *gone)
    return TrustedSources((*used, *users.files), waiting, changes, trusted=True, left_out=project.left_out)


def without(sources: TrustedSources, closed: Collection[Path]) -> TrustedSources:
    """The files without those that rules deny to read; a skill goes with its SKILL.md, or loses a bundled file."""
    if not closed:
        return sources
    units = {file.unit for file in sources.files if file.path in closed and file.path.name == SKILL_FILE}
    kept = tuple(file for file in sources.files if file.path not in closed and file.unit not in units)
    left = (LeftOut(path, DENIED) for path in sorted(closed))
    return replace(sources, files=kept, left_out=(*sources.left_out, *left))


def _is_alone(file: SourceFile) -> bool:
    return file.kind in {SourceKind.SKILL, SourceKind.AGENT, SourceKind.COMMAND}


def _group_of(name: str) -> SourceGroup:
    """Group of a file that is gone, by its name."""
    if "/commands/" in name:
        return SourceGroup.ADDS
    instructs = ("/skills/", "/agents/", "/rules/", "CLAUDE.local.md")
    return SourceGroup.INSTRUCTS if any(part in name for part in instructs) else SourceGroup.RUNS
