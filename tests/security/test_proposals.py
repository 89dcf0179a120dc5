"""Weakness: a proposal of a model that begins with `!` or `/` would act with Tab and Enter; it is never offered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.executor.side_questions import suggested

MARKS = ("!", "/", "@", "#", "！", "／")


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("around", ["{}", " {}", "\n\n{}", '"{}"', "“{}”", '" {}"', '\t"{}', "''{}"[2:]])
def test_a_proposal_that_would_be_a_command_is_none(mark: str, around: str) -> None:
    assert suggested(around.format(f"{mark}rm -rf ~")) == ""


@pytest.mark.parametrize(
    "letter", ["\x1b", "\x00", "\x7f", "\x9b", "\u202e", "\u200b", "\u2066", "\ufeff", "\U000e0041"]
)
def test_a_proposal_with_what_is_not_seen_is_none(letter: str) -> None:
    assert suggested(f"Run the {letter}tests") == ""
    assert suggested(f"{letter}!ls") == ""


@given(st.text(max_size=80))
def test_no_text_of_a_model_becomes_a_command_or_two_lines(text: str) -> None:
    line = suggested(text)
    assert not line.startswith(MARKS)
    assert line == line.strip()
    assert len(line.splitlines()) <= 1


def test_an_honest_proposal_is_offered() -> None:
    assert suggested('"Now run the tests in tests/ and fix #12!"') == "Now run the tests in tests/ and fix #12!"
