"""Reads the table `[hooks]` of config.toml: the form of a hook file, in TOML."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, cast

from engine.extensions.hooks.definitions import HookFile, HookProblem
from engine.extensions.hooks.located_json import LocatedObject
from engine.extensions.hooks.reading import read_document

TABLE: Final = "hooks"
DISABLES: Final = "disableAllHooks"
"""Key of `[hooks]` that a hook file has beside its `hooks`."""
_HEADING: Final = re.compile(r"""^[ \t]*\[{1,2}[ \t]*(?:hooks|"hooks"|'hooks')([ \t."'\w-]*)\]""", re.MULTILINE)
_NAMES: Final = re.compile(r"[\w-]+")


def read_toml_hooks(content: bytes, source: str) -> HookFile:
    """The hooks of the user's config.toml; a file that is no TOML has none, and its line is named."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unusable(source, content.count(b"\n", 0, error.start) + 1, "it is not UTF-8")
    if TABLE not in text:
        return HookFile()
    try:
        table = tomllib.loads(text).get(TABLE)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        return _unusable(source, int(line[1]) if line else 1, "it is no valid TOML")
    except RecursionError:
        return _unusable(source, 1, "it is nested too deeply")
    if table is None:
        return HookFile()
    headings = _Headings(text)
    document = LocatedObject()
    document.line = headings.first
    if isinstance(table, dict):
        events = cast("dict[str, object]", table)
        document[DISABLES] = events.pop(DISABLES, None)
        table = headings.located(events)
    document[TABLE] = table
    return read_document(document, source, is_users=True)


def _unusable(source: str, line: int, why: str) -> HookFile:
    return HookFile(problems=(HookProblem(source, line, why),))


class _Headings:
    """Lines of `[[hooks.EVENT]]` and `[[hooks.EVENT.hooks]]`; an inline table has that of the table that it is in."""

    def __init__(self, text: str) -> None:
        breaks = [place for place, sign in enumerate(text) if sign == "\n"]
        self._lines: dict[tuple[str, ...], list[int]] = {}
        for found in _HEADING.finditer(text):
            names = tuple(_NAMES.findall(found[1]))
            self._lines.setdefault(names, []).append(bisect_right(breaks, found.start()) + 1)
        self.first = min((lines[0] for lines in self._lines.values()), default=1)

    def located(self, events: dict[str, object]) -> LocatedObject:
        """The table of events with the line of each object."""
        found = LocatedObject()
        found.line = self.first
        for name, groups in events.items():
            found[name] = self._groups(name, cast("list[object]", groups)) if isinstance(groups, list) else groups
        return found

    def _groups(self, event: str, groups: list[object]) -> list[object]:
        lines = self._lines.get((event,), [])
        inner = self._lines.get((event, TABLE), [])
        found: list[object] = []
        for place, group in enumerate(groups):
            line = _at(lines, place, self.first)
            after = _at(lines, place + 1, 1 << 62)
            own = [one for one in inner if line <= one < after]
            found.append(_object(group, line, own))
        return found


def _object(given: object, line: int, inner: Sequence[int] = ()) -> object:
    """A table with its line, and with those of the tables below its `hooks`."""
    if not isinstance(given, dict):
        return given
    found = LocatedObject(cast("dict[str, object]", given))
    found.line = line
    hooks = found.get(TABLE)
    if isinstance(hooks, list):
        entries = cast("list[object]", hooks)
        found[TABLE] = [_object(entry, _at(inner, place, line)) for place, entry in enumerate(entries)]
    return found


def _at(lines: Sequence[int], place: int, otherwise: int) -> int:
    return lines[place] if place < len(lines) else otherwise
