"""Permission rules of `.claude/settings.json`, of a project and of the user, over the rules of Phoenix.

Rules that deny or ask only narrow, so they count at once; those that allow count once the user trusts the folder with
this file as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from engine.permissions.denials import ASK, DENY
from engine.permissions.projects import project_of
from engine.permissions.rules import KeptRule, RuleBook
from phoenix_tui.config.added_folders import folder_rules
from phoenix_tui.config.claude_settings import (
    MOST_BYTES,
    RULES,
    ClaudeSettings,
    faults_of,
    parse_settings,
    placed_rules,
    whole_rule,
)
from phoenix_tui.config.claude_words import FOREIGN_MODES
from phoenix_tui.config.live_files import FileStamp, stamp
from phoenix_tui.config.project import places_of
from phoenix_tui.config.rule_layer import RuleLayer
from phoenix_tui.config.settings import MODE_FREEDOM
from phoenix_tui.config.sources.digests import digest_of
from phoenix_tui.config.sources.project_sources import ProjectSources
from tools.clean import clean_line, reveal_name
from tools.files.own_files import read_regular

NAMES: Final = ("settings.json", "settings.local.json")
FOLDER: Final = ".claude"
FOLDERS: Final = "additionalDirectories"
MODE: Final = "defaultMode"
USED: Final = frozenset({
    "hooks",
    "disableAllHooks",
    "$schema",
    *(f"permissions.{name}" for name in (*RULES, FOLDERS, MODE)),
})
"""Keys of a file that count; those of `--settings` are in `given_settings.py`."""
MOST_KEPT: Final = 200
MOST_FOLDERS: Final = 50
"""Further folders of one file."""


class _Read(Struct, frozen=True):
    """A file as of one version of it, and its rules."""

    version: FileStamp
    digest: str
    settings: ClaudeSettings
    narrow: tuple[KeptRule, ...]
    allow: tuple[KeptRule, ...]


class ClaudeRules(RuleLayer):
    """The rules of the user, and those of settings files around a folder. Files are read where they have changed."""

    def __init__(self, book: RuleBook, sources: ProjectSources, *, counts_users: bool = True) -> None:
        super().__init__(book)
        self._sources = sources
        self._counts_users = counts_users
        self._kept: dict[Path, _Read] = {}

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """All that can be read."""
        return (*(self._of(folder) if folder is not None else ()), *super().rules(folder))

    def unreadable(self, folder: Path | None = None) -> str:
        """The file if rules that deny may stand in it and cannot be read, else an empty text."""
        files = self._files(folder) if folder is not None else ()
        hidden = (str(path) for path in files if (found := self._read(path)) and found.settings.is_unreadable)
        return next(hidden, "") or super().unreadable(folder)

    def _of(self, folder: Path) -> Iterator[KeptRule]:
        trusted = {file.path: file.digest for file in self._sources.current(folder).files}
        for path in self._files(folder):
            if (found := self._read(path)) is not None:
                yield from found.narrow
                if trusted.get(path) == found.digest:
                    yield from found.allow

    def _files(self, folder: Path) -> Iterator[Path]:
        counts = self._sources.counts
        places = places_of(folder.resolve())
        if (main := project_of(folder)) not in places:
            places.insert(0, main)  # of a worktree: rules of its repository that narrow; trust is the worktree's own
        for place in places:
            for name in NAMES:
                path = place / FOLDER / name
                if counts is None or counts(path):
                    yield path
        if self._counts_users:
            yield self._sources.home / FOLDER / NAMES[0]

    def _read(self, path: Path) -> _Read | None:
        version, known = stamp(path), self._kept.get(path)
        if version is None:
            return None
        if known is None or known.version != version:
            known = _read(path, version)
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[path] = known
        return known


def _read(path: Path, version: FileStamp) -> _Read:
    content = read_regular(path, MOST_BYTES + 1)
    if content is None or len(content) > MOST_BYTES:
        return _Read(version, "", ClaudeSettings(is_unreadable=True), (), ())
    settings, base = parse_settings(content), path.parent.parent
    narrow = [*_placed(settings.deny, DENY, base, path), *_placed(settings.ask, ASK, base, path)]
    folders = (rule for name in _folders(settings) for rule in _folder_rules(name, base)[0])
    allow = tuple(_placed((*settings.allow, *folders), "", base, path))
    return _Read(version, digest_of(content), settings, tuple(narrow), allow)


def _folders(settings: ClaudeSettings) -> Iterator[str]:
    value = settings.permissions.get(FOLDERS)
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return (one for one in entries[:MOST_FOLDERS] if isinstance(one, str) and one.strip())


def _folder_rules(name: str, base: Path) -> tuple[list[str], str]:
    """Rules that let files of a further folder be read, and the reason where there are none."""
    try:
        return folder_rules(name, base), ""
    except ValueError as error:
        return [], str(error)


def default_mode(folder: Path, counts: Callable[[Path], bool] | None) -> tuple[str, str]:
    """The narrowest permission mode of the settings files around a folder, and its file; both empty for none."""
    found: list[tuple[str, str]] = []
    for path in (place / FOLDER / name for place in places_of(folder) for name in NAMES):
        content = read_regular(path, MOST_BYTES + 1) if counts is None or counts(path) else None
        if content is not None and len(content) <= MOST_BYTES:
            mode = parse_settings(content).permissions.get(MODE)
            if isinstance(mode, str) and mode in FOREIGN_MODES:
                found.append((FOREIGN_MODES[mode], reveal_name(path)))
    return min(found, key=lambda one: MODE_FREEDOM[one[0]], default=("", ""))


def _placed(texts: Sequence[str], kind: str, base: Path, path: Path) -> Iterator[KeptRule]:
    """The rules of a list; one that allows has no source, since it is none of the command line."""
    name = reveal_name(path)
    for text in texts:
        for rule in placed_rules(text, kind, base)[0]:
            yield KeptRule(rule, source=name if kind else "", file=name, entry=f"{kind}{whole_rule(text)}")


def settings_rules(paths: Sequence[Path], allowing: Collection[Path]) -> Iterator[str]:
    """Sentences about the rules of settings files; those that allow count in the files `allowing` alone."""
    for path in dict.fromkeys(paths):
        content = read_regular(path, MOST_BYTES + 1)
        if content is None or len(content) > MOST_BYTES:
            continue
        found = parse_settings(content)
        if found.deny or found.ask or found.allow:
            waits = " (not in force before you trust it)" if found.allow and path not in allowing else ""
            numbers = f"{len(found.deny)} deny, {len(found.ask)} ask, {len(found.allow)} allow{waits}"
            yield f"{reveal_name(path)}: {numbers}; /permissions rules lists those in force"


def settings_faults(paths: Sequence[Path]) -> list[str]:
    """Sentences about what has no effect in settings files, each beginning with the file."""
    found: list[str] = []
    for path in dict.fromkeys(paths):
        content = read_regular(path, MOST_BYTES + 1)
        if content is not None and len(content) <= MOST_BYTES:
            settings, base = parse_settings(content), path.parent.parent
            clauses = faults_of(settings, USED, base)
            clauses += [why for name in _folders(settings) if (why := _folder_rules(name, base)[1])]
            if MODE in settings.permissions and settings.permissions[MODE] not in FOREIGN_MODES:
                clauses.append(f"permissions.{MODE} must be one of {', '.join(FOREIGN_MODES)}")
            found += [f"{reveal_name(path)}: {clean_line(clause)}." for clause in clauses]
    return found
