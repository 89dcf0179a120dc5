"""Report of the files that extend Phoenix in a folder: their group, state and commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from phoenix_tui.config.project import places_of
from phoenix_tui.config.sources.declared import declared
from phoenix_tui.config.sources.kinds import SourceFile, SourceGroup, SourceKind
from phoenix_tui.config.sources.source_trust import TrustedSources


class SourceState(StrEnum):
    """Use of a file."""

    USED = "used"
    NEW = "new"
    """Never accepted."""
    CHANGED = "changed"
    OFF = "off"
    """Accepted and the same, but a file that it belongs to is not."""
    GONE = "gone"
    LEFT_OUT = "left out"


GROUP_ORDER: Final = (SourceGroup.RUNS, SourceGroup.INSTRUCTS, SourceGroup.ADDS)


class SourceEntry(Struct, frozen=True):
    """One file; its name is relative to the project."""

    path: Path
    name: str
    state: SourceState
    group: SourceGroup | None = None
    """None for a file that is left out."""
    kind: SourceKind | None = None
    unit: Path | None = None
    commands: tuple[str, ...] = ()
    """Programs that a file of hooks or servers starts, as written."""
    why: str = ""
    """Reason of one that is left out."""

    @property
    def waits(self) -> bool:
        """True for a file that is there and is not used, but would be after a yes."""
        return self.state in {SourceState.NEW, SourceState.CHANGED, SourceState.OFF}


class SourceReport(Struct, frozen=True):
    """All files of one folder at one look."""

    folder: Path
    entries: tuple[SourceEntry, ...] = ()
    """Sorted by group, what runs programs first; what is left out last."""
    trusted: bool = False
    """True where the user's last answer was yes."""
    refused: bool = False
    """True where it was no, about these very files."""
    shown: tuple[SourceFile, ...] = ()
    """Files that an answer is about."""

    def waiting(self) -> tuple[SourceEntry, ...]:
        """Files that are not used."""
        return tuple(entry for entry in self.entries if entry.waits)


def report_of(found: TrustedSources, folder: Path) -> SourceReport:
    """Say what one look at a folder, a real path, found; reads the files of hooks and servers."""
    root = places_of(folder)[0]
    used = tuple(file for file in found.files if not file.is_users)
    entries = sorted(_entries(used, found, root), key=_place)
    return SourceReport(folder, tuple(entries), found.trusted, found.refused, (*used, *found.waiting))


def _entries(used: Iterable[SourceFile], found: TrustedSources, root: Path) -> Iterator[SourceEntry]:
    states = {change.path: _changed(is_new=change.is_new) for change in found.changes if not change.is_gone}
    unaccepted = SourceState.OFF if found.trusted else SourceState.NEW
    for file in used:
        yield _entry(file, SourceState.USED, root)
    for file in found.waiting:
        yield _entry(file, states.get(file.path, unaccepted), root)
    for change in found.changes:
        if change.is_gone:
            yield SourceEntry(change.path, _name(change.path, root), SourceState.GONE, change.group)
    for one in found.left_out:
        yield SourceEntry(one.path, _name(one.path, root), SourceState.LEFT_OUT, why=one.reason)


def _changed(*, is_new: bool) -> SourceState:
    return SourceState.NEW if is_new else SourceState.CHANGED


def _entry(file: SourceFile, state: SourceState, root: Path) -> SourceEntry:
    return SourceEntry(file.path, _name(file.path, root), state, file.group, file.kind, file.unit, declared(file))


def _name(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _place(entry: SourceEntry) -> tuple[int, bool, str]:
    """Order by group; in it what starts programs before the programs, else by name."""
    group = GROUP_ORDER.index(entry.group) if entry.group is not None else len(GROUP_ORDER)
    return group, entry.kind is SourceKind.PROGRAM, entry.name
