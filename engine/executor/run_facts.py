"""What is known of a run while it works."""

from __future__ import annotations

from msgspec import Struct, field

from engine.executor.loop_guard import LoopGuard
from engine.executor.requests import RunCaps


class RunFacts(Struct, eq=False):
    """What is known of the run under way beside its state."""

    started: float = 0.0
    """Monotonic."""
    caps: RunCaps = field(default_factory=RunCaps)
    cost_usd: float | None = 0.0
    agents_cost_usd: float | None = 0.0
    """Of sub-agents, while the run is the newest one."""
    told_of_budget: bool = False
    loop_guard: LoopGuard = field(default_factory=LoopGuard)
    files_note: str | None = None
    """What the model is told of files that went back ahead of it; None until the first request."""
    instructions: str | None = None
    """AGENTS.md as the first request found it (SPEC UNI-30)."""
