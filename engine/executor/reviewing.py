"""Review of a summary by the user before it takes effect, and the possible decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct


class Proposal(Struct, frozen=True):
    """A summary that waits for the user; nothing is changed yet."""

    summary: str
    """Text as the model would read it; from outside."""
    summarized: int
    """Number of messages it would replace."""
    kept: int
    """Messages that stay as they are."""
    sizes: str
    """Tokens before and after, and the cost."""
    problem: str = ""
    """Reason why the last decision could not be carried out; else empty."""


class TakeSummary(Struct, frozen=True):
    """Put this in the place of the older messages: the summary as it was proposed, or changed."""

    text: str


class SummarizeAgain(Struct, frozen=True):
    """Make another one; `hint` names the most important subjects."""

    hint: str


class DropSummary(Struct, frozen=True):
    """Leave everything as it is."""


Verdict: TypeAlias = TakeSummary | SummarizeAgain | DropSummary
Review: TypeAlias = Callable[[Proposal], Awaitable[Verdict]]
"""Callback that shows a summary and returns the user's decision, without a time limit."""
