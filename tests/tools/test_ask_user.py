"""ask_user and todo_write: cleaned, bounded, and refused with a sentence that names the mistake."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.questions import COLOUR, PARTS
from tools.clean import clean, clean_line
from tools.contract import JsonObject, PlainDisplay, ToolContext, ToolInputError
from tools.displays import (
    MOST_ITEMS,
    Answers,
    TodoItem,
    TodoList,
    TodoStatus,
    clean_answers,
    format_answers,
    is_sound,
    lines_of,
    why_no_answers,
)
from tools.planning import LONGEST_CALL, NOBODY, AskUser, TodoWrite, items_of, questions_of, result_text


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


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
ITEMS = st.fixed_dictionaries(
    {"content": st.text(max_size=520), "status": st.sampled_from([*TodoStatus, "done", ""])},
    optional={"activeForm": st.none() | st.text(max_size=210), "id": st.integers()},
)


def todo(content: str, status: str = "pending", active: str = "") -> JsonObject:
    return {"content": content, "status": status, **({"activeForm": active} if active else {})}


@given(st.fixed_dictionaries({"todos": st.lists(ITEMS, max_size=8) | VALUES}) | st.dictionaries(st.text(), VALUES))
def test_any_input_gives_a_sound_list_or_one_sentence(args: JsonObject) -> None:
    try:
        items = items_of(args)
    except ToolInputError as error:
        assert str(error).endswith((".", "shorten it.", "join some of them."))
        return
    assert is_sound(items)
    for line in lines_of(items):
        assert clean_line(line) == line
    again: JsonObject = {"todos": [todo(one.content, one.status, one.active_form) for one in items]}
    assert items_of(again) == items


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({}, "The argument todos is missing: give the whole list, or [] to clear it."),
        ({"todos": "buy milk"}, "The argument todos is missing: give the whole list, or [] to clear it."),
        ({"todos": ["buy milk"]}, "todos[0] must be an object, not a string."),
        ({"todos": [{"status": "pending"}]}, "The argument todos[0].content is missing."),
        ({"todos": [todo(" \x1b[2J ")]}, "todos[0].content is empty: say what is to be done."),
        (
            {"todos": [todo("a"), todo("b", "done")]},
            "todos[1].status must be one of pending, in_progress, completed, cancelled.",
        ),
        ({"todos": [todo("x" * 501)]}, "todos[0].content has 501 characters; at most 500 are kept: shorten it."),
        (
            {"todos": [todo("a", active="x" * 201)]},
            "todos[0].activeForm has 201 characters; at most 200 are kept: shorten it.",
        ),
        ({"todos": [todo("a")] * 101}, "todos has 101 items; at most 100 are kept: join some of them."),
        ({"todos": [], "merge": True}, "Unknown argument merge; known are: todos."),
        (
            {"todos": [{**todo("a"), "id": 1}]},
            "Unknown argument todos[0].id; known are: content, status, activeForm.",
        ),
        ({"todos": [todo("\ud800")]}, "todos[0].content contains half a character (a lone surrogate)."),
    ],
)
def test_bad_input_is_answered_with_the_sentence_that_names_the_fix(args: JsonObject, sentence: str) -> None:
    with pytest.raises(ToolInputError) as refused:
        items_of(args)
    assert str(refused.value) == sentence


def test_the_model_reads_how_many_items_have_which_status() -> None:
    def told(*statuses: str) -> str:
        return result_text(items_of({"todos": [todo(f"item {n}", one) for n, one in enumerate(statuses)]}))

    assert told() == "The todo list is empty now."
    assert told("pending") == "The todo list is kept: 1 item, 1 pending."
    assert told("completed", "in_progress", "pending", "cancelled") == (
        "The todo list is kept: 4 items, 1 pending, 1 in progress, 1 completed, 1 cancelled."
    )
    assert told("in_progress", "in_progress") == (
        "The todo list is kept: 2 items, 2 in progress. 2 items are in progress: have one in progress at a time."
    )


async def test_the_row_names_the_current_item_and_the_cell_has_all_of_them(tmp_path: Path) -> None:
    args: JsonObject = {
        "todos": [
            todo("Read the code", "completed"),
            todo("Run the tests", "in_progress", "Running the tests"),
            todo("漢字を\x1b[31m直す"),
            todo("Write\nabout it", "cancelled"),
        ]
    }
    assert (await TodoWrite().request(args, tmp_path)).summary == "2/4 Running the tests"
    output = await TodoWrite().run(args, ToolContext("c", "t", tmp_path, False, lambda _: None))
    assert output.display == PlainDisplay(
        "1. [x] Read the code\n2. [>] Run the tests\n3. [ ] 漢字を直す\n4. [-] Write about it"
    )
    assert output.todos == items_of(args)


def test_the_list_of_a_hundred_items_is_taken_and_numbered_in_one_column() -> None:
    items = items_of({"todos": [todo("word " * 99)] * MOST_ITEMS})
    assert len(items) == MOST_ITEMS
    assert {line.index(".") for line in lines_of(items)} == {3}


def test_a_list_without_open_items_has_no_current_one() -> None:
    done = TodoList((TodoItem("a", TodoStatus.COMPLETED), TodoItem("b", TodoStatus.CANCELLED)))
    assert (done.is_open, done.current, done.progress, done.summary) == (False, None, "2/2", "2/2")
    assert (TodoList().progress, TodoList().current) == ("", None)
