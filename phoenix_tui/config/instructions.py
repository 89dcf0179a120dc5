"""The files that become part of the system prompt: the user's own, then a project's where it is trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.ports.extensions import FileOwner, PromptFile, PromptFileKind
from phoenix_tui.config.imports import DEPTH, MOST_IMPORTS, import_names, import_path, imported
from phoenix_tui.config.project import (
    FILE_LIMIT,
    Project,
    ProjectFile,
    find_project,
    instructions_path,
    place_of,
    places_of,
)
from phoenix_tui.config.trust import Trust, TrustFile
from tools.files.own_files import read_regular
from tools.git.repository import has_repository

if TYPE_CHECKING:
    from phoenix_tui.config.rule_texts import RuleText
    from phoenix_tui.config.sources.project_sources import ProjectSources

MOST_CHARACTERS: Final = 40_000
"""Characters of one file that are sent (SPEC CLAW-17)."""
TOTAL_CHARACTERS: Final = 100_000
"""Characters of all files of a prompt together, about 25,000 tokens."""
LEAST_CHARACTERS: Final = 12_000
"""Characters of all files in the smallest window."""
SHARE: Final = 0.1
CHARACTERS_A_TOKEN: Final = 4
"""Part of a model's window that all files may take, in tokens of so many characters."""
CUT: Final = "[Cut: {room:,} of {all} characters are shown; a file has at most {each:,}, all together {total:,}.]"
_LATER: Final = 100_000
"""More than there are files."""
_PERSONA: Final = (PromptFileKind.BOOTSTRAP, PromptFileKind.SOUL, PromptFileKind.IDENTITY, PromptFileKind.USER)
_TEXTS: Final = frozenset({".md", ".txt"})
"""Files that may be imported from the user's folder, where keys and records are, too."""
_FOREIGN: Final = frozenset({"node_modules", "site-packages", "vendor", "third_party"})
"""Folders with code of others, whose instructions are for their authors."""


class _Named(Struct, frozen=True):
    """One file with what is known of it beside its text."""

    kind: PromptFileKind
    file: ProjectFile
    owner: FileOwner = FileOwner.PROJECT
    scope: tuple[str, ...] = ()
    is_rule: bool = False


class Instructions(Struct, frozen=True):
    """Reader of the files for a working directory; reads them each time, so that withdrawn trust applies at once."""

    own: Path
    """The user's config folder."""
    trust: TrustFile
    sources: ProjectSources | None = None
    """Files of a project that were found after the first frame; None: none of them count."""

    def of(self, folder: Path, window: int = 0) -> tuple[PromptFile, ...]:
        """Files for the prompt of a conversation in `folder`, weak before strong."""
        project = self._trusted(folder) or Project(folder)
        named = [_Named(kind, file, self._owner(file)) for kind in _PERSONA for file in self._nearest(kind, project)]
        named += [_Named(PromptFileKind.INSTRUCTIONS, file, FileOwner.USER) for file in self._own_instructions()]
        named += _with_rules(project, self._rules(folder))
        tools = (*self._own_file(PromptFileKind.TOOLS), *project.below_phoenix(PromptFileKind.TOOLS))
        named += [_Named(PromptFileKind.TOOLS, file, self._owner(file)) for file in tools]
        return _within_budget(self._sent(named, folder), _total(window))

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """Instruction files of the folders below the working directory's that lead to `path`, of a trusted project,
        then the rules that name it.
        """
        places = places_of(folder.resolve())
        files = [file for place in _between(places, path) if (file := _regular(instructions_path(place), places[0]))]
        named = [_Named(PromptFileKind.INSTRUCTIONS, file) for file in files if _text(file)]
        if named and self._trusted(folder) is None:
            named = []
        real = path.resolve()
        named += [_of_rule(rule) for rule in self._rules(folder) if rule.globs and rule.is_for(real)]
        return _within_budget(self._sent(named, folder), TOTAL_CHARACTERS)

    def _sent(self, named: list[_Named], folder: Path) -> list[_Named]:
        """Files with a text, without those of a project that rules deny to read."""
        is_closed = self.sources.closes(folder) if self.sources is not None and self.sources.closes else None
        found = [one for one in named if _text(one.file)]
        if is_closed is None:
            return found
        return [one for one in found if one.owner is FileOwner.USER or not is_closed(one.file.path)]

    def _rules(self, folder: Path) -> Sequence[RuleText]:
        """Rules and CLAUDE.local.md as they were accepted, of a folder whose other files wait for no answer."""
        if self.sources is None:
            return ()
        from phoenix_tui.config.sources.kinds import SourceKind  # noqa: PLC0415 - loaded with the services

        found = [file for file in self.sources.current(folder).of(SourceKind.INSTRUCTIONS) if not file.is_users]
        if not found or self.trust.status(find_project(folder)).trust not in {Trust.GIVEN, Trust.NOT_NEEDED}:
            return ()
        from phoenix_tui.config.rule_texts import read_rules  # noqa: PLC0415 - only where there are such files

        return read_rules(found, places_of(folder.resolve()))

    def _owner(self, file: ProjectFile) -> FileOwner:
        return FileOwner.USER if file.path.is_relative_to(self.own) else FileOwner.PROJECT

    def _trusted(self, folder: Path) -> Project | None:
        """The project of a folder; None while it is not trusted, then its files are not even read."""
        if not self.trust.may_be_trusted(folder):
            return None
        project = find_project(folder)
        return project if self.trust.status(project).trust is Trust.GIVEN else None

    def _nearest(self, kind: PromptFileKind, project: Project) -> tuple[ProjectFile, ...]:
        """The one of the folder, else of the repository, else of the user."""
        return (*self._own_file(kind), *project.below_phoenix(kind))[-1:]

    def _own_file(self, name: str) -> tuple[ProjectFile, ...]:
        content = read_regular(self.own / name, FILE_LIMIT)
        return (ProjectFile(self.own / name, content),) if content is not None else ()

    def _own_instructions(self) -> list[ProjectFile]:
        """AGENTS.md or CLAUDE.md of the config folder, else the CLAUDE.md that another program reads; its imports."""
        files, root = list(self._own_file(instructions_path(self.own).name)), self.own
        if not files and self.sources is not None:
            root = self.sources.home / ".claude"
            content = read_regular(root / "CLAUDE.md", FILE_LIMIT)
            files = [ProjectFile(root / "CLAUDE.md", content)] if content is not None else []
        if files:
            self._import(files, files[0], {files[0].path.resolve()}, 1, root.resolve())
        return files

    def _import(self, files: list[ProjectFile], file: ProjectFile, seen: set[Path], depth: int, root: Path) -> None:
        for name in import_names(file.text):
            if depth > DEPTH or len(files) > MOST_IMPORTS:
                return
            path = import_path(name, file.path)
            if path is None or path.suffix not in _TEXTS:
                continue
            found = imported(path, root, FILE_LIMIT)
            if found is not None and found[0].suffix in _TEXTS and found[0] not in seen:
                seen.add(found[0])
                files.append(ProjectFile(*found, imported_by=file.path))
                self._import(files, files[-1], seen, depth + 1, root)


def _with_rules(project: Project, rules: Sequence[RuleText]) -> Iterator[_Named]:
    """Instruction files of a project, those of each folder before its rules, the outer folders first."""
    always = [rule for rule in rules if not rule.globs]
    groups: dict[Path, list[ProjectFile]] = {}
    place = project.folder
    for file in project.instructions():
        place = place_of(file.path) if file.imported_by is None else place
        groups.setdefault(place, []).append(file)
    for one in places_of(project.folder.resolve()):
        for file in groups.get(one, ()):
            yield _Named(PromptFileKind.INSTRUCTIONS, file)
        yield from (_of_rule(rule) for rule in always if rule.place == one)


def _of_rule(rule: RuleText) -> _Named:
    file, owner = ProjectFile(rule.path, rule.content), FileOwner.LOCAL if rule.is_local else FileOwner.PROJECT
    return _Named(PromptFileKind.INSTRUCTIONS, file, owner, rule.globs, not rule.is_local)


def _total(window: int) -> int:
    """Characters of all files for a model with this window in tokens; 0: it is not known."""
    if window <= 0:
        return TOTAL_CHARACTERS
    return min(max(int(window * SHARE) * CHARACTERS_A_TOKEN, LEAST_CHARACTERS), TOTAL_CHARACTERS)


def _between(places: list[Path], path: Path) -> list[Path]:
    """Folders below those of the prompt that lead to `path`, up to a repository of its own or code of others."""
    root = places[0]
    target = path.resolve()
    chain = [place for place in reversed((target, *target.parents)) if place.is_relative_to(root) and place != root]
    ours = takewhile(lambda place: not _is_foreign(place), chain)
    return [place for place in ours if place not in places and place.is_dir()]


def _is_foreign(place: Path) -> bool:
    return place.name in _FOREIGN or place.name.startswith(".") or has_repository(place)


def _regular(path: Path, root: Path) -> ProjectFile | None:
    """A regular text file whose links stay below `root`."""
    found = imported(path, root, FILE_LIMIT)
    return ProjectFile(path, found[1]) if found is not None else None


def _text(file: ProjectFile) -> str:
    """The text without NUL bytes, which some servers refuse, and without a byte order mark."""
    return file.text.replace("\0", "").removeprefix("\ufeff").strip()


def _within_budget(named: list[_Named], total: int) -> tuple[PromptFile, ...]:
    """All files in their order, each cut to what is left: the strongest have room first, imported ones last."""
    left, texts = total, dict[int, str]()
    for place in sorted(range(len(named)), key=lambda place: _turn(named[place], place)):
        text = _text(named[place].file)
        room = min(MOST_CHARACTERS, left)
        texts[place] = text if len(text) <= room else _cut(text, room, named[place].file, total)
        left -= min(len(text), room)
    return tuple(_prompt_files(named, texts))


def _turn(one: _Named, place: int) -> tuple[bool, bool, int]:
    """Place in the order in which files get their room: many rules leave enough for the file of their folder."""
    is_instructions = one.kind is PromptFileKind.INSTRUCTIONS
    return one.file.imported_by is not None, one.is_rule, -place if is_instructions else place - _LATER


def _prompt_files(named: list[_Named], texts: dict[int, str]) -> Iterator[PromptFile]:
    for place, one in enumerate(named):
        yield PromptFile(one.kind, one.file.path, texts[place], one.file.imported_by, one.owner, one.scope)


def _cut(text: str, room: int, file: ProjectFile, total: int) -> str:
    more = "more than " if len(file.content) >= FILE_LIMIT else ""
    note = CUT.format(room=room, all=f"{more}{len(text):,}", each=MOST_CHARACTERS, total=total)
    return f"{text[:room].rstrip()}\n{note}".strip()
