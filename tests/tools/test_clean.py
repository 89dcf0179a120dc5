"""Cleaning: no hostile text passes `clean`, no text at all is lost in `reveal`."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.clean import clean, clean_line, reveal

ALPHABET = st.sampled_from(
    "ab 1;[]?KmPX^_\\\r\n\t\b\x00\x01\x07\x0b\x1b\x7f\x85\x90\x98\x9b\x9c\x9d\x9e\x9f"
    "\u200b\u200d\u202e\u2066\ufeff\U000e0041\ud800\udcff👩💻\ufe0fé"
)
HOSTILE = st.one_of(st.text(ALPHABET, max_size=60), st.text(max_size=60))

SEQUENCES = {
    "clipboard write": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "clipboard write ended by ST": "\x1b]52;c;cm0=\x1b\\",
    "title": "\x1b]0;owned\x07",
    "icon title": "\x1b]2;owned\x9c",
    "link": "\x1b]8;;https://evil\x1b\\",
    "clear": "\x1b[2J\x1b[H",
    "colour": "\x1b[38;5;1m",
    "8 bit control": "\x9b2J",
    "8 bit title": "\x9d0;owned\x07",
    "device control": "\x1bP1$r0m\x1b\\",
    "8 bit device control": "\x90q#0\nlines\x9c",
    "application command": "\x1b_Gf=24;AAAA\x1b\\",
    "private message": "\x1b^secret\x1b\\",
    "start of string": "\x1bXsecret\x1b\\",
    "reset": "\x1bc",
    "charset": "\x1b(0",
    "private mode": "\x1b[?1049h",
    "intermediates": "\x1b[1 q",
    "bell": "\x07",
    "nul": "\x00",
    "delete": "\x7f",
    "bidi override": "\u202e",
    "bidi isolate": "\u2066",
    "zero width space": "\u200b",
    "byte order mark": "\ufeff",
    "tag letter": "\U000e0041",
    "variation selector 17": "\U000e0100",
    "joiner outside an emoji": "\u200d",
    "presentation selectors that present nothing": "\ufe0f\ufe0e",
    "soft hyphen": "\u00ad",
}


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_a_sequence_vanishes_whole_and_its_neighbours_stay(sequence: str) -> None:
    assert clean(f"before{sequence}after") == "beforeafter"
    assert clean(sequence) == ""


@pytest.mark.parametrize("start", ["\x1b]52;c;", "\x1bP", "\x1b_", "\x9d", "\x1b^", "\x1bX"])
def test_a_string_without_an_end_takes_its_own_line_only(start: str) -> None:
    assert clean(f"a{start}hidden\nseen") == "a\nseen"


def test_a_cut_sequence_at_the_end_leaves_nothing() -> None:
    assert [clean(f"a{tail}") for tail in ("\x1b", "\x1b[", "\x1b[31", "\x9b3", "\x1b(", "\x1b]")] == ["a"] * 6


@given(HOSTILE)
def test_what_is_shown_holds_no_control_no_bidi_no_surrogate(text: str) -> None:
    shown = clean(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
    assert not set(shown) & set("\u200b\u200c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
    shown.encode("utf-8")


@given(HOSTILE)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    assert clean_line(clean_line(text)) == clean_line(text)


@given(
    st.text(st.characters(categories=["L", "N", "P", "Sm", "Sc", "Zs"], exclude_characters="\u115f\u1160\u3164\uffa0"))
)
def test_plain_text_is_unchanged(text: str) -> None:
    assert clean(text) == text


def test_newlines_tabs_and_joined_emoji_stay() -> None:
    text = "a\tb\n👩\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 日本 é\n"
    assert clean(text) == text


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("10%\r55%\r100%\n", "100%\n"),
        ("long line\rshort", "shortline"),
        ("long line\r\x1b[Kshort", "short"),
        ("long line\x1b[2K\rshort", "short"),
        ("a\r\nb\r\r\nc", "a\nb\nc"),
        ("working\r", "working"),
        ("|\b/\b-\b done", " done"),
        ("_\bx", "x"),
        ("one\x0btwo\x0cthree\x85four\u2028five", "one\ntwo\nthree\nfour\nfive"),
    ],
)
def test_a_line_shows_its_last_state(output: str, shown: str) -> None:
    assert clean(output) == shown


def test_a_row_holds_no_line_break() -> None:
    assert clean_line("a\nb\tc\r\nd\x1b]0;x\x07") == "a b c d"


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert clean("name\udcff") == "name\ufffd"


@pytest.mark.parametrize(
    "unit",
    [
        "\x1b]",
        "\x1b[",
        "\x9d",
        "\x9d\n",
        "\x1b[1;",
        "\x1b[2K",
        "a\r",
        "\b",
        "\u200d",
        "👩\u200d",
        "\x1b]x\n",
        "\x1bP \x1b[",
        "\x00",
    ],
)
def test_a_megabyte_of_hostility_takes_linear_time(unit: str) -> None:
    text = "x" * 250_000 + "\r" + unit * (1_000_000 // len(unit))
    start = time.process_time()
    clean(text)
    assert time.process_time() - start < 3.0


def test_an_approval_spells_out_what_would_hide() -> None:
    command = "echo ok # \x1b[24D\x1b[K rm -rf ~\u202e\u200b\U000e0041\u00a0x\t\r"
    assert reveal(command) == "echo ok # ␛[24D␛[K rm -rf ~⟨U+202E⟩⟨U+200B⟩⟨U+E0041⟩⟨U+00A0⟩x␉␍"


def test_an_approval_shows_trailing_and_padding_blanks_at_full_length() -> None:
    assert reveal("true" + " " * 300) == "true" + "␠" * 300
    assert reveal("true  \nnext ") == "true␠␠\nnext␠"
    assert reveal("true" + " " * 40 + "; rm x") == "true" + "␠" * 40 + "; rm x"
    assert reveal("    indented line") == "    indented line"


def test_an_approval_leaves_ordinary_text_alone() -> None:
    text = "grep -n 'día' *.py | head\nécho \"日本\" && 👩 done"
    assert reveal(text) == text


@given(HOSTILE)
def test_an_approval_hides_nothing_and_acts_on_nothing(text: str) -> None:
    shown = reveal(text)
    assert len(shown) >= len(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cs", "Cf"} and c != "\n"]
    assert shown == clean(shown)
    assert shown == reveal(shown)
