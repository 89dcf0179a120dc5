"""Limits of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from engine.run_options import Effort

if TYPE_CHECKING:
    from engine.permissions.rules import Rule


class RunCaps(Struct, frozen=True):
    """Limits of one run, where 0 means none, and its id."""

    max_turns: int = 0
    """Model replies."""
    max_budget_usd: float = 0.0
    timeout: float = 0.0
    """Seconds of wall time."""
    run_id: str = ""
    """Unused id for the run, chosen by the caller (SPEC SDK-03); empty: made here."""
    agreed: str = ""
    """Key of the `NeedsYes` that the user agreed to."""
    expands: bool = True
    """False: `/name` at the beginning calls nothing."""
    rules: tuple[Rule, ...] = ()
    """Rules of a called command that count until the run ends."""
    model: str = ""
    """Model for this run alone; empty: that of the conversation."""
    effort: Effort = Effort.DEFAULT
    """Effort for this run alone; the default: that of the conversation."""
