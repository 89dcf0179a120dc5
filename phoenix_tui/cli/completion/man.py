"""The manual page, in roff."""

from __future__ import annotations

from collections.abc import Iterator

from phoenix_tui.cli.completion.tables import Argument, CommandTable, Option
from phoenix_tui.cli.names import VERSION

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
        escaped("phoenix - run many conversations with coding agents in one terminal"),
        ".SH SYNOPSIS",
        ".B phoenix",
        "[options] [PROMPT]",
        ".br",
        ".B phoenix",
        "COMMAND [options]",
        ".SH OPTIONS",
        *_arguments(own),
        *_options(own),
        ".SH COMMANDS",
        *(line for table in commands if not table.below for line in _command(table)),
        ".SH FILES",
        *_list(_FILES),
        ".SH EXIT STATUS",
        *_list(_EXITS),
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text of a line, with nothing in it that roff would take for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = "".join(sign if sign.isascii() else f"\\[u{ord(sign):04X}]" for sign in text)
    return f"\\&{text}" if text[:1] in {".", "'"} else text


def _list(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, meaning in rows:
        yield from (".TP", f"\\fB{escaped(name)}\\fR", escaped(meaning))


def _command(table: CommandTable) -> Iterator[str]:
    yield f".SS phoenix {escaped(' '.join(table.path))} {' '.join(map(_usage, table.arguments))}".rstrip()
    yield escaped(table.help)
    yield from _arguments(table)
    yield from _options(table)


def _usage(argument: Argument) -> str:
    return escaped(f"[{argument.value}]" if argument.optional else argument.value)


def _arguments(table: CommandTable) -> Iterator[str]:
    for argument in table.arguments:
        if argument.help:
            yield from (".TP", f"\\fI{escaped(argument.value)}\\fR", escaped(argument.help))


def _options(table: CommandTable) -> Iterator[str]:
    for group in table.groups:
        if group.heading:
            yield f".SS {escaped(group.heading.capitalize())}"
        for option in group.options:
            yield from (".TP", _heading(option), escaped(option.help))


def _heading(option: Option) -> str:
    flags = ", ".join(f"\\fB{escaped(flag)}\\fR" for flag in option.flags)
    if not option.value:
        return flags
    value = f"\\fI{escaped(option.value)}\\fR"
    return f"{flags} [{value}]" if option.optional else f"{flags} {value}"
