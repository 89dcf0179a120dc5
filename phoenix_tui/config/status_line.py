"""`[status_line]` of the user's config.toml: a program whose first line is shown in a row of its own."""

from __future__ import annotations

from typing import Final, cast

from msgspec import Struct

from phoenix_tui.config.table_error import TableError

BOUNDS: Final = {"timeout_ms": (50, 10_000), "min_interval_ms": (100, 3_600_000), "padding": (0, 20)}
"""Least and most of each number."""
LONGEST_COMMAND: Final = 4096


class StatusLineSettings(Struct, frozen=True):
    """The program, and its limits."""

    command: str
    """Command line for `/bin/sh -c`."""
    timeout_ms: int = 1000
    min_interval_ms: int = 300
    """Least time between the starts of two runs."""
    padding: int = 0
    """Blank cells at the left."""


def status_line_of(table: object) -> StatusLineSettings:
    """The settings of a table.

    Raises:
        TableError: a key or a value is not allowed.
    """
    if not isinstance(table, dict):
        raise TableError("", "'status_line' must be a table [status_line].")
    found = dict(cast("dict[str, object]", table))
    command = found.pop("command", None)
    if not isinstance(command, str) or not command.strip() or len(command) > LONGEST_COMMAND or "\0" in command:
        raise TableError("command", "[status_line] needs 'command', a command line for /bin/sh.")
    numbers = {key: _number(key, value) for key, value in found.items()}
    return StatusLineSettings(command, **numbers)


def _number(key: str, value: object) -> int:
    if key not in BOUNDS:
        raise TableError(key, f"unknown key '{key}' in [status_line]. Valid keys are command, {', '.join(BOUNDS)}.")
    least, most = BOUNDS[key]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise TableError(key, f"'{key}' must be a whole number from {least} to {most}, not {value!r}.")
    return value
