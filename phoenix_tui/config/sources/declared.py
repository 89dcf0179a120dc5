"""Commands that files of hooks and servers would start, as they are written there, for the user to read."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Final, cast

from msgspec import Struct

from phoenix_tui.config.sources.kinds import SourceFile, SourceKind
from phoenix_tui.config.sources.programs import DEPTH, MOST_BYTES
from phoenix_tui.config.sources.project_sources import read_source

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


def declared(file: SourceFile) -> tuple[str, ...]:
    """Commands and addresses of a file of hooks or servers, each behind its event or name, to the letter.

    Empty for other files, and where the file is no JSON or has changed since it was found.
    """
    if file.kind not in {SourceKind.HOOKS, SourceKind.SERVERS}:
        return ()
    content = read_source(file, MOST_BYTES)
    try:
        document: object = json.loads(content or b"")
    except (ValueError, RecursionError):
        return ()
    if file.kind is SourceKind.HOOKS and isinstance(document, dict):
        document = {"hooks": cast("dict[str, object]", document).get("hooks")}  # other keys start nothing here
    lines: list[str] = []
    for line in _lines(document, _Place(), DEPTH):
        if len(lines) == MOST_LINES:
            return (*lines, f"… and more than {MOST_LINES} others")
        lines.append(_shortened(line))
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


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} … {len(line) - LONGEST:,} characters more"
