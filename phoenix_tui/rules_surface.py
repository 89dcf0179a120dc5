"""What the screens need of the permission rules (`engine.rule_desk`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.rule_desk import Standing


class RulesSurface(Protocol):
    """The rules for good and those of the open conversations. Changes raise EngineError, in one sentence."""

    def all(self) -> tuple[Standing, ...]:
        """Those for good first."""
        ...

    def trouble(self) -> str:
        """Why no rule for good counts now; empty while they do."""
        ...

    def problem(self, text: str) -> str:
        """Why this can be no rule; empty where it can."""
        ...

    def effect(self, text: str) -> str:
        """What it lets through; empty for what is no rule."""
        ...

    def add(self, rule: Standing) -> None:
        """Let a checked rule hold."""
        ...

    def put_back(self, rule: Standing) -> None:
        """Let hold again what was taken out."""
        ...

    def remove(self, rule: Standing) -> None:
        """Let it hold no longer."""
        ...

    def replace(self, old: Standing, text: str) -> Standing:
        """Another text, checked, for a rule."""
        ...
