"""Identifiers."""

from __future__ import annotations

from typing import Protocol


class Ids(Protocol):
    """Fresh identifiers."""

    def new(self) -> str:
        """A UUID4 as text."""
        ...
