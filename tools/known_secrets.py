"""Secrets: values and fields that are kept out of logs, tracebacks and environments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

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


class SecretFields:
    """Goes ahead of `Struct`: the repr names no field of `HIDDEN`. A dataclass with `repr=False` takes 1 ms to make."""

    __slots__ = ()
    __struct_fields__: ClassVar[tuple[str, ...]]
    HIDDEN: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Name and value of each field that may be shown."""
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name not in self.HIDDEN]
