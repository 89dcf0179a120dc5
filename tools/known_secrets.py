"""Secrets that settings name: variables that hold keys under any name, and values of definitions.

They hold for the whole process, as its environment does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

SHORTEST: Final = 8
"""Characters of the shortest value that counts: a shorter one would blot ordinary words."""
LONGEST: Final = 16_384
"""Characters of the longest one."""
MOST: Final = 1_000
"""Values that are kept."""


class KnownSecrets:
    """Names of variables that no other program gets, and values that no log contains."""

    __slots__ = ("_names", "_values")

    def __init__(self) -> None:
        self._names = frozenset[str]()
        self._values = frozenset[str]()

    def add_names(self, names: Iterable[str]) -> None:
        """Treat these environment variables as keys; empty names are ignored."""
        self._names |= {name for name in names if name}

    def add_value(self, value: str) -> None:
        """Keep a value out of logs, reports and notes."""
        if SHORTEST <= len(value) <= LONGEST and len(self._values) < MOST:
            self._values |= {value}

    def has_name(self, name: str) -> bool:
        """True for a variable that the settings name as one of a key."""
        return name in self._names

    def values(self, environment: Mapping[str, str]) -> frozenset[str]:
        """The values known by now: those that were added, and those of the named variables."""
        return self._values | {environment[name] for name in self._names if environment.get(name)}

    def forget(self) -> None:
        """Take out everything, as between two tests in one process."""
        self._names, self._values = frozenset[str](), frozenset[str]()


SECRETS: Final = KnownSecrets()
"""Secrets of this process."""
