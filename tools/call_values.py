"""Values of calls that states and settings share: the end of a sub-agent, and the limits of a sandbox (CONTRACT 6)."""

from __future__ import annotations

from enum import StrEnum

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


class SandboxMode(StrEnum):
    """Kinds of limits of a call."""

    OFF = "off"
    WORKSPACE = "workspace"
    READ_ONLY = "read-only"
