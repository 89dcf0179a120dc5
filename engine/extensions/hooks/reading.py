"""Reads a hook file: the key `hooks` of a JSON file in the form that Claude Code's settings have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, cast

from engine.extensions.hooks.definitions import LIMITS, LONGEST, MOST_HOOKS, USUAL, Hook, HookFile, HookProblem
from engine.extensions.hooks.located_json import LocatedError, LocatedObject, located
from engine.extensions.hooks.matching import why_no_matcher
from engine.ports.extensions import HookEvent

MOST_BYTES: Final = 256 * 1024
LONGEST_COMMAND: Final = 8_192
MOST_ARGUMENTS: Final = 100
OTHER_TYPES: Final = frozenset({"http", "prompt", "agent", "mcp_tool"})
_EVENTS: Final = {event.value: event for event in HookEvent}
_FIELDS: Final = frozenset({"type", "command", "args", "timeout", "if", "async", "once", "statusMessage", "on_failure"})


class _Wrong(Exception):
    """Raised for one hook that cannot be used, with the reason as a clause."""


def read_hooks(content: bytes, source: str, *, is_users: bool = True) -> HookFile:
    """The hooks of a file; whatever is wrong in it is named with its line, and the rest counts."""
    try:
        document = located(content)
    except LocatedError as error:
        return HookFile(problems=(HookProblem(source, error.line, error.why),))
    if not isinstance(document, LocatedObject):
        return HookFile(problems=(HookProblem(source, 1, "it must be one JSON object"),))
    return read_document(document, source, is_users=is_users)


def read_document(document: LocatedObject, source: str, *, is_users: bool) -> HookFile:
    """The hooks of a file whose objects know their lines."""
    reader = _Reader(source, is_users)
    disables = document.get("disableAllHooks")
    if not isinstance(disables, bool | None):
        reader.note(document.line, "disableAllHooks must be true or false; hooks are off")
        disables = True
    hooks = tuple(reader.events(document))
    return HookFile(hooks, tuple(reader.problems), bool(disables))


class _Reader:
    """Reads the events of one file, and notes what it leaves out."""

    def __init__(self, source: str, is_users: bool) -> None:
        self._source = source
        self._is_users = is_users
        self.problems: list[HookProblem] = []

    def note(self, line: int, why: str) -> None:
        """Note something that is left out."""
        if len(self.problems) < MOST_HOOKS:
            self.problems.append(HookProblem(self._source, line, why))

    def events(self, document: LocatedObject) -> Iterator[Hook]:
        """Hooks of all events."""
        table = document.get("hooks")
        if table is None:
            return
        if not isinstance(table, LocatedObject):
            self.note(document.line, "hooks must be an object of events")
            return
        for name, groups in table.items():
            if name not in _EVENTS:
                self.note(table.line, f"there is no event {_short(name)}")
            elif not isinstance(groups, list):
                self.note(table.line, f"{name} must be a list")
            else:
                for group in cast("list[object]", groups):
                    yield from self._group(_EVENTS[name], group, table.line)

    def _group(self, event: HookEvent, group: object, line: int) -> Iterator[Hook]:
        if not isinstance(group, LocatedObject) or not isinstance(hooks := group.get("hooks"), list):
            self.note(group.line if isinstance(group, LocatedObject) else line, f"{event} needs a list hooks")
            return
        matcher = group.get("matcher", "")
        if not isinstance(matcher, str):
            self.note(group.line, "matcher must be text")
            return
        if why := why_no_matcher(matcher):
            self.note(group.line, f"the hooks of {event} are off: {why}")
            return
        for entry in cast("list[object]", hooks):
            if not isinstance(entry, LocatedObject):
                self.note(group.line, f"a hook of {event} must be an object")
                continue
            try:
                yield self._hook(event, matcher, entry)
            except _Wrong as error:
                self.note(entry.line, f"a hook of {event} is not used: {error}")

    def _hook(self, event: HookEvent, matcher: str, entry: LocatedObject) -> Hook:
        kind = entry.get("type")
        if kind in OTHER_TYPES:
            raise _Wrong(f"Phoenix runs hooks of type command only, not {kind}")
        if kind != "command":
            raise _Wrong("its type must be command")
        if unknown := next((name for name in entry if name not in _FIELDS), None):
            self.note(entry.line, f"a hook of {event} has an unknown field {_short(unknown)}, which has no effect")
        return Hook(
            event,
            _command(entry),
            _args(entry),
            matcher,
            condition=_text(entry, "if"),
            seconds=_seconds(entry, LIMITS.get(event, USUAL)),
            is_async=_flag(entry, "async"),
            once=_flag(entry, "once"),
            goes_on=_goes_on(entry),
            status=_text(entry, "statusMessage"),
            is_users=self._is_users,
            source=self._source,
            line=entry.line,
        )


def _command(entry: LocatedObject) -> str:
    command = _text(entry, "command")
    if not command.strip():
        raise _Wrong("it needs a command")
    if len(command) > LONGEST_COMMAND or "\0" in command:
        raise _Wrong(f"its command must have at most {LONGEST_COMMAND:,} characters, and no NUL")
    return command


def _args(entry: LocatedObject) -> tuple[str, ...] | None:
    args = entry.get("args")
    if args is None:
        return None
    texts = cast("list[object]", args) if isinstance(args, list) else [None]
    found = tuple(text for text in texts if isinstance(text, str) and "\0" not in text)
    if len(found) != len(texts) or len(found) > MOST_ARGUMENTS or sum(map(len, found)) > LONGEST_COMMAND:
        raise _Wrong(f"args must be a list of at most {MOST_ARGUMENTS} texts")
    return found


def _text(entry: LocatedObject, name: str) -> str:
    value = entry.get(name, "")
    if not isinstance(value, str):
        raise _Wrong(f"{name} must be text")
    return value


def _flag(entry: LocatedObject, name: str) -> bool:
    value = entry.get(name, False)
    if not isinstance(value, bool):
        raise _Wrong(f"{name} must be true or false")
    return value


def _seconds(entry: LocatedObject, usual: float) -> float:
    value = entry.get("timeout", usual)
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise _Wrong("timeout must be a number of seconds above 0")
    return min(float(value), LONGEST)


def _goes_on(entry: LocatedObject) -> bool:
    value = entry.get("on_failure", "ask")
    if value not in {"ask", "continue"}:
        raise _Wrong("on_failure must be ask or continue")
    return value == "continue"


def _short(name: str) -> str:
    return name if len(name) <= 40 and name.isprintable() else f"{ascii(name[:40])[1:-1]}"
