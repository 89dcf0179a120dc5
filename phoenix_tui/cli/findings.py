"""What the doctor says, a line at a time."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Health(StrEnum):
    """How a thing stands."""

    OK = "ok"
    NOTE = "note"
    """Something is missing that Phoenix can do without."""
    BAD = "bad"


class Finding(Struct, frozen=True):
    """One line of the report."""

    topic: str
    health: Health
    text: str
