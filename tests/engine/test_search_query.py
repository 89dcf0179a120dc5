"""Meaning of a search text, and its errors."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.search import SearchQuery, SearchSyntaxError, Speaker, occurrences, parse_search

NOW = datetime(2026, 11, 22, 15, 30).astimezone()


def parsed(text: str) -> SearchQuery:
    return parse_search(text, cwd=Path("/work"), now=NOW)


def at(year: int, month: int, day: int) -> float:
    return datetime(year, month, day).astimezone().timestamp()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", SearchQuery()),
        ("  two  words ", SearchQuery(("two", "words"))),
        ('say "good morning" now', SearchQuery(("say", "good morning", "now"))),
        ('run -slow -"very slow"', SearchQuery(("run",), ("slow", "very slow"))),
        ("http://x/y a::b C++ key=1", SearchQuery(("http://x/y", "a::b", "C++", "key=1"))),
        ("a - b", SearchQuery(("a", "-", "b"))),
        ("role:user role:tool", SearchQuery(speakers=frozenset({Speaker.USER, Speaker.TOOL}))),
        ("Role:You x", SearchQuery(("x",), speakers=frozenset({Speaker.USER}))),
        ("in:src x", SearchQuery(("x",), folder=Path("/work/src"))),
        ('in:"/tmp/my files"', SearchQuery(folder=Path("/tmp/my files"))),
        ("in:.", SearchQuery(folder=Path("/work"))),
        ("after:2026-11-01", SearchQuery(after=at(2026, 11, 1))),
        ("before:2026-11", SearchQuery(before=at(2026, 11, 1))),
        ("after:yesterday before:today", SearchQuery(after=at(2026, 11, 21), before=at(2026, 11, 22))),
        ("after:7d", SearchQuery(after=at(2026, 11, 15))),
        ('title:"two words" is:trash', SearchQuery(title="two words", trash=True)),
        ('"after:2026"', SearchQuery(("after:2026",))),
    ],
)
def test_a_text_means_a_query(text: str, query: SearchQuery) -> None:
    assert parsed(text) == query


@pytest.mark.parametrize(
    ("text", "sentence", "place"),
    [
        ('find "this', 'This quotation has no end; add " after the phrase.', (5, 10)),
        ("x after:", "after: needs a value, such as after:2026-11-01.", (2, 8)),
        ("after:2026-13-01", "2026-13-01 is not a day; write after:2026-11-01, after:7d or after:yesterday.", (0, 16)),
        ("x role:boss", "boss is not a role; use user, assistant, tool.", (2, 11)),
        ("x -in:/tmp", "in: cannot be excluded; remove the -.", (2, 10)),
        ("is:open", "is: accepts only trash, not open.", (0, 7)),
        ("-only", "Add a word to search for; an exclusion alone finds nothing.", (0, 5)),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, sentence: str, place: tuple[int, int]) -> None:
    with pytest.raises(SearchSyntaxError) as raised:
        parsed(text)
    assert (str(raised.value), (raised.value.start, raised.value.end)) == (sentence, place)


@given(st.text())
def test_any_text_is_a_query_or_a_named_mistake(text: str) -> None:
    try:
        query = parsed(text)
    except SearchSyntaxError as error:
        assert 0 <= error.start < error.end <= len(text)
        assert str(error).endswith(".")
    else:
        assert all(query.words) and all(query.without)


@given(st.text(), st.text(min_size=1, max_size=3))
def test_occurrences_are_in_order_and_hold_the_word(text: str, word: str) -> None:
    end = 0
    for start, after in occurrences(text, (word,)):
        assert end <= start < after <= len(text)
        end = after
    if word in text:
        assert occurrences(text, (word,))


def test_overlapping_marks_are_joined() -> None:
    assert occurrences("one needle", ("need", "needle", "eed")) == [(4, 10)]
    assert occurrences("İstanbul ISTANBUL", ("istanbul",)) == [(9, 17)]
    assert occurrences("ΟΔΟΣ οδος", ("οδοσ",)) == [(0, 4), (5, 9)]
