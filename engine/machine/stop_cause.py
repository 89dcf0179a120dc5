"""Causes of the cancel of a run."""

from __future__ import annotations

from enum import StrEnum


class StopCause(StrEnum):
    """Origin of a cancel; the outcome is the same for all."""

    USER = "user"
    """Esc, in the process that has the conversation."""
    OUTSIDE = "outside"
    """A request of another process (SPEC SDK-11)."""
    TIME_LIMIT = "time_limit"
