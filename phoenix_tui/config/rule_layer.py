"""A layer over the rules of a user: what a flag, a host or left-out files make of them in one process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.permissions.rules import KeptRule, RuleBook


class RuleLayer:
    """The rules of another book. A layer changes which count; kept rules and errors are those of the book."""

    def __init__(self, book: RuleBook) -> None:
        self._book = book

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """All rules in force."""
        return self._book.rules(folder)

    def trouble(self) -> str:
        """Error of reading the book, in one sentence; empty without one."""
        return self._book.trouble()

    def unreadable(self, folder: Path | None = None) -> str:
        """The file if rules that deny may stand in it and cannot be read, else an empty text."""
        return self._book.unreadable(folder)

    def add(self, rule: KeptRule) -> None:
        """Keep one more for the user. Raises OSError."""
        self._book.add(rule)

    def remove(self, rule: KeptRule) -> None:
        """Keep one of the user no longer. Raises OSError."""
        self._book.remove(rule)
