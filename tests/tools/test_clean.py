"""Texts made safe: hostile characters in any cut, credentials in every form, hidden fields; and plain wording."""

from __future__ import annotations

import base64
import json
import time
import unicodedata
from typing import ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct
from rich.pretty import pretty_repr

from tools.clean import clean, clean_line, reveal
from tools.clean_pieces import LONGEST_STRING, MOST_ARGUMENTS, PieceCleaner, clean_words
from tools.known_secrets import SecretFields
from tools.redaction import BLOT, MARGIN, redact, redact_end, redact_start, without_keys
from tools.wording import both_ends, number_within, one_line, pluralize

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
        "\x1b]", "\x1b[", "\x9d", "\x9d\n", "\x1b[1;", "\x1b[2K", "a\r", "\b", "\u200d", "👩\u200d", "\x1b]x\n",
        "\x1bP \x1b[", "\x00",
    ],
)  # fmt: skip
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


CUT_ALPHABET = st.sampled_from(
    "ab 1;[]?KmPX^_\\\r\n\t\b\x00\x07\x0b\x1b\x1b\x1b\x7f\x85\x90\x98\x9b\x9c\x9d\x9e\x9f"
    "\u200b\u200d\u200d\u202e\ufeff\U000e0041\ud800\udcff👩💻\ufe0fé"
)
CUT_TEXT = st.one_of(st.text(CUT_ALPHABET, max_size=60), st.text(max_size=60))


def in_pieces(text: str, size: int) -> tuple[str, list[int]]:
    """Shown text, and the number of characters held back after each piece."""
    cleaner, shown, held = PieceCleaner(), "", list[int]()
    for start in range(0, len(text), size):
        shown += cleaner.feed(text[start : start + size])
        held.append(start + size - len(shown))
    return shown + cleaner.end(), held


@given(CUT_TEXT, st.integers(1, 9))
@example("a\r\nb", 2)
@example("\x1b]8;;http://a\x1b\\x", 15)
@example("👩\u200d💻", 2)
@example("\x90q#0\nlines\x9c", 3)
def test_the_cuts_change_nothing(text: str, size: int) -> None:
    assert in_pieces(text, size)[0] == clean_words(text)


@given(CUT_TEXT)
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


VALUE = 'p4ss"w\\rd-ünusual'
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabcdef\n-----END RSA PRIVATE KEY-----"
PLANTED = [
    "sk-ant-api03-abcdefghijklmnop",
    "sk-proj-abcdefghijklmnop_1234",
    "gsk_abcdefghijklmnop",
    "xai-abcdefghijklmnop",
    "hf_abcdefghijklmnop",
    "ghp_abcdefghijklmnop1234",
    "github_pat_11ABCDEFG0abcdefghij",
    "glpat-abcdefghijklmnop",
    "xoxb-1234567890-abcdefghij",
    "AKIAABCDEFGHIJKLMNOP",
    "AIzaSyabcdefghijklmnopqrstuvwxyz01234",
    "ya29.abcdefghijklmnop",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
]


@pytest.mark.parametrize("key", PLANTED)
@pytest.mark.parametrize("around", ["{}", "key={}", '{{"a": "{}"}}', "({})", "x {} y", "Authorization: Bearer {}"])
def test_a_key_of_a_known_shape_is_removed_wherever_it_is(key: str, around: str) -> None:
    text = redact(around.format(key))
    assert key not in text
    assert key[8:] not in text
    assert BLOT in text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
        ("authorization: Token abcdef123", "abcdef123"),
        ('{"x-api-key": "plain-value-1"}', "plain-value-1"),
        (json.dumps(json.dumps({"api_key": "plain-value-2"})), "plain-value-2"),
        ("Cookie: session=abcdef", "session=abcdef"),
        ("password = hunter22", "hunter22"),
        ("https://user:s3cret@example.com/v1", "s3cret"),
        (PEM, "MIIEow"),
        (PEM[:60], "MIIEow"),
        (json.dumps(PEM), "MIIEow"),
    ],
)
def test_credentials_in_headers_addresses_and_blocks_are_removed(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "form", [VALUE, json.dumps(VALUE), json.dumps(VALUE, ensure_ascii=False), base64.b64encode(VALUE.encode()).decode()]
)
def test_a_configured_key_is_removed_whatever_it_looks_like(form: str) -> None:
    text = redact(f"before {form} behind", (VALUE, "short"))
    assert form.strip('"') not in text
    assert "before" in text
    assert "behind" in text


def test_bytes_are_replaced_by_their_number() -> None:
    encoded = base64.b64encode(bytes(range(256)) * 30).decode()
    assert redact(f'"data:image/png;base64,{encoded}"') == '"[image, 7,680 bytes]"'
    assert redact(f'{{"data": "{encoded}"}}') == '{"data": "[7,680 bytes]"}'


@pytest.mark.parametrize(
    "text", ["a risk-averse task-list", "the token count is 5", "sk-1", "https://example.com/a@b", "x" * 400, ""]
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text, ("short", "")) == text


def test_notes_keep_settings_of_a_program() -> None:
    assert without_keys('password = read("x"); sk-abcdefghijklm') == f'password = read("x"); {BLOT}'


@given(st.integers(0, 3 * MARGIN), st.integers(0, 2 * MARGIN))
def test_no_cut_leaves_a_half_of_a_key(place: int, most: int) -> None:
    key = "sk-ant-" + "K" * 60
    text = f"{'a ' * (place // 2)}{key} end"
    assert "KKKKKK" not in redact_start(text, most, ())
    assert "KKKKKK" not in redact_end(f"{text}\nrest"[max(place + 10, 0) :])


def test_redacting_takes_time_in_proportion_to_the_text() -> None:
    for evil in ("authorization:" * 40_000, "://" * 100_000, "eyJ" * 150_000, "-----BEGIN PRIVATE KEY-----" * 15_000):
        assert len(redact(evil)) <= 2 * len(evil)


class Account(SecretFields, Struct, frozen=True):
    HIDDEN: ClassVar[frozenset[str]] = frozenset({"key"})

    name: str
    key: str = ""


class Holder(Struct):
    account: Account


def test_a_hidden_field_stands_in_no_repr() -> None:
    account = Account("mine", "sk-secret")
    assert repr(account) == "Account(name='mine')"
    assert repr(Holder(account)) == "Holder(account=Account(name='mine'))"


def test_what_prints_values_prettily_does_not_see_it_either() -> None:
    assert pretty_repr(Holder(Account("mine", "sk-secret"))) == "Holder(account=Account(name='mine'))"


def test_two_of_them_are_equal_by_all_their_values() -> None:
    assert Account("mine", "one") == Account("mine", "one")
    assert Account("mine", "one") != Account("mine", "two")


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
