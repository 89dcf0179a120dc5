"""Numbers with their nouns, long texts on one line."""

from __future__ import annotations

import pytest

from tools.wording import both_ends, number_within, one_line, pluralize


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 lines"), (1, "1 line"), (2, "2 lines"), (1204, "1,204 lines"), (-1, "-1 lines")]
)
def test_a_number_stands_with_its_noun(number: int, words: str) -> None:
    assert pluralize(number, "line") == words


def test_a_plural_of_its_own_is_given() -> None:
    assert [pluralize(number, "process", "processes") for number in (1, 2)] == ["1 process", "2 processes"]


def test_a_text_becomes_one_line_and_is_cut_to_its_length() -> None:
    assert one_line(" a\n\tb  c ") == "a b c"
    assert one_line("a b c", 5) == "a b c"
    assert one_line("a b c", 4) == "a b…"


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("20", 20), ("07", 7), ("0", None), ("21", None), ("", None), ("-1", None), ("1.5", None), ("²", None)],
)
def test_a_number_is_read_within_its_bounds(text: str, number: int | None) -> None:
    assert number_within(text, 20) == number


def test_a_long_path_keeps_the_name_of_its_file() -> None:
    assert both_ends("src/a.py", 60) == "src/a.py"
    assert both_ends("one/two/three/four.py", 12) == "one…/four.py"


def test_a_number_that_python_would_refuse_to_read_is_none() -> None:
    assert number_within("9" * 5_000, 20) is None
    assert number_within("0" * 5_000 + "1", 20) is None
