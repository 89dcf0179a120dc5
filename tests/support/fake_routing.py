"""A supervisor's desk without an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from engine.executor.requests import Accepted, Receipt, Refused
from engine.updates import RouteCard, Routed, RouteVerdict, Update


@dataclass
class FakeRouting:
    """Keeps what was answered; `offer` shows a decision."""

    play: Callable[[Update], None]
    card: RouteCard | None = None
    why_alone: str = ""
    answers: list[RouteVerdict] = field(default_factory=list)
    refusal: str = ""

    def offer(self, card: RouteCard | None) -> None:
        self.card = card
        self.play(Routed(card))

    def answer(self, card_id: str, verdict: RouteVerdict) -> Receipt:
        if self.refusal or self.card is None or self.card.id != card_id:
            return Refused(self.refusal or "This decision is no longer open.")
        self.answers.append(verdict)
        self.offer(None)
        return Accepted()

    def hold(self, card_id: str) -> Receipt:
        if self.card is None or self.card.id != card_id:
            return Refused("This decision is no longer open.")
        self.offer(replace(self.card, starts_at=0.0))
        return Accepted()
