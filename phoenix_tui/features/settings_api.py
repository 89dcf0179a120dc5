"""What the screens need of the settings, as a Protocol and the value that crosses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Setting(Struct, frozen=True):
    """One key of `config.toml` as it is in force."""

    name: str
    value: str
    """As it would be typed; empty for none."""
    source: str
    """`default`, a file with its line, a variable or a flag."""
    allowed: str
    meaning: str
    choices: tuple[str, ...] = ()
    live: bool = False
    """Whether a change counts at once; else from the next start."""
    words: str = ""
    """What the value means; empty where it says so itself."""


class SettingsApi(Protocol):
    """The settings of this start, read anew each time. Everything raises EngineError, which names file and line."""

    def all(self) -> Sequence[Setting]:
        """Every setting, in the order of the documentation."""
        ...

    def save(self, name: str, value: str) -> None:
        """Keep one key in the user's file; everything else in it stays as it is, comments too."""
        ...

    def reset(self, name: str) -> None:
        """Take one key out of the user's file."""
        ...
