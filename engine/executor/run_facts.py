"""Facts about a working run."""

from __future__ import annotations

from msgspec import Struct, field

from engine.executor.loop_guard import LoopGuard
from engine.executor.requests import RunCaps


class RunFacts(Struct, eq=False):
    """Facts about the current run besides its state."""

    started: float = 0.0
    """Monotonic."""
    caps: RunCaps = field(default_factory=RunCaps)
    cost_usd: float | None = 0.0
    agents_cost_usd: float | None = 0.0
    """Cost of sub-agents, while the run is the newest one."""
    told_of_budget: bool = False
    loop_guard: LoopGuard = field(default_factory=LoopGuard)
    files_note: str | None = None
    """Note for the model about files that were rewound before it; None until the first request."""
    instructions: str | None = None
    """AGENTS.md as the first request found it (SPEC UNI-30)."""
