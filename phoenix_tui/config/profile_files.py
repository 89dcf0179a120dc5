"""All profiles of a folder: the built-in ones, the user's files over them, and the project's beside them.

A user's file replaces a built-in profile of its name. A project's replaces none: where its name is taken it is called
`project/NAME`, and it counts only while the project's present files are trusted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.agents.builtin_profiles import BUILT_IN_PROFILES
from engine.ports.profiles import GENERAL, Profile, ProfileError
from phoenix_tui.config.live_files import FileStamp, stamp
from phoenix_tui.config.profile_text import parse_profile
from phoenix_tui.config.project import FOLDER, Project, ProjectFile, find_project
from phoenix_tui.config.trust import Trust, TrustFile
from tools.clean import clean_line
from tools.files.own_files import read_regular, write_file

PROFILES: Final = "profiles"
SUFFIX: Final = ".md"
FILE_LIMIT: Final = 256 * 1024
"""Bytes of a profile."""
PROJECT: Final = "project/"
"""Prefix of a project's profile whose own name is taken."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
NAME_WORDS: Final = "a profile's name is up to 40 letters, digits, '-' and '_'"


class ProfileTrouble(Struct, frozen=True):
    """Fault of one file; `text` begins with it and its line."""

    path: Path
    line: int
    text: str


class _Kept(Struct):
    """One file as it was read last."""

    stamp: FileStamp | str
    good: Profile | None = None
    """The newest version without a mistake: it stays in force."""
    trouble: ProfileTrouble | None = None


class ProfileFiles(Struct):
    """Reads a file again when it was saved; `folder` is the user's."""

    folder: Path
    trust: TrustFile
    _kept: dict[Path, _Kept] = field(default_factory=dict[Path, _Kept])
    _told: set[str] = field(default_factory=set[str])

    def names(self, cwd: Path) -> Sequence[Profile]:
        """Profiles that can be used in this folder, the built-in ones first."""
        return tuple(one.good for one in self._all(find_project(cwd)).values() if one.good is not None)

    def added(self, cwd: Path) -> Sequence[Profile]:
        """None: the user's and a project's own profiles are known to whoever writes their names."""
        del cwd
        return ()

    def resolve(self, name: str, cwd: Path, others: Sequence[str] = ()) -> Profile:
        """The profile called `name`, general for no name; `others` are names that an error lists, too.

        Raises:
            ProfileError: there is none, naming those there are; or its file is wrong and never was right.
        """
        project = find_project(cwd)
        found = self._all(project)
        kept = found.get(name or GENERAL)
        if kept is None:
            raise ProfileError(self._unknown(name, project, [*found, *others]))
        if kept.good is None:
            trouble = kept.trouble or ProfileTrouble(self.folder, 1, f"{self.folder}:1: this folder cannot be used.")
            raise ProfileError(trouble.text, trouble.path, trouble.line)
        return kept.good

    def troubles(self, cwd: Path) -> Sequence[ProfileTrouble]:
        """Present faults: files with a mistake, invalid names, a project that is not trusted."""
        project = find_project(cwd)
        found = [one.trouble for one in self._all(project).values() if one.trouble is not None]
        odd = [
            _wrong(path, 1, f"rename this file: {NAME_WORDS}.")
            for path in self.files()
            if not NAME.fullmatch(path.stem)
        ]
        found += [ProfileTrouble(error.path or self.folder, error.line, error.sentence) for error in odd]
        return (*found, *self._untrusted(project))

    def untold(self, cwd: Path) -> Sequence[ProfileTrouble]:
        """Present faults that no earlier call returned; a corrected mistake that comes back is new."""
        troubles = self.troubles(cwd)
        new = tuple(one for one in troubles if one.text not in self._told)
        self._told = {one.text for one in troubles}
        return new

    def files(self) -> Iterator[Path]:
        """The user's files, in the order of their names."""
        try:
            paths = sorted(self.folder.iterdir())
        except OSError:
            paths = []
        return (path for path in paths if path.name.endswith(SUFFIX) and not path.name.startswith("."))

    def create(self, name: str, text: str) -> Path:
        """A new file of the user's.

        Raises:
            ProfileError: the name cannot be, or is taken.
            OSError: it cannot be written.
        """
        path = self.folder / f"{name}{SUFFIX}"
        if NAME.fullmatch(name) is None:
            raise ProfileError(f"'{clean_line(name[:60])}' is not valid: {NAME_WORDS}.")
        if os.path.lexists(path):
            raise ProfileError(f"{clean_line(str(path))} already exists; edit it, or choose another name.", path, 1)
        write_file(path, text)
        return path

    def _all(self, project: Project) -> dict[str, _Kept]:
        """All profiles by name, broken ones too."""
        found = {one.name: _Kept("", one) for one in BUILT_IN_PROFILES}
        files = [path for path in self.files() if NAME.fullmatch(path.stem) is not None]
        for path in [one for one in self._kept if one.parent == self.folder and one not in files]:
            del self._kept[path]  # removed: a new file of this name has no earlier version
        for path in files:
            found[path.stem] = self._read(path)
        if self.trust.status(project).trust is Trust.GIVEN:
            taken = frozenset(found)
            for file in _profiles_of(project):
                name = f"{PROJECT}{file.path.stem}" if file.path.stem in taken else file.path.stem
                found[name] = _called(self._read_trusted(file), name)
        return found

    def _unknown(self, name: str, project: Project, there: list[str]) -> str:
        wanted = clean_line(name if len(name) <= 60 else f"{name[:60]}…")
        if any(file.path.stem == name.removeprefix(PROJECT) for file in _profiles_of(project)):
            for trouble in self._untrusted(project):
                return f"The profile '{wanted}' is defined by the project. {trouble.text}"
        return f"There is no profile '{wanted}' for {clean_line(str(project.folder))}. Known are {', '.join(there)}."

    def _untrusted(self, project: Project) -> Iterator[ProfileTrouble]:
        files = _profiles_of(project)
        if files and (trust := self.trust.status(project).trust) is not Trust.GIVEN:
            why = "changed since it was trusted" if trust is Trust.CHANGED else "is not trusted"
            folder = clean_line(str(project.folder))
            text = f"{folder} {why}: {len(files)} of its profiles left out; --trust accepts the files as they are now."
            yield ProfileTrouble(files[0].path, 1, text)

    def _read(self, path: Path) -> _Kept:
        """A file of the user's; read only when it is not the one that was read."""
        now = stamp(path)
        kept = self._kept.get(path)
        if kept is None or kept.stamp != now:
            kept = self._kept[path] = _parsed(path, read_regular(path, FILE_LIMIT + 1), now, kept)
        return kept

    def _read_trusted(self, file: ProjectFile) -> _Kept:
        """A project's file: the very bytes that are trusted."""
        kept = self._kept.get(file.path)
        if kept is None or kept.stamp != file.digest:
            kept = self._kept[file.path] = _parsed(file.path, file.content, file.digest, kept, project=True)
        return kept


def _parsed(
    path: Path, content: bytes | None, now: FileStamp | str, before: _Kept | None, *, project: bool = False
) -> _Kept:
    try:
        return _Kept(now, _profile_in(path, content, project=project))
    except ProfileError as error:
        good = before.good if before is not None else None
        return _Kept(now, good, ProfileTrouble(path, error.line, error.sentence))


def _profile_in(path: Path, content: bytes | None, *, project: bool) -> Profile:
    if NAME.fullmatch(path.stem) is None:
        raise _wrong(path, 1, f"rename this file: {NAME_WORDS}.")
    if content is None:
        raise _wrong(path, 1, "this file cannot be read.")
    if len(content) > FILE_LIMIT:
        raise _wrong(path, 1, f"this file is larger than {FILE_LIMIT // 1024} KB.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _wrong(path, content[: error.start].count(b"\n") + 1, "this file is not UTF-8 text.") from error
    return parse_profile(text, path, project=project)


def _wrong(path: Path, line: int, sentence: str) -> ProfileError:
    return ProfileError(f"{clean_line(str(path))}:{line}: {sentence}", path, line)


def _profiles_of(project: Project) -> list[ProjectFile]:
    """The repository's before the folder's own, which take their place."""
    return [
        file
        for file in project.files
        if file.path.suffix == SUFFIX and file.path.parts[-3:-1] == (FOLDER, PROFILES) and file.path.name[0] != "."
    ]


def _called(kept: _Kept, name: str) -> _Kept:
    good = replace(kept.good, name=name) if kept.good is not None else None
    return _Kept(kept.stamp, good, kept.trouble)
