"""Cost of model calls in words: each purpose by its name, and calls with other outcomes."""

from __future__ import annotations

from engine.records.runs import CallPurpose, CallSum, Totals
from phoenix_tui.text.statistics_text import PURPOSES, call_lines


def test_every_purpose_has_a_name_of_its_own() -> None:
    assert set(PURPOSES) == set(CallPurpose)
    assert len(set(PURPOSES.values())) == len(PURPOSES)


def test_a_purpose_is_told_with_its_calls_tokens_and_cost() -> None:
    replies = CallSum(CallPurpose.REPLY, Totals(12_000, 900, 300, 700, 0.125), 7, failed=2, cancelled=1, retries=2)
    title = CallSum(CallPurpose.TITLE, Totals(200, 8, cost_usd=0.0), 1)
    assert call_lines([replies, title]) == [
        "replies: 7 calls (2 failed, 1 stopped, 2 retried), 12k in, 900 out, 1.0k cached, $0.12",
        "titles: 1 call, 200 in, 8 out, $0.00",
    ]


def test_searches_that_a_server_charges_apart_are_named() -> None:
    one = CallSum(CallPurpose.WEB_SEARCH, Totals(10, 5, cost_usd=0.03), 1, web_searches=3)
    assert call_lines([one]) == ["web searches: 1 call, 10 in, 5 out, 3 searches, $0.03"]


def test_an_unknown_price_and_what_was_counted_earlier_are_said() -> None:
    earlier = CallSum(CallPurpose.EARLIER, Totals(50, 5, cost_usd=None), 1)
    assert call_lines([earlier]) == ["before calls were recorded separately: 50 in, 5 out, price unknown"]


def test_calls_whose_tokens_are_not_all_known_are_named() -> None:
    one = CallSum(CallPurpose.REPLY, Totals(10, 1), 3, cancelled=1, estimated=1)
    assert call_lines([one])[1:] == [
        "1 call was stopped or failed before the server reported all tokens; the known part is counted."
    ]
    assert call_lines([one, one])[2:] == [
        "2 calls ended before the server reported all tokens; the known part is counted."
    ]


def test_nothing_is_said_where_no_model_was_called() -> None:
    assert call_lines([]) == []
