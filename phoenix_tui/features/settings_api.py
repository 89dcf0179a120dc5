"""Interface of the settings for the screens, as a Protocol and the value that crosses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Setting(Struct, frozen=True):
    """One key of `config.toml` as it is in force."""

    name: str
    value: str
    """Value as typed; empty for none."""
    source: str
    """`default`, a file with its line, a variable or a flag."""
    allowed: str
    meaning: str
    choices: tuple[str, ...] = ()
    live: bool = False
    """True when a change applies at once; else from the next start."""
    words: str = ""
    """Meaning of the value; empty when the value is clear itself."""


class SettingsApi(Protocol):
    """The settings of this start, read each time. Every method raises EngineError, which names file and line."""

    def all(self) -> Sequence[Setting]:
        """Every setting, in the order of the documentation."""
        ...

    def save(self, name: str, value: str) -> None:
        """Keep one key in the user's file; everything else in it stays as it is, comments too."""
        ...

    def reset(self, name: str) -> None:
        """Take one key out of the user's file."""
        ...
