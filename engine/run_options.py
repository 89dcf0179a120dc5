"""Choices for the runs of a conversation: the permission mode, and the effort of its model."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum


class Effort(StrEnum):
    """Levels of effort, from none to the most that a model has."""

    DEFAULT = "default"
    """The request says nothing about it; the provider decides."""
    OFF = "off"
    """No reasoning, or the least where a model cannot be without."""
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    MAX = "max"


LEVELS = tuple(Effort)
"""Every level, in rising order after the default."""


def nearest(wanted: Effort, known: Sequence[Effort]) -> Effort:
    """The level that a model with the levels `known` is sent: `wanted`, else the next higher one, else its highest.

    A model without levels gets the default, and so does a wish for the default.
    """
    if wanted is Effort.DEFAULT or not known or wanted in known:
        return wanted if known else Effort.DEFAULT
    rising = [level for level in LEVELS if level in known]
    higher = (level for level in rising if LEVELS.index(level) > LEVELS.index(wanted))
    return next(higher, rising[-1])


class PermissionMode(StrEnum):
    """Modes of a conversation."""

    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    AUTO = "auto"
    PLAN = "plan"
    DENY = "deny"
