"""What is asked of a conversation from outside, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request was taken; `message_id` is empty where it stores no message."""

    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request changed nothing, for this reason."""

    reason: str


Receipt: TypeAlias = Accepted | Refused


@dataclass(frozen=True, slots=True)
class RunCaps:
    """Limits of one run; 0 means none."""

    max_turns: int = 0
    """Model replies."""
    max_budget_usd: float = 0.0
    timeout: float = 0.0
    """Seconds of wall time."""


class Choice(StrEnum):
    """The answers to an approval (CONTRACT 6)."""

    ONCE = "once"
    CONVERSATION = "conversation"
    ALWAYS = "always"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's answer; `rule` replaces the suggested one for conversation and always."""

    choice: Choice
    reason: str = ""
    rule: str = ""
