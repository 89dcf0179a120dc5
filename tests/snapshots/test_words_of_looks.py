"""Snapshot format of a row: runs by meaning, nothing invisible."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style

from phoenix_tui.styles.themes import DARK
from tests.snapshots.looks import meanings, written

NAMES = meanings(DARK)


def runs(*pieces: tuple[str, str]) -> str:
    """Written form of one row of text with styles."""
    return "\n".join(written([[Segment(text, Style.parse(style)) for text, style in pieces]], NAMES)[2:])


def test_a_run_has_columns_marks_and_the_meaning_of_its_colour() -> None:
    assert runs(("plain ", ""), ("name", "bold #c5a3ff on #191d23")) == "0: 6-9 bold you on surface"


def test_a_colour_of_no_meaning_is_named_by_itself_and_a_rounded_one_by_its_meaning() -> None:
    assert runs(("a", "#123456"), ("b", "#ebb65c")) == "0: 0 #123456 · 1 needs-you"


def test_wide_letters_take_two_columns() -> None:
    assert runs(("日本", "bold"), ("!", "#ff7b81")) == "0: 0-3 bold · 4 bad"


def test_blanks_between_two_words_belong_to_them_and_those_at_the_end_are_not_seen() -> None:
    assert runs(("two", "bold"), (" ", "#ff7b81"), ("words ", "bold")) == "0: 0-8 bold"
    assert runs(("one", "underline"), (" ", "underline"), ("x", "")) == "0: 0-3 underline"


def test_a_ground_is_seen_under_blanks_too() -> None:
    assert runs(("  ", "on #191d23"), ("a", "#d5d9e0 on #191d23")) == "0: 0-2 on surface"


def test_rows_that_look_alike_take_one_line() -> None:
    row = [Segment("a", Style(bold=True))]
    assert written([row, row, [Segment("b")], row], {})[5:] == ["0-1: 0 bold", "3: 0 bold"]


def test_a_turning_sign_has_one_face() -> None:
    assert written([[Segment("◓ ◑")]], {})[0] == " 0 ◐ ◐"
