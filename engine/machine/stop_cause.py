"""Causes of the cancel of a run."""

from __future__ import annotations

from enum import StrEnum


class StopCause(StrEnum):
    """Origin of a cancel."""

    USER = "user"
    """Esc, in the process that has the conversation."""
    OUTSIDE = "outside"
    """A request of another process (SPEC SDK-11)."""
    TIME_LIMIT = "time_limit"
    ENDING = "ending"
    """Phoenix ends: by a signal, with its terminal or client, or while it worked. No one stopped the run, so it reads
    as after a crash and can be resumed (SPEC STM-10).
    """
