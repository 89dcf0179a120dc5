"""The command line as tables, read from the parsers: the one source of completion scripts and manual page."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from phoenix_tui.cli.completion.kinds import CONVERSATIONS, FILES, FOLDERS, MODELS, PROFILES
from phoenix_tui.cli.parser import command_parser, run_parser

_KINDS = {
    "model": MODELS,
    "profile": PROFILES,
    "resume": CONVERSATIONS,
    "conversation": CONVERSATIONS,
    "reference": CONVERSATIONS,
    "cwd": FOLDERS,
    "images": FILES,
    "output": FILES,
    "bundle": FILES,
    "file": FILES,
}
"""Kind of a value, by the name under which the parser keeps it."""
_NOT_BY_NAME = {("runs", "show"), ("runs", "wait"), ("runs", "cancel")}
"""Commands whose reference is an id."""
_DEFAULT_MODEL = ("model", "use")


@dataclass(frozen=True, slots=True)
class Option:
    """One option; `value` is empty for a switch, else the name of its value."""

    flags: tuple[str, ...]
    help: str
    value: str = ""
    kind: str = ""
    """Empty where nothing can be proposed."""
    choices: tuple[str, ...] = ()
    optional: bool = False
    """True where the value may be left out."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument without a flag."""

    value: str
    help: str
    kind: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Options under one heading; an empty heading for those of a command."""

    heading: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class CommandTable:
    """One command; `path` is empty for `phoenix` itself."""

    path: tuple[str, ...]
    help: str
    groups: tuple[Group, ...]
    arguments: tuple[Argument, ...]
    below: tuple[tuple[str, str], ...] = ()
    """Commands below it with their help."""

    @property
    def options(self) -> tuple[Option, ...]:
        """The options of all groups."""
        return tuple(option for group in self.groups for option in group.options)


def command_tables() -> tuple[CommandTable, ...]:
    """All commands, `phoenix` itself first."""
    commands = command_parser()
    own = run_parser()
    below = _below(commands)
    return (
        CommandTable((), own.description or "", _groups((), own), _arguments((), own), below),
        *(table for one in _walk((), commands) for table in (one,) if table.path),
    )


def _walk(path: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[CommandTable]:
    yield CommandTable(path, parser.description or "", _groups(path, parser), _arguments(path, parser), _below(parser))
    for name, one in _subparsers(parser).items():
        yield from _walk((*path, name), one)


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands below, by name."""
    for action in parser._actions:
        found: object = action.choices
        if isinstance(found, dict):
            return cast("dict[str, argparse.ArgumentParser]", found)
    return {}


def _below(parser: argparse.ArgumentParser) -> tuple[tuple[str, str], ...]:
    return tuple((name, (one.description or "").rstrip(".")) for name, one in _subparsers(parser).items())


def _groups(path: tuple[str, ...], parser: argparse.ArgumentParser) -> tuple[Group, ...]:
    found: list[Group] = []
    for group in parser._action_groups:
        options = tuple(_option(path, one) for one in group._group_actions if one.option_strings)
        if options:
            heading = "" if group.title in {"options", "positional arguments"} else group.title or ""
            found.append(Group(heading, options))
    return tuple(found)


def _option(path: tuple[str, ...], action: argparse.Action) -> Option:
    flags = tuple(action.option_strings)
    help_text = "show this help and exit" if flags == ("-h", "--help") else action.help or ""
    if action.nargs == 0:
        return Option(flags, help_text)
    return Option(flags, help_text, _value(action), _kind(path, action), _choices(action), action.nargs == "?")


def _arguments(path: tuple[str, ...], parser: argparse.ArgumentParser) -> tuple[Argument, ...]:
    return tuple(
        Argument(_value(one), one.help or "", _kind(path, one), _choices(one), one.nargs in {"?", "*"})
        for one in parser._actions
        if not one.option_strings and not isinstance(one.choices, dict)
    )


def _value(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return metavar or "|".join(_choices(action)) or action.dest.upper()


def _choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(str(one) for one in action.choices or ())


def _kind(path: tuple[str, ...], action: argparse.Action) -> str:
    if path == _DEFAULT_MODEL and action.dest == "name":
        return MODELS
    return "" if path in _NOT_BY_NAME else _KINDS.get(action.dest, "")
