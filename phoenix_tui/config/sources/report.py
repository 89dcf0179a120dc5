"""Report of the files that extend Phoenix in a folder: group, state, commands, and text or difference."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from phoenix_tui.config.sources.extension_files import SourceFile, SourceGroup, SourceKind
from phoenix_tui.config.sources.finding import MOST_DECLARING_BYTES, PROGRAM_DEPTH
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources, read_source
from phoenix_tui.config.trust import places_of
from tools.clean import reveal_name
from tools.files.content import diff_lines, is_binary

MOST_LINES: Final = 500
"""Commands of one file that are listed."""
LONGEST: Final = 4_000
"""Characters of one that are shown."""
_CONTAINERS: Final = frozenset({"hooks", "mcpServers"})


class _Place(Struct, frozen=True):
    """Name of the nearest table with one of its own, and the matcher beside it."""

    name: str = ""
    matcher: str = ""

    def __str__(self) -> str:
        name = f"{self.name} {self.matcher}".strip()
        return f"{name}: " if name else ""


def list_declared(file: SourceFile) -> tuple[str, ...]:
    """Commands and addresses of a file of hooks or servers, each behind its event or name, to the letter.

    Empty for other files, and where the file is no JSON or has changed since it was found.
    """
    if file.kind not in {SourceKind.HOOKS, SourceKind.SERVERS}:
        return ()
    content = read_source(file, MOST_DECLARING_BYTES)
    try:
        document: object = json.loads(content or b"")
    except (ValueError, RecursionError):
        return ()
    if file.kind is SourceKind.HOOKS and isinstance(document, dict):
        document = {"hooks": cast("dict[str, object]", document).get("hooks")}  # other keys start nothing here
    lines: list[str] = []
    for line in _lines(document, _Place(), PROGRAM_DEPTH):
        if len(lines) == MOST_LINES:
            return (*lines, f"… and more than {MOST_LINES} others")
        lines.append(line if len(line) <= LONGEST else f"{line[:LONGEST]} … {len(line) - LONGEST:,} characters more")
    return tuple(lines)


def _lines(value: object, place: _Place, depth: int) -> Iterator[str]:
    if not depth:
        return
    if isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _lines(one, place, depth - 1)
    elif isinstance(value, dict):
        table = cast("dict[str, object]", value)
        matcher = table.get("matcher")
        place = _Place(place.name, matcher) if isinstance(matcher, str) else place
        yield from _own(table, place)
        for name, one in table.items():
            inner = place if name in _CONTAINERS else _Place(name)
            yield from _lines(one, inner, depth - 1)


def _own(table: dict[str, object], place: _Place) -> Iterator[str]:
    """Lines of one table: what it starts or calls, with its variables."""
    command, arguments, url = table.get("command"), table.get("args"), table.get("url")
    if isinstance(command, str):
        words = cast("list[object]", arguments) if isinstance(arguments, list) else []
        rest = " ".join(shlex.quote(word) if isinstance(word, str) else json.dumps(word) for word in words)
        yield f"{place}{_variables(table)}{command} {rest}".strip()
    elif isinstance(url, str):
        yield f"{place}{url}"
    if isinstance(helper := table.get("headersHelper"), str):
        yield f"{place}headers from {helper}"


def _variables(table: dict[str, object]) -> str:
    """Variables that a program gets: one of them can make it run another program."""
    variables = table.get("env")
    if not isinstance(variables, dict):
        return ""
    pairs = cast("dict[str, object]", variables).items()
    return "".join(f"{name}={shlex.quote(value)} " for name, value in pairs if isinstance(value, str))


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
    states = {
        change.path: SourceState.NEW if change.is_new else SourceState.CHANGED
        for change in found.changes
        if not change.is_gone
    }
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


def _entry(file: SourceFile, state: SourceState, root: Path) -> SourceEntry:
    return SourceEntry(file.path, _name(file.path, root), state, file.group, file.kind, file.unit, list_declared(file))


def _name(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _place(entry: SourceEntry) -> tuple[int, bool, str]:
    """Order by group; in it what starts programs before the programs, else by name."""
    group = GROUP_ORDER.index(entry.group) if entry.group is not None else len(GROUP_ORDER)
    return group, entry.kind is SourceKind.PROGRAM, entry.name


MOST_SHOWN_BYTES: Final = 1024 * 1024
"""Bytes of a file whose text is shown."""
NOT_SHOWN: Final = "It is no text, or longer than 1 MB; open it in another program."
MOVED: Final = "It has changed meanwhile; look again."
NOT_KEPT: Final = "What was accepted was not kept, as it is no short text. The whole file now:"


def text_of(sources: ProjectSources, report: SourceReport, entry: SourceEntry) -> str:
    """Text that the user reads about a file before an answer; reads the disk."""
    before = sources.read_accepted(report.folder, entry.path)
    if entry.state is SourceState.LEFT_OUT:
        return f"It is not used: {entry.why}."
    if entry.state is SourceState.GONE:
        return before if before is not None else "It is gone."
    now = next((_text(file) for file in report.shown if file.path == entry.path), MOVED)
    if entry.state is not SourceState.CHANGED:
        return now
    if before is None:
        return f"{NOT_KEPT}\n{now}"
    name = reveal_name(entry.name)
    lines = diff_lines(before.splitlines(), now.splitlines(), f"{name} (accepted)", f"{name} (now)")
    return "\n".join(lines)


def _text(file: SourceFile) -> str:
    content = read_source(file, MOST_SHOWN_BYTES)
    if content is None:
        return NOT_SHOWN if _is_long(file) else MOVED
    return NOT_SHOWN if is_binary(content) else content.decode("utf-8", "replace")


def _is_long(file: SourceFile) -> bool:
    try:
        return file.path.stat().st_size > MOST_SHOWN_BYTES
    except OSError:
        return False
