"""Hooks as files define them, in JSON (the form of Claude Code's settings) and TOML, and their matchers."""

from __future__ import annotations

import json
import json.decoder
import json.scanner
import math
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import comb
from typing import Any, Final, cast

from msgspec import Struct, field

from engine.ports.extensions import HookEvent
from tools.clean import clean_line

LIMITS: Final[Mapping[HookEvent, float]] = {HookEvent.USER_PROMPT_SUBMIT: 30.0, HookEvent.SESSION_END: 5.0}
"""Seconds of one hook where its file names none; 600 for other events."""
USUAL: Final = 600.0
LONGEST: Final = 3_600.0
LONGEST_NAME: Final = 40
_BETWEEN: Final = re.compile(r"[\s;|&()<>{}\"'`$=]+")
_SCRIPT: Final = re.compile(r"[\w.+@-]+\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|php|lua)")
MOST_HOOKS: Final = 200
"""Hooks of one folder."""


class Hook(Struct, frozen=True):
    """One command of a hook file."""

    event: HookEvent
    command: str
    args: tuple[str, ...] | None = None
    """Arguments: the command is a program that is started without a shell; None: a line for bash."""
    matcher: str = ""
    condition: str = ""
    """A permission rule that the call has to match; empty: none."""
    seconds: float = USUAL
    is_async: bool = False
    """True: nothing waits for it, so it decides nothing."""
    once: bool = False
    """True: it runs once in a conversation."""
    goes_on: bool = False
    """True: without an opinion in time the call goes on."""
    status: str = ""
    """Text beside its name while it runs."""
    is_users: bool = True
    source: str = ""
    """Path of its file."""
    line: int = 1

    @property
    def shown(self) -> str:
        """The command to the letter, with its arguments."""
        return self.command if self.args is None else " ".join((self.command, *self.args))

    @property
    def name(self) -> str:
        """A short name: that of the script, else the first word."""
        words = [word.rpartition("/")[2] for word in _BETWEEN.split(clean_line(self.shown)) if word]
        scripts = (word for word in words if _SCRIPT.fullmatch(word))
        return next(scripts, words[0] if words else "hook")[:LONGEST_NAME] or "hook"

    @property
    def identity(self) -> tuple[object, ...]:
        """Hooks with equal identities are one."""
        return self.event, self.command, self.args, self.matcher, self.condition


class HookProblem(Struct, frozen=True):
    """A part of a hook file that is not used."""

    source: str
    line: int
    why: str
    """A clause."""

    @property
    def sentence(self) -> str:
        """The whole sentence, with file and line."""
        return f"{self.source}:{self.line}: {self.why}."


class HookFile(Struct, frozen=True):
    """One hook file: what it holds, and what in it is not used."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[HookProblem, ...] = ()
    disables_all: bool = False
    """True where it switches every hook off."""


class HookSet(Struct, frozen=True):
    """All hooks of a folder by event."""

    by_event: Mapping[HookEvent, tuple[Hook, ...]] = field(default_factory=dict[HookEvent, tuple[Hook, ...]])
    problems: tuple[HookProblem, ...] = ()
    waiting: tuple[str, ...] = ()
    """Files whose hooks wait for trust."""
    off: str = ""
    """Reason why none runs; empty where they do."""

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """All of them, by event."""
        return tuple(hook for hooks in self.by_event.values() for hook in hooks)


NO_HOOKS: Final = HookSet()


def join_files(files: tuple[HookFile, ...], waiting: tuple[str, ...] = (), *, is_off: str = "") -> HookSet:
    """The hooks of several files, in their order; equal commands count once."""
    problems = [problem for file in files for problem in file.problems]
    disabled = any(file.disables_all for file in files)
    off = is_off or ("a hook file has disableAllHooks" if disabled else "")
    found: dict[tuple[object, ...], Hook] = {}
    for hook in (hook for file in files for hook in file.hooks):
        if hook.identity not in found and len(found) >= MOST_HOOKS:
            problems.append(HookProblem(hook.source, hook.line, f"a folder has at most {MOST_HOOKS} hooks"))
            break
        found.setdefault(hook.identity, hook)
    by_event: dict[HookEvent, tuple[Hook, ...]] = {}
    for hook in () if off else found.values():
        by_event[hook.event] = (*by_event.get(hook.event, ()), hook)
    return HookSet(by_event, tuple(problems), waiting, off)


_OBJECT: Final[Any] = vars(json.decoder)["JSONObject"]
_SCANNER: Final[Any] = vars(json.scanner)["py_make_scanner"]
"""The reader of the standard library in Python, which tells where an object begins; the one in C does not."""


class LocatedError(Exception):
    """Raised for a text that is no JSON, or holds a name twice; a clause for people, and the line."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


class LocatedObject(dict[str, object]):
    """A JSON object, and the line of its opening brace."""

    line: int = 1


def decode_located(content: bytes) -> object:
    """The value of a JSON text in UTF-8.

    Raises:
        LocatedError: it is none.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LocatedError("it is not UTF-8", content.count(b"\n", 0, error.start) + 1) from error
    try:
        return cast("object", _Decoder(text).decode(text))
    except json.JSONDecodeError as error:
        raise LocatedError(f"it is no JSON ({error.msg})", error.lineno) from error
    except RecursionError as error:
        raise LocatedError("it is nested too deeply", 1) from error


class _Twice(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Decoder(json.JSONDecoder):
    def __init__(self, text: str) -> None:
        super().__init__(object_pairs_hook=_once, parse_constant=_refuse)
        self._breaks = [place for place, character in enumerate(text) if character == "\n"]
        self.parse_object: Any = self._object
        self.scan_once: Any = _SCANNER(self)

    def _object(self, begin: tuple[str, int], *arguments: Any) -> tuple[object, int]:
        line = bisect_right(self._breaks, begin[1] - 1) + 1
        try:
            value, end = _OBJECT(begin, *arguments)
        except _Twice as error:
            raise LocatedError(f"it has {json.dumps(error.name[:60])} twice in one object", line) from error
        value.line = line
        return value, end


def _once(pairs: list[tuple[str, object]]) -> LocatedObject:
    found = LocatedObject()
    for name, value in pairs:
        if name in found:
            raise _Twice(name)
        found[name] = value
    return found


def _refuse(name: str) -> object:
    raise json.JSONDecodeError(f"{name} is no JSON value", "", 0)


LONGEST_PATTERN: Final = 200
LONGEST_SUBJECT: Final = 128
"""Characters of a name that are looked at."""
MOST_WORK: Final = 20_000_000
"""Steps of the worst case, about half a second, once for a pattern and a name."""
_NAMES: Final = re.compile(r"[A-Za-z0-9_\-|]*")
_EVERYTHING: Final = ("", "*")
_PIECE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?:)?|\)|\||[*+?]|\{\d*(?:,\d*)?\}|.", re.DOTALL)
_UNBOUNDED: Final = re.compile(r"[*+]|\{\d*,\}")
_QUANTIFIER: Final = re.compile(r"[*+?]|\{\d*(?:,\d*)?\}")


def why_no_matcher(pattern: str) -> str:
    """Reason why a matcher cannot be used, as a clause; empty where it can."""
    if len(pattern) > LONGEST_PATTERN:
        return f"its matcher is longer than {LONGEST_PATTERN} characters"
    if pattern in _EVERYTHING or _NAMES.fullmatch(pattern):
        return ""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"its matcher is no regular expression ({error})"
    if re.search(r"\\\d", pattern):
        return "its matcher has a back reference"
    if "(?" in pattern.replace("(?:", "").replace(r"\(", ""):
        return "its matcher has an extension such as look-around"
    work = _most_work(pattern)
    if work is None:
        return "its matcher repeats a group that repeats or has alternatives"
    return "" if work <= MOST_WORK else "its matcher could take too long; use fewer repetitions"


@lru_cache(maxsize=2_000)
def matches(pattern: str, subject: str) -> bool:
    """True if a valid matcher is for a name; names match whole and with their case, expressions anywhere."""
    if pattern in _EVERYTHING:
        return True
    if _NAMES.fullmatch(pattern):
        return subject in pattern.split("|")
    return re.search(pattern, subject[:LONGEST_SUBJECT]) is not None


def _most_work(pattern: str) -> int | None:
    """Upper bound of the ways in which an expression can match: places of what repeats without end, times alternatives,
    times what may be left out. None where a group that can match in several ways is repeated.
    """
    stars, ways = 0, 1
    groups: list[bool] = []
    closed = False
    for piece in _PIECE.findall(pattern):
        is_repeated, closed = closed, False
        if piece.startswith("("):
            groups.append(False)
        elif piece == ")":
            closed = bool(groups) and groups.pop()
            groups = [True] * len(groups) if closed else groups
        elif piece == "|" and groups:
            groups[-1], ways = True, ways * 2
        elif _QUANTIFIER.fullmatch(piece):
            if is_repeated:
                return None
            groups = [True] * len(groups)
            stars += _UNBOUNDED.fullmatch(piece) is not None
            ways *= 1 if _UNBOUNDED.fullmatch(piece) else LONGEST_SUBJECT if "," in piece else 2
    return comb(LONGEST_SUBJECT + stars + 1, stars + 1) * ways


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
        document = decode_located(content)
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
        command = _text(entry, "command")
        if not command.strip():
            raise _Wrong("it needs a command")
        if len(command) > LONGEST_COMMAND or "\0" in command:
            raise _Wrong(f"its command must have at most {LONGEST_COMMAND:,} characters, and no NUL")
        return Hook(
            event,
            command,
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


TABLE: Final = "hooks"
DISABLES: Final = "disableAllHooks"
"""Key of `[hooks]` that a hook file has beside its `hooks`."""
_HEADING: Final = re.compile(r"""^[ \t]*\[{1,2}[ \t]*(?:hooks|"hooks"|'hooks')([ \t."'\w-]*)\]""", re.MULTILINE)
_TABLE_NAMES: Final = re.compile(r"[\w-]+")


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
        table = headings.read_events(events)
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
            names = tuple(_TABLE_NAMES.findall(found[1]))
            self._lines.setdefault(names, []).append(bisect_right(breaks, found.start()) + 1)
        self.first = min((lines[0] for lines in self._lines.values()), default=1)

    def read_events(self, events: dict[str, object]) -> LocatedObject:
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
