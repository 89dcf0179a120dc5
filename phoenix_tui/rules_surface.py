"""What the screens need of the permission rules (`engine.rule_store`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.rule_store import ActiveRule


class RulesSurface(Protocol):
    """The stored rules and those of the open conversations. Changes raise EngineError, in one sentence."""

    def all(self) -> tuple[ActiveRule, ...]:
        """Those that hold everywhere, then by project, then by conversation."""
        ...

    def trouble(self) -> str:
        """What of the stored rules cannot be read; empty if nothing."""
        ...

    def problem(self, text: str) -> str:
        """Why this can be no rule; empty where it can."""
        ...

    def effect(self, text: str) -> str:
        """What it lets through; empty for what is no rule."""
        ...

    def add(self, rule: ActiveRule) -> None:
        """Let a checked rule hold."""
        ...

    def put_back(self, rule: ActiveRule) -> None:
        """Let hold again what was taken out."""
        ...

    def remove(self, rule: ActiveRule) -> None:
        """Let it hold no longer."""
        ...

    def move(self, old: ActiveRule, project: str) -> ActiveRule:
        """Let a stored rule hold in this project, or everywhere where that is empty."""
        ...

    def replace(self, old: ActiveRule, text: str) -> ActiveRule:
        """Another text, checked, for a rule."""
        ...
