"""Files that become part of the system prompt: instructions and rules of the user and of a trusted project.

`paths` in the front matter of a rule names files by globs, relative to the folder that has `.claude`: such a rule is
for a model that reads one of them, any other for every conversation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.ports.extensions import FileOwner, PromptFile, PromptFileKind
from phoenix_tui.config.front_matter import FrontMatterError, FrontMatterValue, read_front_matter
from phoenix_tui.config.imports import DEPTH, MOST_IMPORTS, import_names, import_path, read_import
from phoenix_tui.config.sources.extension_files import SourceFile
from phoenix_tui.config.sources.project_sources import read_source
from phoenix_tui.config.trust import (
    FILE_LIMIT,
    INSTRUCTIONS,
    Project,
    ProjectFile,
    Trust,
    TrustFile,
    find_project,
    instructions_path,
    place_of,
    places_of,
)
from tools.clean import reveal_name
from tools.contract import ToolInputError
from tools.files.content import is_binary
from tools.files.links import follow_links
from tools.files.own_files import open_own, read_regular
from tools.files.walking import compile_glob
from tools.git.repository import has_repository

if TYPE_CHECKING:
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
        project = self._find_trusted(folder) or Project(folder)
        named = [_Named(kind, file, self._owner(file)) for kind in _PERSONA for file in self._nearest(kind, project)]
        named += [_Named(PromptFileKind.INSTRUCTIONS, file, FileOwner.USER) for file in self._own_instructions()]
        named += _with_rules(project, self._rules(folder))
        tools = (*self._own_file(PromptFileKind.TOOLS), *project.below_phoenix(PromptFileKind.TOOLS))
        named += [_Named(PromptFileKind.TOOLS, file, self._owner(file)) for file in tools]
        return _within_budget(self._select_sent(named, folder), _total(window))

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """Instruction files of the folders below the working directory's that lead to `path`, of a trusted project,
        then the rules that name it.
        """
        places = places_of(follow_links(folder))
        files = [file for place in _between(places, path) if (file := _regular(instructions_path(place), places[0]))]
        named = [_Named(PromptFileKind.INSTRUCTIONS, file) for file in files if _text(file)]
        if named and self._find_trusted(folder) is None:
            named = []
        real = follow_links(path)
        named += [_of_rule(rule) for rule in self._rules(folder) if rule.globs and rule.is_for(real)]
        return _within_budget(self._select_sent(named, folder), TOTAL_CHARACTERS)

    def _select_sent(self, named: list[_Named], folder: Path) -> list[_Named]:
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
        from phoenix_tui.config.sources.extension_files import SourceKind  # noqa: PLC0415 - loaded with the services

        found = [file for file in self.sources.current(folder).of(SourceKind.INSTRUCTIONS) if not file.is_users]
        if not found or self.trust.status(find_project(folder)).trust not in {Trust.GIVEN, Trust.NOT_NEEDED}:
            return ()

        return read_rules(found, places_of(follow_links(folder)))

    def _owner(self, file: ProjectFile) -> FileOwner:
        return FileOwner.USER if file.path.is_relative_to(self.own) else FileOwner.PROJECT

    def _find_trusted(self, folder: Path) -> Project | None:
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
            self._import(files, files[0], {follow_links(files[0].path)}, 1, follow_links(root))
        return files

    def _import(self, files: list[ProjectFile], file: ProjectFile, seen: set[Path], depth: int, root: Path) -> None:
        for name in import_names(file.text):
            if depth > DEPTH or len(files) > MOST_IMPORTS:
                return
            path = import_path(name, file.path)
            if path is None or path.suffix not in _TEXTS:
                continue
            found = read_import(path, root, FILE_LIMIT)
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
    for one in places_of(follow_links(project.folder)):
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
    target = follow_links(path)
    chain = [place for place in reversed((target, *target.parents)) if place.is_relative_to(root) and place != root]
    ours = takewhile(
        lambda place: not (place.name in _FOREIGN or place.name.startswith(".") or has_repository(place)), chain
    )
    return [place for place in ours if place not in places and os.path.isdir(place)]


def _regular(path: Path, root: Path) -> ProjectFile | None:
    """A regular text file whose links stay below `root`."""
    found = read_import(path, root, FILE_LIMIT)
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
    return tuple(
        PromptFile(one.kind, one.file.path, texts[place], one.file.imported_by, one.owner, one.scope)
        for place, one in enumerate(named)
    )


def _turn(one: _Named, place: int) -> tuple[bool, bool, int]:
    """Place in the order in which files get their room: many rules leave enough for the file of their folder."""
    is_instructions = one.kind is PromptFileKind.INSTRUCTIONS
    return one.file.imported_by is not None, one.is_rule, -place if is_instructions else place - _LATER


def _cut(text: str, room: int, file: ProjectFile, total: int) -> str:
    more = "more than " if len(file.content) >= FILE_LIMIT else ""
    note = CUT.format(room=room, all=f"{more}{len(text):,}", each=MOST_CHARACTERS, total=total)
    return f"{text[:room].rstrip()}\n{note}".strip()


UNTRUSTED: Final = {
    Trust.UNKNOWN: "this folder is not trusted yet",
    Trust.CHANGED: "files of this folder changed since you trusted it",
    Trust.REFUSED: "your answer was not to use the files of this folder",
}
CLOSED: Final = "a rule denies to read it"
LEADS_OUT: Final = "its links lead out of the folder, or nowhere"
TOO_MANY: Final = "the files of this folder have too many bytes together"
CUT_FAULT: Final = "only its first {most:,} characters of {all} are sent"


def instruction_faults(own: Path, folder: Path, trust: TrustFile, is_closed: Callable[[Path], bool]) -> Iterator[str]:
    """A sentence for each such file of a folder, of those above it up to its repository, and of the user in `own`."""
    project = find_project(folder)
    status = trust.status(project).trust
    root = places_of(project.folder)[0]
    for path in _find_files(project):
        why = _unreadable(path, root) or (CLOSED if is_closed(path) else "") or UNTRUSTED.get(status, "")
        why = why or (TOO_MANY if path in project.left_out else "")
        if why:
            yield f"{path} is not used: {why}."
    for path, text in _read(own, project):
        if len(text) > MOST_CHARACTERS and not is_closed(path):
            known = f"{'more than ' if len(text.encode()) >= FILE_LIMIT else ''}{len(text):,}"
            yield f"{path} is too long: {CUT_FAULT.format(most=MOST_CHARACTERS, all=known)}."
    users = instructions_path(own)
    if os.path.lexists(users) and (why := _unreadable(users, None)):
        yield f"{users} is not used: {why}."


def _find_files(project: Project) -> list[Path]:
    """Instruction files that are there, with their imports that were found."""
    there = [path for place in places_of(project.folder) if os.path.lexists(path := instructions_path(place))]
    imported = [file.path for file in project.files if file.imported_by is not None]
    texts = [path for path in project.left_out if path.name in INSTRUCTIONS or path.suffix == ".md"]
    return list(dict.fromkeys([*there, *imported, *texts]))


def _read(own: Path, project: Project) -> Iterator[tuple[Path, str]]:
    yield from ((file.path, file.text) for file in project.instructions())
    users = instructions_path(own)
    if os.path.lexists(users) and not _unreadable(users, None):
        yield users, users.read_bytes()[:FILE_LIMIT].decode("utf-8", "replace")


def _unreadable(path: Path, root: Path | None) -> str:
    """Reason for which a file that is there cannot be read; it may lead nowhere out of `root`."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return LEADS_OUT
    if root is not None and not real.is_relative_to(root):
        return LEADS_OUT
    try:
        os.close(open_own(real))
    except OSError as error:
        return error.strerror or str(error)
    return ""


RULES: Final = Path(".claude") / "rules"
LOCAL: Final = "CLAUDE.local.md"
PATHS: Final = "paths"
MOST_GLOBS: Final = 100
"""Globs of one rule."""


class RuleText(Struct, frozen=True):
    """One such file, with the very bytes that were accepted."""

    path: Path
    place: Path
    """Folder whose files it is about."""
    content: bytes
    globs: tuple[str, ...] = ()
    """Files that it is for, relative to `place`; empty: for every conversation."""

    @property
    def is_local(self) -> bool:
        """True for the file that its owner keeps out of the repository."""
        return self.path.name == LOCAL

    def is_for(self, path: Path) -> bool:
        """True where a glob names this file, or the folder that it lies in."""
        if not path.is_relative_to(self.place):
            return False
        name = path.relative_to(self.place).as_posix()
        return any(compile_glob(glob).matches(name) or compile_glob(f"{glob}/**").matches(name) for glob in self.globs)


class BadRule(ValueError):
    """A rule that cannot be used; the message is a clause, with its line."""


def read_rules(files: Iterable[SourceFile], places: list[Path]) -> list[RuleText]:
    """The rules of these folders that can be used; `rule_faults` names the others."""
    found: list[RuleText] = []
    for file in files:
        with suppress(BadRule):
            if (rule := read_rule(file, places)) is not None:
                found.append(rule)
    return sorted(found, key=lambda rule: (not rule.is_local, str(rule.path)))


def rule_faults(files: Iterable[SourceFile], places: list[Path]) -> list[str]:
    """Sentences about rules that cannot be used, each with its file and line."""
    faults: list[str] = []
    for file in files:
        try:
            read_rule(file, places)
        except BadRule as error:
            faults.append(f"{reveal_name(file.path)} is not used: {error}.")
    return faults


def read_rule(file: SourceFile, places: list[Path]) -> RuleText | None:
    """A rule of one of these folders; None where it is of none, or another one by now.

    Raises:
        BadRule: its front matter cannot be read, or it is no text.
    """
    place = next(
        (one for one in reversed(places) if file.path in (one / LOCAL,) or file.path.is_relative_to(one / RULES)), None
    )
    content = read_source(file, FILE_LIMIT) if place is not None else None
    if place is None or content is None:
        return None
    if is_binary(content):
        raise BadRule("it is no text")
    if file.path.name == LOCAL:
        return RuleText(file.path, place, content)
    try:
        front = read_front_matter(content.decode("utf-8", "replace"))
    except FrontMatterError as error:
        raise BadRule(f"line {error.line}: {error.sentence.rstrip('.')}") from error
    if (fault := front.left_out.get(PATHS)) is not None:  # without its paths it would count everywhere
        raise BadRule(f"line {fault.line}: {fault.sentence.rstrip('.')}")
    globs = _globs(front.values.get(PATHS, ""), front.lines.get(PATHS, 1))
    return RuleText(file.path, place, front.body.encode("utf-8", "replace"), globs)


def _globs(value: FrontMatterValue, line: int) -> tuple[str, ...]:
    """Globs of a list, or of a text with commas outside braces between them."""
    if not isinstance(value, str | tuple):
        raise BadRule(f"line {line}: 'paths' must be a list of globs")
    words = _split_alternatives(value) if isinstance(value, str) else value
    globs = tuple(word.strip().removeprefix("./").strip("/") for word in words if word.strip().strip("/"))
    if len(globs) > MOST_GLOBS:
        raise BadRule(f"line {line}: 'paths' has more than {MOST_GLOBS} globs")
    for glob in globs:
        try:
            compile_glob(f"{glob}/**")
        except ToolInputError as error:
            raise BadRule(f"line {line}: {str(error).rstrip('.')}") from error
    return globs


def _split_alternatives(text: str) -> list[str]:
    depth, parts = 0, [""]
    for sign in text:
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
