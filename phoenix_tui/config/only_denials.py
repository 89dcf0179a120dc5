"""Rules of a user whose files do not count in a run."""

from __future__ import annotations

from collections.abc import Sequence

from engine.permissions.denials import DENY
from engine.permissions.rules import KeptRule, RuleBook


class OnlyDenials:
    """The user's rules where their files do not count: those that deny still hold, those that allow do not."""

    def __init__(self, base: RuleBook) -> None:
        self._base = base

    def rules(self) -> Sequence[KeptRule]:
        """The rules that deny."""
        return [one for one in self._base.rules() if one.text.startswith(DENY)]

    def trouble(self) -> str:
        """Error of reading them."""
        return self._base.trouble()

    def unreadable(self) -> str:
        """The file, if rules that deny may stand in it and cannot be read."""
        return self._base.unreadable()

    def add(self, rule: KeptRule) -> None:
        """Keep one for the user. Raises OSError."""
        self._base.add(rule)

    def remove(self, rule: KeptRule) -> None:
        """Keep one no longer. Raises OSError."""
        self._base.remove(rule)
