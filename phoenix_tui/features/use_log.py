"""Choices of the user, the last and the most frequent first, in a private file of the state folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from phoenix_tui.features.catalogue import BY_NAME
from tools.files.own_files import read_file, write_file

FILE: Final = "used.json"
MOST_USES: Final = 100
"""Choices that are kept; the one made longest ago goes first."""
MOST_BYTES: Final = 64 * 1024
COMMAND: Final = "command:"
"""Prefix of the key of a slash command."""


class Use(Struct, frozen=True, array_like=True):
    """One choice, and the number of times it was made."""

    key: str
    count: int


class UseLog:
    """Choices, newest first. Several Phoenix share the file: each change reads it again."""

    def __init__(self, state_folder: Path) -> None:
        self._path = state_folder / FILE
        self._uses: tuple[Use, ...] = ()

    def read(self) -> None:
        """Read the file; a damaged one counts as empty. Blocks."""
        try:
            uses = msgspec.json.decode(read_file(self._path, MOST_BYTES), type=tuple[Use, ...])
        except (OSError, msgspec.DecodeError):
            return
        self._uses = uses[:MOST_USES]

    def add(self, key: str) -> None:
        """Put a choice first; a folder that cannot be written forgets it with this process. Blocks."""
        self.read()
        count = next((one.count for one in self._uses if one.key == key), 0)
        others = (one for one in self._uses if one.key != key)
        self._uses = (Use(key, count + 1), *others)[:MOST_USES]
        try:
            write_file(self._path, msgspec.json.encode(self._uses).decode())
        except OSError:
            return

    @property
    def recent(self) -> list[str]:
        """Keys, newest first."""
        return [one.key for one in self._uses]

    @property
    def commands(self) -> list[str]:
        """Names of slash commands: the last used, then the most used."""
        uses = [one for one in self._uses if one.key.startswith(COMMAND)]
        by_count = sorted(uses[1:], key=lambda one: -one.count)
        return [one.key.removeprefix(COMMAND) for one in (*uses[:1], *by_count)]


def command_key(name: str) -> str:
    """Key of the listed command behind a name; empty for a hidden one that is no tab, and for an unknown one."""
    command = BY_NAME.get(name)
    if command is None or (command.shown_in and not command.tab):
        return ""
    return f"{COMMAND}{command.shown_in or name}"
