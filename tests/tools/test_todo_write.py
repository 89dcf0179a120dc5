"""todo_write: what it takes, what the model reads, and that no text of it can harm a screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.clean import clean_line
from tools.contract import JsonObject, PlainDisplay, ToolContext, ToolInputError
from tools.displays import MOST_ITEMS, TodoItem, TodoList, TodoStatus, is_sound, lines_of
from tools.planning import TodoWrite, items_of, result_text

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
