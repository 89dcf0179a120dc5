"""Rules of a user whose files do not count in a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.permissions.denials import narrows
from engine.permissions.rules import KeptRule
from phoenix_tui.config.rule_layer import RuleLayer


class OnlyDenials(RuleLayer):
    """The user's rules where their files do not count: those that deny still hold, those that allow do not."""

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """The rules that deny or ask."""
        return [one for one in super().rules(folder) if narrows(one.text)]
