"""A model's words, cleaned while they come: however they are cut, what is shown is that of the whole."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tools.clean import clean
from tools.clean_pieces import LONGEST_STRING, MOST_ARGUMENTS, PieceCleaner, clean_words

ALPHABET = st.sampled_from(
    "ab 1;[]?KmPX^_\\\r\n\t\b\x00\x07\x0b\x1b\x1b\x1b\x7f\x85\x90\x98\x9b\x9c\x9d\x9e\x9f"
    "\u200b\u200d\u200d\u202e\ufeff\U000e0041\ud800\udcff👩💻\ufe0fé"
)
HOSTILE = st.one_of(st.text(ALPHABET, max_size=60), st.text(max_size=60))


def in_pieces(text: str, size: int) -> tuple[str, list[int]]:
    """Shown text, and the number of characters held back after each piece."""
    cleaner, shown, held = PieceCleaner(), "", list[int]()
    for start in range(0, len(text), size):
        shown += cleaner.feed(text[start : start + size])
        held.append(start + size - len(shown))
    return shown + cleaner.end(), held


@given(HOSTILE, st.integers(1, 9))
@example("a\r\nb", 2)
@example("\x1b]8;;http://a\x1b\\x", 15)
@example("👩\u200d💻", 2)
@example("\x90q#0\nlines\x9c", 3)
def test_the_cuts_change_nothing(text: str, size: int) -> None:
    assert in_pieces(text, size)[0] == clean_words(text)


@given(HOSTILE)
def test_what_is_given_is_clean_and_loses_only_what_clean_loses(text: str) -> None:
    shown = clean_words(text)
    assert clean(shown) == shown
    if not any(sign in text for sign in "\r\bK"):
        assert shown == clean(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("safe\rrm -rf", "safe\nrm -rf"),
        ("one\r\ntwo\r", "one\ntwo\n"),
        ("hidden\b\b\b\b\b\bshown", "hiddenshown"),
        ("hidden\x1b[2Kshown", "hiddenshown"),
    ],
)
def test_nothing_in_a_models_words_writes_over_another(text: str, shown: str) -> None:
    assert clean_words(text) == shown


@pytest.mark.parametrize("start", ["\x1b]52;c;", "\x1bP", "\x1b_", "\x9d", "\x1b[", "\x9b1;", "\x1b "])
def test_what_never_ends_is_waited_for_up_to_a_bound_and_then_shown(start: str) -> None:
    text = start + "1" * (LONGEST_STRING + MOST_ARGUMENTS) + "\nthe end"
    shown, held = in_pieces(text, 100)
    assert shown.endswith("the end")
    assert max(held) <= LONGEST_STRING + len(start) + 100
