"""The command line as tables, read from the parsers: the source of completion scripts and of the manual page."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from phoenix_tui.cli.completion.values import CONVERSATIONS, FILES, FOLDERS, MODELS, PROFILES
from phoenix_tui.cli.names import VERSION
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
class CompletedFlag:
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
class ArgumentGroup:
    """Options under one heading; an empty heading for those of a command."""

    heading: str
    options: tuple[CompletedFlag, ...]


@dataclass(frozen=True, slots=True)
class CommandTable:
    """One command; `path` is empty for `phoenix` itself."""

    path: tuple[str, ...]
    help: str
    groups: tuple[ArgumentGroup, ...]
    arguments: tuple[Argument, ...]
    below: tuple[tuple[str, str], ...] = ()
    """Commands below it with their help."""

    @property
    def options(self) -> tuple[CompletedFlag, ...]:
        """The options of all groups."""
        return tuple(option for group in self.groups for option in group.options)


def command_tables() -> tuple[CommandTable, ...]:
    """All commands, `phoenix` itself first."""
    commands = command_parser()
    own = run_parser()
    below = _list_below(commands)
    return (
        CommandTable((), own.description or "", _read_groups((), own), _read_arguments((), own), below),
        *(table for one in _walk_commands((), commands) for table in (one,) if table.path),
    )


def _walk_commands(path: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[CommandTable]:
    yield CommandTable(
        path, parser.description or "", _read_groups(path, parser), _read_arguments(path, parser), _list_below(parser)
    )
    for name, one in _subparsers(parser).items():
        yield from _walk_commands((*path, name), one)


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands below, by name."""
    for action in parser._actions:
        found: object = action.choices
        if isinstance(found, dict):
            return cast("dict[str, argparse.ArgumentParser]", found)
    return {}


def _list_below(parser: argparse.ArgumentParser) -> tuple[tuple[str, str], ...]:
    return tuple((name, (one.description or "").rstrip(".")) for name, one in _subparsers(parser).items())


def _read_groups(path: tuple[str, ...], parser: argparse.ArgumentParser) -> tuple[ArgumentGroup, ...]:
    found: list[ArgumentGroup] = []
    for group in parser._action_groups:
        options = tuple(_read_option(path, one) for one in group._group_actions if one.option_strings)
        if options:
            heading = "" if group.title in {"options", "positional arguments"} else group.title or ""
            found.append(ArgumentGroup(heading, options))
    return tuple(found)


def _read_option(path: tuple[str, ...], action: argparse.Action) -> CompletedFlag:
    flags = tuple(action.option_strings)
    help_text = "show this help and exit" if flags == ("-h", "--help") else action.help or ""
    if action.nargs == 0:
        return CompletedFlag(flags, help_text)
    return CompletedFlag(
        flags, help_text, _name_value(action), _find_kind(path, action), _list_choices(action), action.nargs == "?"
    )


def _read_arguments(path: tuple[str, ...], parser: argparse.ArgumentParser) -> tuple[Argument, ...]:
    return tuple(
        Argument(_name_value(one), one.help or "", _find_kind(path, one), _list_choices(one), one.nargs in {"?", "*"})
        for one in parser._actions
        if not one.option_strings and not isinstance(one.choices, dict)
    )


def _name_value(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return metavar or "|".join(_list_choices(action)) or action.dest.upper()


def _list_choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(str(one) for one in action.choices or ())


def _find_kind(path: tuple[str, ...], action: argparse.Action) -> str:
    if path == _DEFAULT_MODEL and action.dest == "name":
        return MODELS
    return "" if path in _NOT_BY_NAME else _KINDS.get(action.dest, "")


_FILES = (
    ("config.toml", "settings; `phoenix config show` lists them, `phoenix config path` prints the path"),
    ("keymap.toml", "keys"),
    ("themes/*.toml", "colours"),
    ("profiles/*.md", "agent profiles"),
)
_EXITS = (
    ("0", "success"),
    ("1", "the run failed"),
    ("2", "usage"),
    ("41", "credentials"),
    ("53", "a cap was reached"),
    ("75", "try again later"),
    ("130", "interrupted"),
    ("143", "terminated"),
)


def manual_page(tables: tuple[CommandTable, ...]) -> str:
    """The page `phoenix(1)`."""
    own, *commands = tables
    lines = [
        f'.TH PHOENIX 1 "" "phoenix {VERSION}" "User Commands"',
        ".SH NAME",
        escape_roff("phoenix - run many conversations with coding agents in one terminal"),
        ".SH SYNOPSIS",
        ".B phoenix",
        "[options] [PROMPT]",
        ".br",
        ".B phoenix",
        "COMMAND [options]",
        ".SH OPTIONS",
        *_argument_lines(own),
        *_option_lines(own),
        ".SH COMMANDS",
        *(line for table in commands if not table.below for line in _command_lines(table)),
        ".SH FILES",
        *_list_lines(_FILES),
        ".SH EXIT STATUS",
        *_list_lines(_EXITS),
    ]
    return "\n".join(lines) + "\n"


def escape_roff(text: str) -> str:
    """Text of a line, with nothing in it that roff would take for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = "".join(sign if sign.isascii() else f"\\[u{ord(sign):04X}]" for sign in text)
    return f"\\&{text}" if text[:1] in {".", "'"} else text


def _list_lines(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, meaning in rows:
        yield from (".TP", f"\\fB{escape_roff(name)}\\fR", escape_roff(meaning))


def _command_lines(table: CommandTable) -> Iterator[str]:
    yield f".SS phoenix {escape_roff(' '.join(table.path))} {' '.join(map(_usage, table.arguments))}".rstrip()
    yield escape_roff(table.help)
    yield from _argument_lines(table)
    yield from _option_lines(table)


def _usage(argument: Argument) -> str:
    return escape_roff(f"[{argument.value}]" if argument.optional else argument.value)


def _argument_lines(table: CommandTable) -> Iterator[str]:
    for argument in table.arguments:
        if argument.help:
            yield from (".TP", f"\\fI{escape_roff(argument.value)}\\fR", escape_roff(argument.help))


def _option_lines(table: CommandTable) -> Iterator[str]:
    for group in table.groups:
        if group.heading:
            yield f".SS {escape_roff(group.heading.capitalize())}"
        for option in group.options:
            yield from (".TP", _heading(option), escape_roff(option.help))


def _heading(option: CompletedFlag) -> str:
    flags = ", ".join(f"\\fB{escape_roff(flag)}\\fR" for flag in option.flags)
    if not option.value:
        return flags
    value = f"\\fI{escape_roff(option.value)}\\fR"
    return f"{flags} [{value}]" if option.optional else f"{flags} {value}"
