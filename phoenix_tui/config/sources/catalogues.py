"""Skills and commands of a folder: read from their files, with the name that means each, hidden or faulty; and the
faults of all files that extend Phoenix, as sentences.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from engine.extensions.skills import MOST_ARGUMENTS
from engine.ports.extensions import (
    Invocable,
    InvocableCatalogue,
    InvocableKind,
    InvocableOrigin,
    InvocableProblem,
    ShadowedInvocable,
    WaitingInvocable,
)
from engine.run_options import Effort
from phoenix_tui.config.claude_settings import LINES, NAMES, settings_faults
from phoenix_tui.config.front_matter import FrontMatter, FrontMatterError, FrontMatterValue, read_front_matter
from phoenix_tui.config.instructions import rule_faults
from phoenix_tui.config.rules import split_list
from phoenix_tui.config.sources.agents import AgentReader
from phoenix_tui.config.sources.extension_files import SourceFile, SourceKind, digest_of
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources, read_source
from phoenix_tui.config.trust import places_of
from tools.clean import clean, clean_line, reveal_name
from tools.files.content import is_binary
from tools.wording import one_line, pluralize

MOST_BYTES: Final = {InvocableKind.SKILL: 1024 * 1024, InvocableKind.COMMAND: 256 * 1024}
"""Bytes of one file; a larger one is not used."""
LONGEST_DESCRIPTION: Final = 4_000
"""Characters kept; the prompt takes fewer (engine/extensions/skills.py)."""
LONGEST_HINT: Final = 200
COMMAND_DEPTH: Final = 3
"""Folders below the folder of commands."""
MOST_READ: Final = 16 << 20
"""Bytes of a file of which the beginning is used."""
HIDES: Final = "disable-model-invocation"
KNOWN: Final = frozenset(
    {"name", "description", "when_to_use", "argument-hint", "arguments", "allowed-tools", "model", "effort", "agent"}
    | {HIDES, "user-invocable", "context"}
)
"""Keys that are read; another one is passed by, whatever its value is."""
MOST_BUNDLED: Final = 2_000
FOLDER_OF: Final = {InvocableKind.SKILL: "skills", InvocableKind.COMMAND: "commands"}
SKILL_FILE: Final = "SKILL.md"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_ARGUMENT: Final = re.compile(r"[a-z][a-z0-9_]{0,30}")
_PARAGRAPH: Final = re.compile(r"\n[ \t]*\n")
_MARK: Final = re.compile(r"^#{1,6}[ \t]+")
_YES: Final = frozenset({"true", "yes", "on"})
_NO: Final = frozenset({"false", "no", "off"})
_EFFORTS: Final = {**{effort.value: effort for effort in Effort}, "xhigh": Effort.MAX, "": Effort.DEFAULT}


class InvocableError(Exception):
    """Raised with a sentence and a line, 0 for the whole file."""

    def __init__(self, sentence: str, line: int = 0) -> None:
        super().__init__(sentence)
        self.line = line


def read_invocable(files: Sequence[SourceFile]) -> Invocable | InvocableProblem | None:
    """The skill or command of one unit; None where a folder of skills has something else."""
    kind = InvocableKind.SKILL if files[0].kind is SourceKind.SKILL else InvocableKind.COMMAND
    main = files[0]
    if kind is InvocableKind.SKILL:
        found = [file for file in files if file.path == file.unit / SKILL_FILE]
        if not found:
            return None
        main = found[0]
    origin = InvocableOrigin.USER if main.is_users else InvocableOrigin.PROJECT
    try:
        return _read(main, files, kind, origin)
    except InvocableError as error:
        return InvocableProblem(main.path, kind, origin, error.line, str(error))


def name_of(file: SourceFile) -> str:
    """Name by which a file is called: of the folder of a skill, of the path below the folder of commands."""
    if file.kind is SourceKind.SKILL:
        return file.unit.name
    names = file.path.with_suffix("").parts
    place = max(place for place, name in enumerate(names[:-1]) if name == FOLDER_OF[InvocableKind.COMMAND])
    return ":".join(names[place + 1 :])


def _read(main: SourceFile, files: Sequence[SourceFile], kind: InvocableKind, origin: InvocableOrigin) -> Invocable:
    name = _check_name(name_of(main), kind)
    name = f"{main.plugin.name}:{name}" if main.plugin is not None else name
    content = read_source(main, MOST_READ)
    if content is None:
        raise InvocableError(f"It is larger than {MOST_READ >> 20} MB, or changed while it was read.")
    is_cut = len(content) > MOST_BYTES[kind]
    if is_cut:
        content = content[: content.rfind(b"\n", 0, MOST_BYTES[kind]) + 1]
    if is_binary(content):
        raise InvocableError("It is no text.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvocableError("It is not UTF-8.", content[: error.start].count(b"\n") + 1) from error
    try:
        found = read_front_matter(text)
    except FrontMatterError as error:
        raise InvocableError(f"Front matter: {error.sentence}", error.line) from error
    reading = _Reading(found, kind)
    if is_cut:
        reading.notes.append(f"It is longer than {MOST_BYTES[kind] // 1024:,} KB; the rest is left out.")
    return reading.build(name, origin, main.path, files)


def _check_name(name: str, kind: InvocableKind) -> str:
    parts = name.split(":")
    if not all(_NAME.fullmatch(part) for part in parts):
        raise InvocableError("Its name may have letters, digits, '-', '_' and '.' only, at most 64; rename it.")
    if len(parts) > COMMAND_DEPTH + 1:
        raise InvocableError(f"It is more than {COMMAND_DEPTH} folders deep; move it up.")
    if kind is InvocableKind.SKILL and len(parts) > 1:
        raise InvocableError("The name of its folder has a colon; rename it.")
    return name


class _Reading:
    """One front matter; what it says wrongly becomes a note, never an error."""

    def __init__(self, found: FrontMatter, kind: InvocableKind) -> None:
        self._values: Mapping[str, FrontMatterValue] = found.values
        self._body = clean(found.body).strip("\n")
        self._kind = kind
        self._left_out = found.left_out
        self.notes = [
            f"'{key}' is left out: {fault.sentence}" if key else f"Some lines are left out: {fault.sentence}"
            for key, fault in found.left_out.items()
            if not key or key in KNOWN
        ]
        if "hooks" in {*found.values, *found.left_out}:
            self.notes.append("Its 'hooks' are not used; put them into a file of hooks.")

    def build(self, name: str, origin: InvocableOrigin, path: Path, files: Sequence[SourceFile]) -> Invocable:
        """The value of the file."""
        described = self._text("description") or self._first_words()
        if not described:
            self.notes.append("It has no description, so a model has only its name to go by.")
        if when := self._text("when_to_use"):
            described = f"{described} {when}".strip()
        return Invocable(
            name=name,
            description=one_line(described, LONGEST_DESCRIPTION),
            body=self._body,
            kind=self._kind,
            origin=origin,
            path=path,
            digest=digest_of(
                "\n".join(sorted(f"{file.path}\0{file.digest}" for file in files)).encode("utf-8", "replace")
            ),
            aliases=self._aliases(name),
            argument_hint=self._hint(),
            argument_names=self._argument_names(),
            files=_list_bundled(path, files) if self._kind is InvocableKind.SKILL else (),
            allowed_tools=self._rules(),
            model=self._model(),
            effort=self._effort(),
            for_models=not self._flag(HIDES, default=HIDES in self._left_out),
            for_users=self._flag("user-invocable", default=True),
            forks=self._text("context") == "fork",
            agent=self._text("agent"),
            notes=tuple(self.notes),
        )

    def _text(self, key: str) -> str:
        value = self._values.get(key, "")
        return clean_line(" ".join((value if isinstance(value, str) else " ".join(value)).split()))

    def _flag(self, key: str, *, default: bool) -> bool:
        word = self._text(key).lower()
        if word and word not in _YES | _NO:
            self.notes.append(f"'{key}' must be true or false; it counts as {str(default).lower()}.")
        return word in _YES if word in _YES | _NO else default

    def _first_words(self) -> str:
        """The first paragraph of a skill, the first line of a command."""
        is_skill = self._kind is InvocableKind.SKILL
        for paragraph in _PARAGRAPH.split(self._body[: LONGEST_DESCRIPTION * 4].strip()):
            whole = paragraph.strip() if is_skill else paragraph.strip().split("\n")[0]
            words = _MARK.sub("", whole)
            if words and not (is_skill and words != whole and "\n" not in words):
                return clean_line(" ".join(words.split()))
        return clean_line(_MARK.sub("", self._body[:LONGEST_HINT].strip().split("\n")[0]))

    def _aliases(self, name: str) -> tuple[str, ...]:
        told = self._text("name")
        if self._kind is not InvocableKind.SKILL or not told or told == name:
            return ()
        self.notes.append(f"Its front matter says '{one_line(told, 64)}'; the name of its folder counts.")
        return (told,) if _NAME.fullmatch(told) else ()

    def _hint(self) -> str:
        value = self._values.get("argument-hint", "")
        text = value if isinstance(value, str) else " ".join(f"[{word}]" for word in value)
        return one_line(clean_line(" ".join(text.split())), LONGEST_HINT)

    def _argument_names(self) -> tuple[str, ...]:
        value = self._values.get("arguments", "")
        names = value.split() if isinstance(value, str) else tuple(value)
        return tuple(name for name in names if _ARGUMENT.fullmatch(name))[:MOST_ARGUMENTS]

    def _rules(self) -> tuple[str, ...]:
        value = self._values.get("allowed-tools", "")
        texts = (value,) if isinstance(value, str) else tuple(value)
        return tuple(dict.fromkeys(clean_line(rule) for text in texts for rule in split_list(text)))

    def _model(self) -> str:
        """The model; a line of Claude is its newest one, of whatever provider the conversation has."""
        model = self._text("model")
        if model.lower() in LINES:
            return LINES[model.lower()].partition("/")[2]
        return "" if model.lower() in {"inherit", "default"} else model

    def _effort(self) -> Effort:
        word = self._text("effort").lower()
        if word not in _EFFORTS:
            self.notes.append(f"There is no effort '{one_line(word, 40)}'; that of the conversation is used.")
        return _EFFORTS.get(word, Effort.DEFAULT)


def _list_bundled(path: Path, files: Sequence[SourceFile]) -> tuple[str, ...]:
    names = (str(file.path.relative_to(path.parent)) for file in files[:MOST_BUNDLED] if file.path != path)
    return tuple(sorted(clean_line(name) for name in names))


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
    ) -> InvocableCatalogue:
        """The catalogue of these files, those of subfolders behind them; `off` are files of skills switched off."""
        made = [self._read_unit(unit) for unit in _units(sources.files)]
        for folder in nested:
            made += [_prefix_name(self._read_unit(unit), folder.name) for unit in _units(folder.files)]
        invocables = [one for one in made if isinstance(one, Invocable)]
        problems = tuple(one for one in made if isinstance(one, InvocableProblem))
        switched_off = tuple(one for one in invocables if str(one.path) in off)
        sorter = _Sorter(self.taken)
        for one in invocables:
            if str(one.path) not in off:
                sorter.take(one)
        waiting = {(clean_line(name_of(unit[0])), _kind(unit[0])) for unit in _units(sources.waiting)}
        return InvocableCatalogue(
            skills=sorter.sort(InvocableKind.SKILL),
            commands=sorter.sort(InvocableKind.COMMAND),
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

    def _read_unit(self, unit: list[SourceFile]) -> Invocable | InvocableProblem | None:
        key = tuple((file.path, file.digest) for file in unit)
        if key not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = read_invocable(unit)
        return self._kept[key]


def _prefix_name(made: Invocable | InvocableProblem | None, name: str) -> Invocable | InvocableProblem | None:
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
            self.shadowed.append(
                ShadowedInvocable(one, f"{_shorten_path(first.path)} has the same name and comes first")
            )

    def sort(self, kind: InvocableKind) -> tuple[Invocable, ...]:
        """The visible ones of a kind by name."""
        found = (one for (its_kind, _), one in self._found.items() if its_kind is kind)
        return tuple(sorted(found, key=lambda one: one.name))

    def calls(self) -> dict[str, Invocable]:
        """Names for `/name`: a built-in command first, then a command, then a skill; with a prefix each is reached."""
        calls: dict[str, Invocable] = {}
        visible = (*self.sort(InvocableKind.COMMAND), *self.sort(InvocableKind.SKILL))
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


def _shorten_path(path: Path) -> str:
    """A path from the home folder on, where it is there."""
    text, home = str(path), str(Path.home())
    return clean_line(f"~{text[len(home) :]}" if text.startswith(f"{home}{os.sep}") else text)


PLACES: Final = (".phoenix/skills", ".agents/skills", ".claude/skills")
DEPTH: Final = 8
"""Folders below the working directory that are looked at."""
MOST_MET: Final = 100
"""Folders of one working directory that are remembered."""


def list_met_folders(cwd: Path, paths: Iterable[Path]) -> Iterator[Path]:
    """Folders between the working directory and files that were read there, the nearest to it first."""
    for path in paths:
        if path.is_relative_to(cwd):
            parts = path.relative_to(cwd).parts[:-1][:DEPTH]
            for place in range(1, len(parts) + 1):
                yield cwd.joinpath(*parts[:place])


def find_nested_skills(sources: ProjectSources, cwd: Path, met: Iterable[Path]) -> list[NestedSources]:
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


def source_faults(found: TrustedSources, folder: Path) -> list[str]:
    """Every fault; each begins with the file, and its line where it has one."""
    troubles = AgentReader().read(found).troubles if found.of(SourceKind.AGENT) else ()
    agents = [_sentence(one.path, one.line, one.clause) for one in troubles if one.is_fault]
    return [*agents, *file_faults(found, folder)]


def file_faults(found: TrustedSources, folder: Path) -> list[str]:
    """Faults of skills, commands and rules."""
    problems = CatalogueReader(frozenset()).read(found, frozenset(), {}).problems
    told = [_sentence(one.path, one.line, one.reason) for one in problems]
    told += settings_faults(settings_files(found))
    return [*told, *rule_faults(found.of(SourceKind.INSTRUCTIONS), places_of(folder.resolve()))]


def settings_files(found: TrustedSources) -> list[Path]:
    """The settings files of another program that are used."""
    return [file.path for file in found.of(SourceKind.HOOKS) if file.path.name in NAMES and file.plugin is None]


def _sentence(path: Path, line: int, reason: str) -> str:
    place = f"{reveal_name(path)}:{line}" if line else reveal_name(path)
    return f"{place}: {clean_line(reason).rstrip('.')}."


def shorten_faults(faults: list[str], most: int, where: str) -> list[str]:
    """The first faults, and a sentence that counts the others and says `where` they are named."""
    more = len(faults) - most
    others = "them" if more > 1 else "it"
    rest = f"{pluralize(more, 'more fault')} of files that extend Phoenix; {where} names {others}."
    return [*faults[:most], *([rest] if more > 0 else [])]
