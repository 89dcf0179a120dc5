"""Rate limits in the headers of an answer. Pure; what cannot be read is left out.

Anthropic sends `anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}` with an
RFC 3339 time, OpenAI, Azure and Groq `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` with a duration such as
`6m0s`, Cerebras and Mistral the same names with `-minute` behind them and plain seconds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from engine.ports import RateLimit, Unit
from engine.providers.bounds import MOST_TOKENS, seconds_until_date

LONGEST_RESET: Final = 60.0
"""Seconds. A limit that takes longer to fill up is one of an hour or a day, for which no call waits."""
LONGEST_VALUE: Final = 64
"""Characters of a header."""
FIRST_EPOCH: Final = 1e9
"""A number from here on is a time since 1970, in seconds or, from 1e12 on, in milliseconds."""
_ANTHROPIC: Final = {
    Unit.REQUESTS: "requests",
    Unit.TOKENS: "tokens",
    Unit.INPUT: "input-tokens",
    Unit.OUTPUT: "output-tokens",
}
_OPENAI: Final = {Unit.REQUESTS: "requests", Unit.TOKENS: "tokens"}
_COUNT: Final = re.compile(r"\d{1,15}", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_DURATION: Final = re.compile(
    r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,9})ms)?"
)
_SECONDS: Final = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


def limits_in(headers: Mapping[str, str], now: float | None = None) -> tuple[RateLimit, ...]:
    """The limits that `headers`, named in lower case, state; `now` is the server's time since 1970."""
    if now is None:
        date = headers.get("date", "")[:LONGEST_VALUE]
        now = time.time() + (seconds_until_date(date) if date else 0.0)
    found = [
        _read(headers, unit, f"anthropic-ratelimit-{name}-{{}}", now, counts_cached=False)
        for unit, name in _ANTHROPIC.items()
    ]
    for unit, name in _OPENAI.items():
        for tail in ("", "-minute"):
            found.append(_read(headers, unit, f"x-ratelimit-{{}}-{name}{tail}", now, counts_cached=True))
    limits = {limit.unit: limit for limit in reversed(found) if limit is not None}
    if Unit.INPUT in limits and Unit.OUTPUT in limits:
        limits.pop(Unit.TOKENS, None)  # Anthropic repeats whichever of the two is closer
    return tuple(limits.values())


def set_limits(tokens: int, requests: int, *, counts_cached: bool) -> tuple[RateLimit, ...]:
    """The limits that a configuration sets; 0 for none."""
    wanted = ((Unit.TOKENS, tokens), (Unit.REQUESTS, requests))
    return tuple(RateLimit(unit, most, counts_cached=counts_cached) for unit, most in wanted if most)


def _read(headers: Mapping[str, str], unit: Unit, name: str, now: float, *, counts_cached: bool) -> RateLimit | None:
    limit = _count(headers.get(name.format("limit"), ""))
    if not limit:
        return None
    remaining = _count(headers.get(name.format("remaining"), ""))
    full_in = seconds_until(headers.get(name.format("reset"), ""), now)
    if full_in is not None and full_in > LONGEST_RESET + 1:
        remaining = full_in = None
    full_in = None if full_in is None else min(full_in, LONGEST_RESET)
    return RateLimit(unit, limit, None if remaining is None else min(remaining, limit), full_in, counts_cached)


def _count(text: str) -> int | None:
    text = text[:LONGEST_VALUE].strip()
    return min(int(text), MOST_TOKENS) if _COUNT.fullmatch(text) else None


def seconds_until(text: str, now: float) -> float | None:
    """Seconds that a duration, a number or a time names; never negative, None where it is none of them."""
    text = text[:LONGEST_VALUE].strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        epoch = number / 1000 if number >= FIRST_EPOCH * 1000 else number
        return max(epoch - now, 0.0) if number >= FIRST_EPOCH else number
    if text and (parts := _DURATION.fullmatch(text)):
        return sum(float(part) * size for part, size in zip(parts.groups(), _SECONDS, strict=True) if part)
    return _until_time(text, now) if _TIME.fullmatch(text) else None


def _until_time(text: str, now: float) -> float | None:
    whole_second = 0.0 if "." in text else 1.0  # which may have been cut, not rounded
    try:
        return max(datetime.fromisoformat(text.upper()).timestamp() + whole_second - now, 0.0)
    except (ValueError, OverflowError):
        return None
