"""An unsent message and its images survive as one text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.features.composing import IMAGES, PRIVATE, Unsent, join_draft, parse_draft

TRAILER = PRIVATE + IMAGES

FOLDS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=3)
IDS = st.lists(st.from_regex(r"[0-9a-f-]{1,36}", fullmatch=True), max_size=4)


@given(st.text(st.characters(exclude_characters="\x1e")), IDS)
def test_what_was_joined_comes_apart_again(text: str, ids: list[str]) -> None:
    assert parse_draft(join_draft(text, ids)) == Unsent(text, tuple(ids))


@pytest.mark.parametrize("text", ["", "hello", "two\nlines", "see\nimages a b"])
def test_a_draft_without_images_is_the_text_itself(text: str) -> None:
    assert join_draft(text, ()) == text
    assert parse_draft(text) == Unsent(text)


def test_only_the_last_line_names_images() -> None:
    assert parse_draft(f"a{TRAILER}x y") == Unsent("a", ("x", "y"))
    assert parse_draft(f"a{TRAILER}x\nmore") == Unsent(f"a{TRAILER}x\nmore")


@given(st.text(st.characters(exclude_characters="\x1e"), min_size=60), IDS, FOLDS)
def test_folded_pastes_stand_where_they_stood(text: str, ids: list[str], gaps: list[tuple[int, int]]) -> None:
    folds, end = list[tuple[int, int]](), 0
    for gap, length in gaps:
        folds.append((end + gap, length))
        end += gap + length
    assert parse_draft(join_draft(text, ids, folds)) == Unsent(text, tuple(ids), tuple(folds))


@pytest.mark.parametrize("places", ["x", "1+2+3", "1", "5+90", "4+2 3+1", "-1+2"])
def test_places_that_do_not_fit_the_text_are_ignored(places: str) -> None:
    assert parse_draft(f"some text{PRIVATE}pastes {places}") == Unsent("some text")
