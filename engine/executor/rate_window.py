"""Start times of calls, so that no minute holds more of them than the limits of their model allow. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil
from operator import itemgetter
from typing import TypeAlias

from msgspec import Struct

from engine.ports import RateLimit, Unit

WINDOW = 60.0
"""Seconds for which a limit counts."""
SLACK = 1.0
"""Seconds by which a request may reach its server later than another that took as long to send."""


class PacedCall(Struct, eq=False):
    """One call of a model: an estimate of its tokens, then what its provider counted."""

    model: str
    fresh: int = 0
    """Input tokens that are not read from the provider's cache."""
    cached: int = 0
    output: int = 0
    estimate: int = 0
    """Input tokens, guessed from the size of the request."""
    margin: float = 1.0
    """Scales this call's need of a limit while it waits."""
    came: float = 0.0
    """Monotonic, as every time here."""
    earliest: float = 0.0
    began: float | None = None
    """Start of the call; None while it waits."""
    ended: float | None = None

    def amount(self, limit: RateLimit) -> int:
        """The part of `limit` that it takes."""
        into = self.fresh + (self.cached if limit.counts_cached else 0)
        match limit.unit:
            case Unit.REQUESTS:
                return 1
            case Unit.TOKENS:
                return into + self.output
            case Unit.INPUT:
                return into
            case Unit.OUTPUT:
                return self.output


_Placed: TypeAlias = tuple[float, PacedCall]
"""A call and the time at which it began or is going to."""


class KnownLimit(Struct, frozen=True):
    """A limit, and when it was stated."""

    limit: RateLimit
    at: float
    by_refusal: bool = False
    """True where only the refusal of a call stated it."""


def start_of(call: PacedCall, calls: Sequence[PacedCall], limits: Collection[KnownLimit], now: float) -> float:
    """The time at which `call`, one of `calls` that wait or began, may begin; it overtakes none that came earlier.

    Never later than a minute and `SLACK` after the last of those ahead of it began, or a limit was stated.
    """
    placed = sorted(((one.began, one) for one in calls if one.began is not None), key=itemgetter(0))
    start = now
    for one in calls:
        if one.began is None:
            start = max([start, one.earliest, *(_free_at(known, one, placed, now) for known in limits)])
            placed.append((start, one))
        if one is call:
            break
    return start


def _free_at(known: KnownLimit, call: PacedCall, placed: Sequence[_Placed], now: float) -> float:
    """The time from which one limit has room for `call` behind those that are `placed`, which are in order."""
    limit = known.limit
    needed = min(ceil(call.amount(limit) * call.margin), limit.limit)
    ahead = [(start, one.amount(limit)) for start, one in placed if start > now - WINDOW - SLACK]
    taken, free = sum(amount for _, amount in ahead), now
    for start, amount in ahead:
        if taken + needed <= limit.limit:
            break
        taken, free = taken - amount, start + WINDOW + SLACK
    later = _uncounted(known, placed)
    full = WINDOW if limit.full_in is None else limit.full_in + later * WINDOW / limit.limit
    latest = max([known.at, *(start for start, _ in ahead[-1:])]) + WINDOW
    if limit.full_in is not None:
        free = min(free, known.at + full)
    if limit.remaining is not None and now < known.at + WINDOW and limit.remaining - later < needed:
        free = max(free, min(known.at + full, latest))
    return free


def _uncounted(known: KnownLimit, placed: Sequence[_Placed]) -> int:
    """The use since a limit was stated: calls that began later, and answers that were still being written."""
    limit, total = known.limit, 0
    for start, call in placed:
        if start > known.at:
            total += call.amount(limit)
        elif limit.unit in {Unit.TOKENS, Unit.OUTPUT} and (call.ended is None or call.ended > known.at):
            total += call.output
    return total
