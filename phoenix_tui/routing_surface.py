"""What the screens need of a supervisor's decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.executor.requests import Receipt
    from engine.routes import RouteCard, RouteVerdict


class RoutingSurface(Protocol):
    """The decision that lies before the user of one conversation."""

    @property
    def card(self) -> RouteCard | None:
        """The open decision."""
        ...

    @property
    def why_alone(self) -> str:
        """Why no supervisor is asked here; empty where one is."""
        ...

    def answer(self, card_id: str, verdict: RouteVerdict) -> Receipt:
        """Start the agents, as decided or others, or let the main model answer alone."""
        ...

    def hold(self, card_id: str) -> Receipt:
        """Let it wait for an answer however long that takes."""
        ...
