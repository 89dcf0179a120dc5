"""An unsent message and its images survive as one text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.unsent import TRAILER, Unsent, joined, parsed

IDS = st.lists(st.from_regex(r"[0-9a-f-]{1,36}", fullmatch=True), max_size=4)


@given(st.text(st.characters(exclude_characters="\x1e")), IDS)
def test_what_was_joined_comes_apart_again(text: str, ids: list[str]) -> None:
    assert parsed(joined(text, ids)) == Unsent(text, tuple(ids))


@pytest.mark.parametrize("text", ["", "hello", "two\nlines", "see\nimages a b"])
def test_a_draft_without_images_is_the_text_itself(text: str) -> None:
    assert joined(text, ()) == text
    assert parsed(text) == Unsent(text)


def test_only_the_last_line_names_images() -> None:
    assert parsed(f"a{TRAILER}x y") == Unsent("a", ("x", "y"))
    assert parsed(f"a{TRAILER}x\nmore") == Unsent(f"a{TRAILER}x\nmore")
