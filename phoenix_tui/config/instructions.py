"""The files that become part of the system prompt: the user's own, then a project's where it is trusted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.ports.instructions import PromptFile, PromptFileKind
from phoenix_tui.config.imports import DEPTH, MOST_IMPORTS, import_names, import_path, imported
from phoenix_tui.config.project import FILE_LIMIT, Project, ProjectFile, find_project, instructions_path, places_of
from phoenix_tui.config.trust import Trust, TrustFile
from tools.files.own_files import read_regular

MOST_CHARACTERS: Final = 20_000
"""Characters of one file that are sent (SPEC CLAW-17)."""
TOTAL_CHARACTERS: Final = 40_000
"""Characters of all files of a prompt together, about 10,000 tokens."""
CUT: Final = "[Cut: {room:,} of {all} characters are shown; a file has at most {each:,}, all together {total:,}.]"
_PERSONA: Final = (PromptFileKind.BOOTSTRAP, PromptFileKind.SOUL, PromptFileKind.IDENTITY, PromptFileKind.USER)
_TEXTS: Final = frozenset({".md", ".txt"})
"""Files that may be imported from the user's folder, where keys and records are, too."""
_FOREIGN: Final = frozenset({"node_modules", "site-packages", "vendor", "third_party"})
"""Folders with code of others, whose instructions are for their authors."""


class Instructions(Struct, frozen=True):
    """Reader of the files for a working directory; reads them each time, so that withdrawn trust applies at once."""

    own: Path
    """The user's config folder."""
    trust: TrustFile

    def of(self, folder: Path) -> tuple[PromptFile, ...]:
        """Files for the prompt of a conversation in `folder`."""
        project = self._trusted(folder) or Project(folder)
        named = [(kind, file) for kind in _PERSONA for file in self._nearest(kind, project)]
        named += [(PromptFileKind.INSTRUCTIONS, file) for file in (*self._own_instructions(), *project.instructions())]
        tools = (*self._own_file(PromptFileKind.TOOLS), *project.below_phoenix(PromptFileKind.TOOLS))
        named += [(PromptFileKind.TOOLS, file) for file in tools]
        return _within_budget([pair for pair in named if _text(pair[1])])

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """Instruction files of the folders below the working directory's that lead to `path`, of a trusted project."""
        places = places_of(folder.resolve())
        files = [file for place in _between(places, path) if (file := _regular(instructions_path(place), places[0]))]
        if not files or self._trusted(folder) is None:
            return ()
        return _within_budget([(PromptFileKind.INSTRUCTIONS, file) for file in files if _text(file)])

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
        files = list(self._own_file(instructions_path(self.own).name))
        if files:
            self._import(files, files[0], {files[0].path.resolve()}, 1)
        return files

    def _import(self, files: list[ProjectFile], file: ProjectFile, seen: set[Path], depth: int) -> None:
        for name in import_names(file.text):
            if depth > DEPTH or len(files) > MOST_IMPORTS:
                return
            path = import_path(name, file.path)
            if path is None or path.suffix not in _TEXTS:
                continue
            found = imported(path, self.own.resolve(), FILE_LIMIT)
            if found is not None and found[0].suffix in _TEXTS and found[0] not in seen:
                seen.add(found[0])
                files.append(ProjectFile(*found, imported_by=file.path))
                self._import(files, files[-1], seen, depth + 1)


def _between(places: list[Path], path: Path) -> list[Path]:
    """Folders below those of the prompt that lead to `path`, up to a repository of its own or code of others."""
    root = places[0]
    target = path.resolve()
    chain = [place for place in reversed((target, *target.parents)) if place.is_relative_to(root) and place != root]
    ours = takewhile(lambda place: not _is_foreign(place), chain)
    return [place for place in ours if place not in places and place.is_dir()]


def _is_foreign(place: Path) -> bool:
    return place.name in _FOREIGN or place.name.startswith(".") or (place / ".git").exists()


def _regular(path: Path, root: Path) -> ProjectFile | None:
    """A regular text file whose links stay below `root`."""
    found = imported(path, root, FILE_LIMIT)
    return ProjectFile(path, found[1]) if found is not None else None


def _text(file: ProjectFile) -> str:
    """The text without NUL bytes, which some servers refuse, and without a byte order mark."""
    return file.text.replace("\0", "").removeprefix("\ufeff").strip()


def _within_budget(named: list[tuple[PromptFileKind, ProjectFile]]) -> tuple[PromptFile, ...]:
    """All files in their order, each cut to what is left: imported ones get what the others leave."""
    left, texts = TOTAL_CHARACTERS, dict[int, str]()
    for place in sorted(range(len(named)), key=lambda place: named[place][1].imported_by is not None):
        text = _text(named[place][1])
        room = min(MOST_CHARACTERS, left)
        texts[place] = text if len(text) <= room else _cut(text, room, named[place][1])
        left -= min(len(text), room)
    return tuple(_prompt_files(named, texts))


def _prompt_files(named: list[tuple[PromptFileKind, ProjectFile]], texts: dict[int, str]) -> Iterator[PromptFile]:
    for place, (kind, file) in enumerate(named):
        yield PromptFile(kind, file.path, texts[place], file.imported_by)


def _cut(text: str, room: int, file: ProjectFile) -> str:
    more = "more than " if len(file.content) >= FILE_LIMIT else ""
    note = CUT.format(room=room, all=f"{more}{len(text):,}", each=MOST_CHARACTERS, total=TOTAL_CHARACTERS)
    return f"{text[:room].rstrip()}\n{note}".strip()
