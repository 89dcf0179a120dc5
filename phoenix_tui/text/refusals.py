"""Refusals of the engine in the keys of the screen."""

from __future__ import annotations

from engine.machine.texts import BUSY
from phoenix_tui.keys.active_keys import hint


def in_keys(reason: str) -> str:
    """A refusal as the screen says it: of one that the agent is busy, the ways out by their keys."""
    if reason != BUSY:
        return reason
    ways = hint(("complete", "queues your message"), ("steer", "gives it to the running turn"), ("stop", "stops"))
    return f"Still working: {ways}"
