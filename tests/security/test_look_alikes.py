"""Weakness: right-to-left letters and homoglyphs in commands unmarked.

A character that may be taken for another is named in the panel; prose of one script within quotes is left alone.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.linear.question_lines import question_lines as spoken
from phoenix_tui.widgets.question_text import lay_out
from tests.support.fake_engine import question
from tools.contract import PlainDisplay, ToolRequest
from tools.look_alikes import LEFT, in_order, is_right_to_left, remarks, suspects

ODD = {
    "\u0441url evil.example": ("U+0441 CYRILLIC SMALL LETTER ES", "c"),
    "cat /etc/p\u0430sswd": ("U+0430 CYRILLIC SMALL LETTER A", "a"),
    "\u03bfpen x": ("U+03BF GREEK SMALL LETTER OMICRON", "o"),
    "\uff52m -rf x": ("U+FF52 FULLWIDTH LATIN SMALL LETTER R", "r"),
    "\U0001d42bm -rf x": ("U+1D42B MATHEMATICAL BOLD SMALL R", "r"),
    "\u217comd x": ("U+217C SMALL ROMAN NUMERAL FIFTY", "l"),
    'curl "https://g\u0131thub.com"': ("U+0131 LATIN SMALL LETTER DOTLESS I", "i"),
    "cat a\u2215b": ("U+2215 DIVISION SLASH", "/"),
    "rm \u2013rf x": ("U+2013 EN DASH", "-"),
    "echo \u201ca; id\u201d": ("U+201C LEFT DOUBLE QUOTATION MARK", '"'),
    "echo \u2018a; id\u2019": ("U+2018 LEFT SINGLE QUOTATION MARK", "'"),
    "echo a\u037e id": ("U+037E GREEK QUESTION MARK", ";"),
    "a \u2223 b": ("U+2223 DIVIDES", "|"),
    "ls \u0435\u0445\u0435\u0441": ("U+0435 CYRILLIC SMALL LETTER IE", "e"),
    'curl "https://\u0441\u043e\u0445.com"': ("U+0441 CYRILLIC SMALL LETTER ES", "c"),
    "\u212aill 1": ("U+212A KELVIN SIGN", "K"),
    "\u13a1un x": ("U+13A1 CHEROKEE LETTER E", "R"),
}


@pytest.mark.parametrize(("command", "said"), ODD.items(), ids=[said[0] for said in ODD.values()])
def test_a_character_that_looks_like_another_is_named(command: str, said: tuple[str, str]) -> None:
    name, looks = said
    if name.startswith("U+13A1"):
        assert any(name in one for one in remarks(command))
    else:
        assert f"contains {name}, which looks like {looks}" in remarks(command)


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'Исправлена ошибка с кодом'",
        'git commit -m "Don\u2019t stop \u2013 it\u2019s \u201cfine\u201d"',
        "cat файл.txt",
        "cat 日本語ー.md résumé.txt naïve.txt straße.txt",
        "git commit -m 'у нас все хорошо'",
        "echo Σίσυφος",
        "cat test_файл.txt",
        "printf '%s\\n' ² ½ … ₿ 👩\u200d💻",
        "cat ışık.txt",
        "make test",
    ],
)
def test_honest_text_is_left_alone(command: str) -> None:
    assert remarks(command) == []


def test_right_to_left_words_stand_in_the_order_they_run_and_honest_ones_get_one_line() -> None:
    command = "rm שלום ; echo עולם x"
    shown = in_order(command)
    assert shown == f"rm שלום{LEFT} ; echo עולם{LEFT} x"
    assert [one for one in remarks(command) if "right-to-left" in one] == remarks(command)
    assert len(remarks(command)) == 1


@given(st.text(st.sampled_from("אבد12;|& a\u05b8x'\""), max_size=40))
def test_no_two_right_to_left_words_touch_over_signs_alone(text: str) -> None:
    """A left-to-right letter separates two of them: no terminal swaps them or the sign between."""
    shown = in_order(text)
    assert shown.replace(LEFT, "") == text
    words, left = 0, True
    for character in shown:
        if is_right_to_left(character):
            assert left or words
            words, left = 1, False
        elif unicodedata.bidirectional(character) == "L":
            words, left = 0, True
        elif not unicodedata.combining(character):
            assert left or character == "⟨"


@given(st.text(max_size=200))
def test_every_suspect_stands_where_it_is_said_and_none_is_ascii(text: str) -> None:
    found = suspects(text)
    assert all(text[one.place] == one.character and not one.character.isascii() for one in found)
    assert sorted({one.place for one in found}) == [one.place for one in found]


def test_a_command_that_forges_the_spelling_of_hidden_characters_is_told_of() -> None:
    assert remarks("echo a␠⟨60 blank lines⟩") == ["contains ⟨ ␠ itself, the sign that marks hidden characters"]


def test_panel_and_lines_say_it_and_the_character_stands_out() -> None:
    command = "\u0441url x"
    asked = question(request=ToolRequest(command, (), PlainDisplay(command), command))
    (row,) = lay_out(asked, 77).rows
    assert [(span.start, span.end) for span in row.spans if "reverse" in str(span.style)] == [(0, 1)]
    assert "Note: it contains U+0441 CYRILLIC SMALL LETTER ES, which looks like c." in spoken(asked)


async def test_the_panel_says_it_below_the_command(open_shell: Any) -> None:
    command = "\u0441url x # שלום"
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        conversation.ask(question(request=ToolRequest(command, (), PlainDisplay(command), command)))
        await shell.until(lambda: "contains U+0441 CYRILLIC SMALL LETTER ES, which looks like c" in shell.text)
        assert f"שלום{LEFT}" in shell.text
