"""Record of a run that has ended or is under way (SPEC SDK-08)."""

from __future__ import annotations

from msgspec import Struct

from engine.machine.effects import Strategy
from engine.machine.messages import Usage


class ModelUsage(Struct, frozen=True):
    """Usage of one model; `cost_usd` is None where a price is unknown."""

    model: str
    usage: Usage
    cost_usd: float | None
    requests: int


class RunAgents(Struct, frozen=True):
    """Results of a run's sub-agents in their own runs; not part of the run's own figures."""

    count: int
    succeeded: int
    tokens: int
    """Read and written, those of a cache too."""
    cost_usd: float | None
    artifacts: tuple[str, ...] = ()


class RunRecord(Struct, frozen=True):
    """One run."""

    id: str
    type: str
    """Kind of run: general, or the purpose of its agent (SPEC SDK-07)."""
    prompt: str
    """The beginning of the message that began it."""
    strategy: Strategy
    decision_json: str
    """Decision of the supervisor; empty where none was asked."""
    status: str
    error: str
    artifacts: tuple[str, ...]
    """Files that edits of the run wrote."""
    usage: Usage
    by_model: tuple[ModelUsage, ...]
    cost_usd: float | None
    iterations: int
    """Model calls."""
    started_at: float
    seconds: float
    """0 while it runs."""
    agents: RunAgents | None = None
