"""Rate limits in the headers of answers: the words of each provider, and headers that mean harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ports import RateLimit, Unit
from engine.providers.http import LONGEST_RESET, limits_in, seconds_until

NOW = 1_795_000_000.0  # 2026-11-18T11:06:40Z


def test_the_limits_of_anthropic_are_read_and_input_from_the_cache_is_free() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-11-18T11:06:41Z",
        "anthropic-ratelimit-tokens-limit": "38000",
        "anthropic-ratelimit-tokens-remaining": "20000",
        "anthropic-ratelimit-input-tokens-limit": "30000",
        "anthropic-ratelimit-input-tokens-remaining": "12000",
        "anthropic-ratelimit-input-tokens-reset": "2026-11-18T12:07:10.500+01:00",
        "anthropic-ratelimit-output-tokens-limit": "8000",
        "anthropic-ratelimit-output-tokens-remaining": "8000",
        "anthropic-ratelimit-output-tokens-reset": "2026-11-18T11:06:40Z",
    }
    assert {limit.unit: limit for limit in limits_in(headers, NOW)} == {
        Unit.REQUESTS: RateLimit(Unit.REQUESTS, 50, 49, 2.0, counts_cached=False),
        Unit.INPUT: RateLimit(Unit.INPUT, 30_000, 12_000, 30.5, counts_cached=False),
        Unit.OUTPUT: RateLimit(Unit.OUTPUT, 8_000, 8_000, 1.0, counts_cached=False),
    }


@pytest.mark.parametrize("tail", ["", "-minute"])
def test_the_limits_of_openai_and_of_those_that_follow_it_are_read(tail: str) -> None:
    headers = {
        f"x-ratelimit-limit-tokens{tail}": "60000",
        f"x-ratelimit-remaining-tokens{tail}": "50",
        f"x-ratelimit-reset-tokens{tail}": "26.5",
        f"x-ratelimit-limit-requests{tail}": "500",
    }
    assert {limit.unit: limit for limit in limits_in(headers, NOW)} == {
        Unit.TOKENS: RateLimit(Unit.TOKENS, 60_000, 50, 26.5),
        Unit.REQUESTS: RateLimit(Unit.REQUESTS, 500),
    }


def test_a_limit_of_a_day_keeps_no_call_back() -> None:
    headers = {
        "x-ratelimit-limit-requests": "14400",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "2m59.56s",
    }
    assert limits_in(headers, NOW) == (RateLimit(Unit.REQUESTS, 14_400),)


def test_the_clock_of_the_server_counts_where_it_tells_it() -> None:
    headers = {
        "date": "Wed, 18 Nov 2020 11:06:40 GMT",
        "anthropic-ratelimit-tokens-limit": "1000",
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-tokens-reset": "2020-11-18T11:07:00Z",
    }
    (limit,) = limits_in(headers)
    assert limit.full_in == pytest.approx(21.0, abs=0.5)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20ms", 0.02),
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("2m59.56s", 179.56),
        ("1h1m1.5s", 3_661.5),
        ("1d", 86_400.0),
        ("26.5", 26.5),
        ("1795000007", 7.0),
        ("1795000007000", 7.0),
        ("2026-11-18T11:06:39Z", 0.0),
        ("2020-01-01T00:00:00Z", 0.0),
        ("0001-01-01T00:00:00+23:59", 0.0),
        ("9999-12-31T23:59:59-23:59", 251_607_387_140.0),
        *(
            (text, None)
            for text in (
                *("", "  ", "-1", "-5s", "nan", "NaN", "inf", "-inf", "1e9", "soon", "1x", "s", "ms", "m s", "1 s"),
                *("2026-13-45T99:99:99Z", "0000-00-00T00:00:00Z", "Wed, 18 Nov 2026 11:06:40 GMT", "9" * 64),
                *("１２", "1s1s", "2026-11-18T11:06:40"),
            )
        ),
    ],
)
def test_a_reset_is_read_in_every_notation_and_nothing_else_is(text: str, seconds: float | None) -> None:
    assert seconds_until(text, NOW) == (seconds if seconds is None else pytest.approx(seconds))


HOSTILE = st.one_of(
    st.sampled_from(["", "0", "-1", "NaN", "inf", "1e308", "9" * 15, "9" * 4_000, "1.5", "0x10", "1s" * 2_000]),
    st.sampled_from(["9" * 9 + "d", "2999-01-01T00:00:00Z", "1" * 64, "0" * 64, "\x00", "4 000", "4,000"]),
    st.text(max_size=80),
    st.integers().map(str),
    st.floats().map(str),
)
NAMES = [
    name
    for what in ("limit", "remaining", "reset")
    for name in (
        *(f"anthropic-ratelimit-{unit}-{what}" for unit in ("requests", "tokens", "input-tokens", "output-tokens")),
        *(f"x-ratelimit-{what}-{unit}" for unit in ("requests", "tokens", "tokens-minute", "requests-minute")),
    )
]


@given(st.dictionaries(st.sampled_from([*NAMES, "date"]), HOSTILE))
def test_hostile_headers_give_plausible_limits_or_none(headers: dict[str, str]) -> None:
    for limit in limits_in(headers):
        assert limit.limit >= 1
        assert limit.remaining is None or 0 <= limit.remaining <= limit.limit
        assert limit.full_in is None or 0.0 <= limit.full_in <= LONGEST_RESET
