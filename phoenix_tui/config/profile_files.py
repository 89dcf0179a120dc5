"""Profiles of a folder: the built-in ones, the files of the user over them, and those of the project.

A file is front matter that sets, and a body that instructs:

---
description: reads, never writes
tools: read_file, search          (or [read_file, search], or one below the other with dashes)
---
Look for mistakes first.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.agents.builtin_profiles import BUILT_IN_PROFILES
from engine.ports.profiles import GENERAL, KNOWN_TOOLS, Profile, ProfileError
from engine.records import PermissionMode
from phoenix_tui.config.choices import EFFORTS, PERMISSION_MODES, SANDBOXES
from phoenix_tui.config.front_matter import FENCE, FrontMatter, FrontMatterError, FrontMatterValue, read_front_matter
from phoenix_tui.config.paths import FileStamp, stamp
from phoenix_tui.config.trust import FOLDER, Project, ProjectFile, Trust, TrustFile, find_project
from tools.aliases import native_names
from tools.clean import clean_line
from tools.files.own_files import read_regular, write_file

MOST_TURNS: Final = 1_000
LONGEST_RUN: Final = 86_400.0
"""Seconds."""
LONGEST_DESCRIPTION: Final = 1_000
"""Characters; every model that may choose an agent reads all of them."""
LONGEST_QUOTE: Final = 60
"""Characters of a wrong value that are repeated."""
YES_NO: Final = {"true": True, "yes": True, "false": False, "no": False}
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
_QUOTED: Final = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?""")
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_PLAIN: Final = re.compile(r"[^\s\"'#\[>|-](?:.*\S)?")
"""A text that needs no quotes, unless a comment seems to begin in it."""


class _Field(Struct):
    """One key with its value."""

    key: str
    line: int
    value: FrontMatterValue


class _Reading(Struct, frozen=True):
    """One file while it is read."""

    path: Path

    def wrong(self, line: int, sentence: str) -> ProfileError:
        """The error that says so."""
        return ProfileError(f"{clean_line(str(self.path))}:{line}: {sentence}", self.path, line)


def parse_profile(text: str, path: Path, *, project: bool = False) -> Profile:
    """Parse the profile in the file `path`, named like the file.

    Raises:
        ProfileError: the front matter is wrong; file, line and what is allowed are named.
    """
    reading = _Reading(path)
    try:
        found = read_front_matter(text)
        for fault in found.left_out.values():  # the user's own file: nothing in it is passed by
            raise fault
    except FrontMatterError as error:
        raise reading.wrong(error.line, error.sentence) from error
    values = {field.key: CHECKS[field.key](field, reading) for field in _fields(found, reading)}
    if values.pop("name", path.stem) != path.stem:
        raise reading.wrong(
            found.lines["name"], f"'name' must be {_quote(path.stem)}, the name of the file, or be left out."
        )
    return Profile(name=path.stem, prompt=found.body.strip(), source=str(path), project=project, **values)  # type: ignore[arg-type]  # each by its own check


def key_lines(text: str) -> Mapping[str, int]:
    """Line of each key of the front matter."""
    lines = _NEWLINE.split(text.removeprefix("\ufeff"))
    found: dict[str, int] = {}
    for number, line in enumerate(lines[1:], 2):
        if line.strip() == FENCE:
            break
        key = line.partition(":")[0].strip()
        if key in CHECKS:
            found[key] = number
    return found


def profile_text(profile: Profile, *, comment: str = "") -> str:
    """The file with the same settings; those left to the parent are left out."""
    lines = [FENCE, *(f"# {line}" for line in comment.splitlines())]
    mode = profile.permission_mode
    settings = {
        "description": _write_value(profile.description),
        "model": _write_value(profile.model),
        "tools": ", ".join(profile.tools),
        "permission_mode": mode.value if mode is not None else "",
        "sandbox": profile.sandbox,
        "effort": profile.effort,
        "max_turns": str(profile.max_turns or ""),
        "timeout": f"{profile.timeout:g}" if profile.timeout else "",
        "locked": "true" if profile.locked else "",
    }
    lines += [f"{key}: {value}" for key, value in settings.items() if value]
    return "\n".join([*lines, FENCE, "", profile.prompt, ""])


def _fields(found: FrontMatter, reading: _Reading) -> Iterator[_Field]:
    for key, value in found.values.items():
        line = found.lines[key]
        if key not in CHECKS:
            said = f"{key}: {value}" if isinstance(value, str) and value else key
            raise reading.wrong(line, f"{_quote(said)} is not a valid key. Valid keys are {', '.join(CHECKS)}.")
        yield _Field(key, line, value)


def _value(text: str) -> str:
    """Strip quotes, or a comment behind the value."""
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return _COMMENT.sub("", text, count=1).rstrip()
    body = quoted[1]
    if body.startswith("'"):
        return body[1:-1].replace("''", "'")
    try:
        return str(json.loads(body, strict=False))
    except ValueError:
        return body[1:-1]


def _text(field: _Field, reading: _Reading) -> str:
    if not isinstance(field.value, str):
        raise reading.wrong(field.line, f"'{field.key}' must be one text.")
    return " ".join(field.value.encode("utf-8", "replace").decode().split())


def _description(field: _Field, reading: _Reading) -> str:
    words = _text(field, reading)
    if len(words) > LONGEST_DESCRIPTION:
        raise reading.wrong(field.line, f"'description' is longer than {LONGEST_DESCRIPTION} characters.")
    return words


def _tools(field: _Field, reading: _Reading) -> tuple[str, ...]:
    if isinstance(field.value, str):
        names = [name.strip() for name in field.value.split(",") if name.strip()]
    else:
        names = list(field.value)
    names = [native for name in names for native in native_names(name)]
    if not names:
        raise reading.wrong(
            field.line, f"'tools' must list tools among {', '.join(KNOWN_TOOLS)}, or be left out for all."
        )
    for name in names:
        if name not in KNOWN_TOOLS:
            raise reading.wrong(field.line, f"there is no tool {_quote(name)}. The tools are {', '.join(KNOWN_TOOLS)}.")
    return tuple(dict.fromkeys(names))


def _mode(field: _Field, reading: _Reading) -> PermissionMode | None:
    value = _one_of(PERMISSION_MODES)(field, reading)
    return PermissionMode(value) if value else None


def _one_of(allowed: tuple[str, ...]) -> Callable[[_Field, _Reading], str]:
    def check(field: _Field, reading: _Reading) -> str:
        value = _text(field, reading)
        if value and value not in allowed:
            words = f"'{field.key}' must be one of {', '.join(allowed)}, not {_quote(value)}."
            raise reading.wrong(field.line, words)
        return value

    return check


def _turns(field: _Field, reading: _Reading) -> int:
    words = _text(field, reading) or "0"
    if not re.fullmatch(r"[0-9]{1,6}", words) or int(words) > MOST_TURNS:
        allowed = f"a whole number up to {MOST_TURNS}, 0 for the default limit"
        raise reading.wrong(field.line, f"'max_turns' must be {allowed}, not {_quote(words)}.")
    return int(words)


def _seconds(field: _Field, reading: _Reading) -> float:
    words = _text(field, reading) or "0"
    if not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", words) or float(words) > LONGEST_RUN:
        allowed = f"seconds up to {LONGEST_RUN:.0f}, 0 for the default limit"
        raise reading.wrong(field.line, f"'timeout' must be {allowed}, not {_quote(words)}.")
    return float(words)


def _yes_or_no(field: _Field, reading: _Reading) -> bool:
    words = _text(field, reading).lower()
    if words not in YES_NO:
        raise reading.wrong(field.line, f"'{field.key}' must be true or false, not {_quote(words)}.")
    return YES_NO[words]


def _quote(value: str) -> str:
    """A wrong value on one line, without anything that a terminal would obey."""
    short = value if len(value) <= LONGEST_QUOTE else f"{value[:LONGEST_QUOTE]}…"
    return f"'{clean_line(short)}'"


def _write_value(text: str) -> str:
    """A text as a value; quoted where it would be read as something else."""
    plain = _PLAIN.fullmatch(text) is not None and _value(text) == text
    return text if plain or not text else json.dumps(text, ensure_ascii=False)


CHECKS: Final[Mapping[str, Callable[[_Field, _Reading], object]]] = {
    "name": _text,
    "description": _description,
    "model": _text,
    "tools": _tools,
    "permission_mode": _mode,
    "sandbox": _one_of(SANDBOXES),
    "effort": _one_of(EFFORTS),
    "max_turns": _turns,
    "timeout": _seconds,
    "locked": _yes_or_no,
}
"""Every key of the front matter, and the function that makes its value."""


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

    def list_added(self, cwd: Path) -> Sequence[Profile]:
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
        return (*found, *self._list_untrusted(project))

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
                kept = self._read_trusted(file)
                good = replace(kept.good, name=name) if kept.good is not None else None
                found[name] = _Kept(kept.stamp, good, kept.trouble)
        return found

    def _unknown(self, name: str, project: Project, there: list[str]) -> str:
        wanted = clean_line(name if len(name) <= 60 else f"{name[:60]}…")
        if any(file.path.stem == name.removeprefix(PROJECT) for file in _profiles_of(project)):
            for trouble in self._list_untrusted(project):
                return f"The profile '{wanted}' is defined by the project. {trouble.text}"
        return f"There is no profile '{wanted}' for {clean_line(str(project.folder))}. Known are {', '.join(there)}."

    def _list_untrusted(self, project: Project) -> Iterator[ProfileTrouble]:
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
            kept = self._kept[path] = _parse_profile(path, read_regular(path, FILE_LIMIT + 1), now, kept)
        return kept

    def _read_trusted(self, file: ProjectFile) -> _Kept:
        """A project's file: the very bytes that are trusted."""
        kept = self._kept.get(file.path)
        if kept is None or kept.stamp != file.digest:
            kept = self._kept[file.path] = _parse_profile(file.path, file.content, file.digest, kept, project=True)
        return kept


def _parse_profile(
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
