"""The turns of a conversation as rows of its table of contents."""

from __future__ import annotations

from msgspec import Struct


class TurnSummary(Struct, frozen=True):
    """One prompt and its effects."""

    seq: int
    words: str
    """First line, cut."""
    created_at: float
    tools: tuple[tuple[str, int], ...] = ()
    """Tool and number of its calls, the most called first."""
    failed: int = 0
    """Calls that ended in an error."""
    files: tuple[str, ...] = ()
    """Paths that edits changed, in order."""
    seconds: float = 0.0
    cost_usd: float | None = None
    """Cost of the turn; None where a price is unknown or nothing ran."""
    summary: str = ""
    """A model's, in a sentence or two; empty where none was made."""


class TurnDigest(Struct, frozen=True):
    """The newest turn, cut to the input of its summary."""

    number: int
    asked: str
    answered: str
    """Last text of the turn; empty without one."""
    tools: tuple[tuple[str, int], ...] = ()
    files: tuple[str, ...] = ()


class TurnNote(Struct, frozen=True):
    """A summary for one turn."""

    number: int
    text: str
