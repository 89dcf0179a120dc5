"""Findings of the doctor, a line each."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Health(StrEnum):
    """Result of a check."""

    OK = "ok"
    NOTE = "note"
    """An optional part is missing."""
    BAD = "bad"


class Finding(Struct, frozen=True):
    """One line of the report."""

    topic: str
    health: Health
    text: str
