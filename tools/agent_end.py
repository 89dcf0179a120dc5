"""Ends of sub-agents, as the call that made them tells model and screen."""

from __future__ import annotations

from msgspec import Struct


class AgentEnd(Struct, frozen=True):
    """End of one sub-agent of a call; `status` is that of its outcome."""

    id: str
    task: str
    status: str
    reason: str = ""
    """Reason of a failure; empty for a success."""
    text: str = ""
    """The beginning of what it found, or had written."""
    turns: int = 0
    seconds: float = 0.0
