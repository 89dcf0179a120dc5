"""Rate limits of a model, as its provider or the configuration states them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Unit(StrEnum):
    """The quantity that a limit counts."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    """Input and output together."""
    INPUT = "input tokens"
    OUTPUT = "output tokens"


class RateLimit(Struct, frozen=True):
    """The most that a model takes in a minute."""

    unit: Unit
    limit: int
    """Limit, at least 1."""
    remaining: int | None = None
    """The part that is unused; None where only the limit is known."""
    full_in: float | None = None
    """Seconds, from 0 to 60, until all of it is unused again; None where unknown."""
    counts_cached: bool = True
    """False where input read from the provider's cache is free of the limit, as it is at Anthropic."""


class LimitsTold(Struct, frozen=True):
    """The limits in the head of an answer; the first item of its stream."""

    limits: tuple[RateLimit, ...]
