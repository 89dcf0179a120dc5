"""Questions of a model: cleaned, bounded, and refused with a sentence that names the mistake."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.questions import COLOUR, PARTS
from tools.clean import clean, clean_line
from tools.contract import JsonObject, ToolContext, ToolInputError
from tools.displays import Answers, clean_answers, format_answers, why_no_answers
from tools.planning import LONGEST_CALL, NOBODY, AskUser, questions_of


def changed(**fields: Any) -> dict[str, Any]:
    return {**deepcopy(COLOUR), **fields}


def options(*labels: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"label": label, "description": "", **fields} for label in labels]


def asked_for(questions: Any) -> JsonObject:
    return {"questions": questions}


@pytest.mark.parametrize(
    ("questions", "sentence"),
    [
        ([], "questions must be a list with at least one object, not an empty list."),
        ("Which?", "questions must be a list with at least one object, not a string."),
        ([COLOUR] * 5, "questions has 5 items; at most 4 are asked at once."),
        ([COLOUR, COLOUR], "Two of the questions are the same: ask each one once."),
        ([changed(question=" \n")], "questions[0].question is empty: write it."),
        (
            [changed(question="?" * 1_001)],
            "questions[0].question has 1,001 characters; at most 1,000 are shown: shorten it.",
        ),
        (
            [changed(header="a very long header, indeed")],
            "questions[0].header has 26 characters; at most 20 are shown: shorten it.",
        ),
        ([changed(header=7)], "questions[0].header must be a string, not the number 7."),
        ([changed(multiSelect="yes")], "questions[0].multiSelect must be true or false, not a string."),
        ([changed(options=options("one"))], "questions[0].options has 1 items; give 2 to 4 different ones."),
        ([changed(options=options(*"abcde"))], "questions[0].options has 5 items; give 2 to 4 different ones."),
        (
            [changed(options=options("a", "a\x1b[0m"))],
            "questions[0].options has the same label twice: make each label different.",
        ),
        (
            [changed(options=options("a", "b" * 121))],
            "questions[0].options[1].label has 121 characters; at most 120 are shown: shorten it.",
        ),
        (
            [changed(options=options("a", "b", description="d" * 601))],
            "questions[0].options[0].description has 601 characters; at most 600 are shown: shorten it.",
        ),
        (
            [changed(options=options("a", "b", preview="p" * 4_001))],
            "questions[0].options[0].preview has 4,001 characters; at most 4,000 are shown: shorten it.",
        ),
        (
            [changed(options=options("a", "b", colour="red"))],
            "Unknown argument questions[0].options[0].colour; known are: label, description, preview.",
        ),
        ([changed(question="\ud800?")], "questions[0].question contains half a character (a lone surrogate)."),
    ],
)
def test_what_is_no_question_is_refused_with_a_sentence(questions: Any, sentence: str) -> None:
    with pytest.raises(ToolInputError) as refused:
        questions_of(asked_for(questions))
    assert str(refused.value) == sentence


def test_all_texts_together_are_bounded() -> None:
    each = options(*(f"{letter}{'x' * 100}" for letter in "abcd"), preview="p" * 3_500)
    many = [changed(question=f"{place}?", options=each) for place in range(4)]
    with pytest.raises(ToolInputError, match=f"at most {LONGEST_CALL:,} are shown: shorten them"):
        questions_of(asked_for(many))


def test_every_text_is_cleaned() -> None:
    hostile = "a\x1b]0;title\x07b\r\nc\u202ed\x1b[2J"
    one = changed(
        question=f"{hostile}?",
        header="h\x1b[1m",
        options=options("x\x08y", hostile, description=hostile, preview=hostile),
    )
    [asked] = questions_of(asked_for([one]))
    texts = [asked.question, asked.header, *(t for o in asked.options for t in (o.label, o.description))]
    assert [clean_line(text) for text in texts] == texts
    assert [clean(option.preview) for option in asked.options] == [option.preview for option in asked.options]
    assert asked.header == "h"


async def test_the_request_carries_the_questions_and_a_plain_form_of_them(tmp_path: Path) -> None:
    request = await AskUser().request({"questions": [COLOUR, PARTS]}, tmp_path)
    assert request.summary == "Colour · Parts"
    assert [one.multi for one in request.questions] == [False, True]
    assert request.questions[0].labels == ("Red", "Blue")
    one = await AskUser().request({"questions": [COLOUR]}, tmp_path)
    assert one.summary == "Which colour?"


async def test_a_call_that_runs_says_that_nobody_is_there(tmp_path: Path) -> None:
    context = ToolContext("c", "t", tmp_path, outside_allowed=False, report=lambda _: None)
    output = await AskUser().run({"questions": [COLOUR]}, context)
    assert (output.text, output.is_error) == (NOBODY, True)


def test_answers_are_pairs_and_a_skipped_question_says_so() -> None:
    asked = questions_of({"questions": [COLOUR, PARTS]})
    assert format_answers(asked, (("Red",), ("API", "Docs"))) == '"Which colour?"="Red"\n"Which parts?"="API, Docs"'
    assert format_answers(asked, ((), ())) == '"Which colour?"="not answered"\n"Which parts?"="not answered"'


@given(st.lists(st.lists(st.text(max_size=30), max_size=6).map(tuple), max_size=5).map(tuple))
def test_any_answers_are_refused_or_become_one_line_for_each_question(answers: Answers) -> None:
    asked = questions_of({"questions": [COLOUR, PARTS]})
    given_ = clean_answers(answers)
    if why_no_answers(asked, given_):
        return
    text = format_answers(asked, given_)
    assert text.startswith('"Which colour?"="')
    assert '\n"Which parts?"="' in text
    assert clean(text) == text
