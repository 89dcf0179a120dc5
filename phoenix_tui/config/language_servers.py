"""`[lsp.NAME]` and `[format]` of the user's config.toml; a project's file has neither.

A table that is wrong is left out and named in a sentence: an edit never waits for its correction.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.config.load import line_of
from tools.files.own_files import MOST_SETTINGS, read_text
from tools.lsp.definitions import KNOWN_SERVERS, LanguageServer

MOST_TABLES: Final = 50
LONGEST_COMMAND: Final = 4_096
MOST_SECONDS: Final = 600.0
KEYS: Final = (
    "command",
    "files",
    "language",
    "enabled",
    "timeout",
    "options",
    "settings",
    "roots",
    "role",
    "ignore",
    "runs_project",
)


class Formatter(Struct, frozen=True):
    """A program that reads a text on stdin and prints it formatted; `{file}` is the path."""

    pattern: str
    command: tuple[str, ...]


class EditTables(Struct, frozen=True):
    """Servers and formatters that are in force, and sentences about what is left out."""

    servers: tuple[LanguageServer, ...] = KNOWN_SERVERS
    formatters: tuple[Formatter, ...] = ()
    notices: tuple[str, ...] = ()


class _WrongValueError(ValueError):
    """Raised for a value that is not allowed; the text completes "'KEY' must be …"."""


def read_tables(path: Path) -> EditTables:
    """The known servers with the user's changes, and the user's own; never raises."""
    try:
        text = read_text(path, MOST_SETTINGS)
        document: dict[str, object] = tomllib.loads(text)
    except (OSError, tomllib.TOMLDecodeError, RecursionError):
        return EditTables()  # the settings say it
    notices: list[str] = []
    servers = _servers(document.get("lsp"), text, path, notices)
    value = document.get("format")
    found: list[Formatter] = []
    for pattern, command in _tables(value, "format", text, path, notices).items():
        try:
            found.append(Formatter(_text("pattern", pattern), command_of(pattern, command)))
        except _WrongValueError as error:
            notices.append(f"{path}:{_line(text, 'format')}: a formatter of [format] is left out: {error}")
    formatters = tuple(found)
    return EditTables(servers, formatters, tuple(notices))


def _servers(value: object, text: str, path: Path, notices: list[str]) -> tuple[LanguageServer, ...]:
    found = {server.name: server for server in KNOWN_SERVERS}
    own: dict[str, LanguageServer] = {}
    for name, table in _tables(value, "lsp", text, path, notices).items():
        heading = f"lsp.{name}"
        try:
            server = _server(name, table, found.get(name))
        except _WrongValueError as error:
            notices.append(f"{path}:{_line(text, heading)}: [{heading}] is left out: {error}")
        else:
            own[name] = server
    # The user's own come first: they are chosen before the known ones of the same role.
    return (*own.values(), *(server for name, server in found.items() if name not in own))


def _server(name: str, table: object, known: LanguageServer | None) -> LanguageServer:
    if not isinstance(table, dict):
        raise _WrongValueError("it must be a table.")
    fields = cast("dict[str, object]", table)
    for key in fields:
        if key not in KEYS:
            raise _WrongValueError(f"unknown key '{key}'. Valid keys are {', '.join(KEYS)}.")
    if known is None and not {"command", "files"} <= fields.keys():
        raise _WrongValueError("it needs 'command' and 'files'.")
    base = known or LanguageServer(name=name, command=(), languages={}, role=name)
    changes: dict[str, Any] = {"is_users": "command" in fields}
    for key, (field, check) in _CHECKS.items():
        if key in fields:
            changes[field] = check(key, fields[key])
    language = _text("language", fields["language"]) if "language" in fields else ""
    if "files" in fields:
        patterns = _words("files", fields["files"])
        changes["languages"] = {one: language or base.language_of(one.replace("*", "x")) or name for one in patterns}
    elif language:
        changes["languages"] = dict.fromkeys(base.languages, language)
    return replace(base, **changes)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or "\0" in value:
        raise _WrongValueError(f"'{key}' must be text.")
    return value.strip()


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _WrongValueError(f"'{key}' must be true or false.")
    return value


def _seconds(key: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1 <= value <= MOST_SECONDS:
        raise _WrongValueError(f"'{key}' must be a number of seconds from 1 to {MOST_SECONDS:g}.")
    return float(value)


def _table(key: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _WrongValueError(f"'{key}' must be a table.")
    return cast("dict[str, Any]", value)


def _words(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not value or len(cast("list[object]", value)) > 100:
        raise _WrongValueError(f"'{key}' must be a list of texts.")
    return tuple(_text(key, one) for one in cast("list[object]", value))


def command_of(key: str, value: object) -> tuple[str, ...]:
    """Program and arguments of a line, as a shell would part them, or of a list."""
    if not isinstance(value, str):
        return _words(key, value)
    if "\0" in value or len(value) > LONGEST_COMMAND:
        raise _WrongValueError(f"'{key}' must be a program and its arguments.")
    try:
        words = tuple(shlex.split(value))
    except ValueError as error:
        raise _WrongValueError(f"'{key}' cannot be read: {error}.") from error
    if not words:
        raise _WrongValueError(f"'{key}' must be a program and its arguments.")
    return words


_CHECKS: Final[Mapping[str, tuple[str, Callable[[str, object], Any]]]] = {
    "command": ("command", command_of),
    "enabled": ("is_enabled", _flag),
    "timeout": ("timeout", _seconds),
    "options": ("options", _table),
    "settings": ("settings", _table),
    "roots": ("roots", _words),
    "role": ("role", _text),
    "ignore": ("passed_over", _words),
    "runs_project": ("runs_project", _flag),
}


def _tables(value: object, name: str, text: str, path: Path, notices: list[str]) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(cast("dict[str, object]", value)) > MOST_TABLES:
        notices.append(f"{path}:{line_of(text, name)}: '{name}' must be at most {MOST_TABLES} tables or entries.")
        return {}
    return cast("dict[str, object]", value)


def _line(text: str, heading: str) -> int:
    """The line of a heading; 1 where it is written another way."""
    wanted = heading.replace('"', "")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().replace('"', "").replace("'", "").startswith(f"[{wanted}]"):
            return number
    return 1
