"""The skills and commands of a folder: which one a name means, which are hidden, and which cannot be used."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from engine.ports.extensions import (
    Catalogue,
    Invocable,
    InvocableKind,
    InvocableProblem,
    ShadowedInvocable,
    WaitingInvocable,
)
from phoenix_tui.config.sources.invocable_files import SKILL_FILE, name_of, read_invocable
from phoenix_tui.config.sources.kinds import SourceFile, SourceKind
from phoenix_tui.config.sources.source_trust import TrustedSources
from tools.clean import clean_line

KINDS: Final = (SourceKind.SKILL, SourceKind.COMMAND)
MOST_KEPT: Final = 5_000
"""Files that were read and are kept; beyond that all are read again."""
_Key: TypeAlias = tuple[tuple[Path, str], ...]


class NestedSources(Struct, frozen=True):
    """Skills of a subfolder, met when a file there was read."""

    name: str
    """The subfolder, with colons between its parts."""
    files: tuple[SourceFile, ...]
    """Accepted ones."""
    waiting: tuple[SourceFile, ...]


class CatalogueReader(Struct, eq=False):
    """Reads files once for each content; for one thread at a time."""

    taken: Collection[str]
    """Names of Phoenix's own commands."""
    _kept: dict[_Key, Invocable | InvocableProblem | None] = field(
        default_factory=dict[_Key, "Invocable | InvocableProblem | None"]
    )

    def read(
        self,
        sources: TrustedSources,
        off: Collection[str],
        used: Mapping[str, float],
        nested: Sequence[NestedSources] = (),
    ) -> Catalogue:
        """The catalogue of these files, those of subfolders behind them; `off` are files of skills switched off."""
        made = [self._made(unit) for unit in _units(sources.files)]
        for folder in nested:
            made += [_prefixed(self._made(unit), folder.name) for unit in _units(folder.files)]
        invocables = [one for one in made if isinstance(one, Invocable)]
        problems = tuple(one for one in made if isinstance(one, InvocableProblem))
        switched_off = tuple(one for one in invocables if str(one.path) in off)
        sorter = _Sorter(self.taken)
        for one in invocables:
            if str(one.path) not in off:
                sorter.take(one)
        waiting = {(clean_line(name_of(unit[0])), _kind(unit[0])) for unit in _units(sources.waiting)}
        return Catalogue(
            skills=sorter.sorted(InvocableKind.SKILL),
            commands=sorter.sorted(InvocableKind.COMMAND),
            by_call=sorter.calls(),
            shadowed=tuple(sorter.shadowed),
            problems=problems,
            waiting=(
                *(WaitingInvocable(name, kind) for name, kind in sorted(waiting)),
                *(one for folder in nested for one in _waiting(folder)),
            ),
            switched_off=switched_off,
            used=used,
        )

    def _made(self, unit: list[SourceFile]) -> Invocable | InvocableProblem | None:
        key = tuple((file.path, file.digest) for file in unit)
        if key not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = read_invocable(unit)
        return self._kept[key]


def _prefixed(made: Invocable | InvocableProblem | None, name: str) -> Invocable | InvocableProblem | None:
    return replace(made, name=f"{name}:{made.name}", aliases=()) if isinstance(made, Invocable) else made


def _waiting(folder: NestedSources) -> Iterator[WaitingInvocable]:
    for unit in _units(folder.waiting):
        name = f"{folder.name}:{clean_line(name_of(unit[0]))}"
        yield WaitingInvocable(name, _kind(unit[0]), unit[0].unit / SKILL_FILE)


def _kind(file: SourceFile) -> InvocableKind:
    return InvocableKind.SKILL if file.kind is SourceKind.SKILL else InvocableKind.COMMAND


def _units(files: Iterable[SourceFile]) -> list[list[SourceFile]]:
    """Files of skills and commands by what they belong to, in their order."""
    units: dict[Path, list[SourceFile]] = {}
    for file in files:
        if file.kind in KINDS:
            units.setdefault(file.unit, []).append(file)
    return list(units.values())


class _Sorter:
    """Takes the nearest first; a later one of the same name and kind is hidden."""

    def __init__(self, taken: Collection[str]) -> None:
        self._taken = taken
        self._found: dict[tuple[InvocableKind, str], Invocable] = {}
        self._hidden: list[Invocable] = []
        self.shadowed: list[ShadowedInvocable] = []

    def take(self, one: Invocable) -> None:
        """Add one behind those that are nearer."""
        first = self._found.setdefault((one.kind, one.name), one)
        if first is not one:
            self._hidden.append(one)
            self.shadowed.append(ShadowedInvocable(one, f"{_shown(first.path)} has the same name and comes first"))

    def sorted(self, kind: InvocableKind) -> tuple[Invocable, ...]:
        """The visible ones of a kind by name."""
        found = (one for (its_kind, _), one in self._found.items() if its_kind is kind)
        return tuple(sorted(found, key=lambda one: one.name))

    def calls(self) -> dict[str, Invocable]:
        """Names for `/name`: a built-in command first, then a command, then a skill; with a prefix each is reached."""
        calls: dict[str, Invocable] = {}
        visible = (*self.sorted(InvocableKind.COMMAND), *self.sorted(InvocableKind.SKILL))
        for one in (*visible, *self._hidden):  # a prefix first: no file may take the place of `user:name`
            if one.for_users:
                calls.setdefault(f"{one.origin.value}:{one.name}", one)
        for one in visible:
            if one.for_users:
                self._call(calls, one)
        for one in visible:
            for alias in one.aliases if one.for_users and one.name not in self._taken else ():
                if alias not in self._taken:
                    calls.setdefault(alias, one)
        return calls

    def _call(self, calls: dict[str, Invocable], one: Invocable) -> None:
        full = f"{one.origin.value}:{one.name}"
        reached = f"; /{full} calls it" if calls.get(full) is one else ""
        if one.name.lower() in self._taken:
            self.shadowed.append(ShadowedInvocable(one, f"/{one.name} is a command of Phoenix{reached}"))
        elif (first := calls.setdefault(one.name, one)) is not one:
            self.shadowed.append(ShadowedInvocable(one, f"/{one.name} calls the {first.label}{reached}"))


def _shown(path: Path) -> str:
    """A path from the home folder on, where it is there."""
    text, home = str(path), str(Path.home())
    return clean_line(f"~{text[len(home) :]}" if text.startswith(f"{home}{os.sep}") else text)
