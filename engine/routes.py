"""Decision of the supervisor about a message: who answers, its certainty, and the user's choice."""

from __future__ import annotations

import asyncio
from typing import Final, TypeAlias

from msgspec import Struct

from engine.machine.effects import Strategy
from engine.records import RunPriority

MOST_TASKS: Final = 10
"""Tasks of one call (SPEC REQ-SA)."""
PARALLEL, SEQUENTIAL = Strategy.PARALLEL.value, Strategy.SEQUENTIAL.value
"""Orders in which the sub-agents of a call work."""


class RouteAgent(Struct, frozen=True):
    """One sub-agent of a decision."""

    profile: str
    task: str
    priority: RunPriority = RunPriority.NORMAL


class Route(Struct, frozen=True):
    """A decision that makes sense (SPEC SDK-09); texts are a model's."""

    strategy: Strategy = Strategy.SINGLE
    agents: tuple[RouteAgent, ...] = ()
    """Empty where the main model answers alone."""
    reasoning: str = ""
    confidence: float = 0.0
    """0 to 1."""
    fallback: str = ""
    """Reason why the main model answers alone, when no other decision was possible; else empty."""


class RouteCard(Struct, frozen=True):
    """A decision that can be overruled; nothing has been started yet."""

    id: str
    route: Route
    starts_at: float
    """Monotonic time at which it starts by itself; 0: it waits for the user."""


class StartAgents(Struct, frozen=True):
    """Start these; empty: as they were decided."""

    agents: tuple[RouteAgent, ...] = ()


class AnswerAlone(Struct, frozen=True):
    """The main model answers without them."""


RouteVerdict: TypeAlias = StartAgents | AnswerAlone


class RouteOffer(Struct, eq=False):
    """A decision shown to the user."""

    card: RouteCard
    verdict: asyncio.Future[RouteVerdict]
    timer: asyncio.TimerHandle | None = None
