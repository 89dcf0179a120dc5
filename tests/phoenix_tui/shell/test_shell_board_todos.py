"""The todo list of the agent above the task board, at every size and with any list."""

from __future__ import annotations

import pytest

from phoenix_tui.modals.tasks_sheet import TasksSheet, todo_rows
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.fake_task_boards import long_board, small_board
from tests.support.shell import Shell
from tools.displays import TodoItem, TodoList, TodoStatus

DONE, DOING = TodoStatus.COMPLETED, TodoStatus.IN_PROGRESS
SEVEN = TodoList((
    *(TodoItem(f"step {number}", DONE) for number in range(1, 4)),
    TodoItem("run the tests", DOING, "running the tests"),
    *(TodoItem(f"step {number}") for number in range(5, 8)),
))


async def board(shell: Shell, conversation: FakeConversation) -> None:
    await shell.open(conversation)
    await shell.pilot.press("f3")
    await shell.until(lambda: isinstance(shell.top, TasksSheet))


async def test_the_list_stands_above_the_board_with_its_progress(open_shell: OpenShell, engine: FakeEngine) -> None:
    conversation = engine.seed("retry", messages=8)
    engine.tasks.set(conversation.id, small_board())
    conversation.set_todos(SEVEN)
    async with open_shell() as shell:
        await board(shell, conversation)
        await shell.shows("Todo list of the agent 3/7")
        parts = ("Tasks   tracked 12", "Todo list of the agent 3/7", "4. [>] run the tests", "1  find out why")
        places = [shell.text.index(part) for part in parts]
        assert places == sorted(places)
        for row in ("1  find out", "2  fix the", "3  publish", "4  write", "Planning: ", "│ the second attempt"):
            assert row in shell.text, "the board is whole"


async def test_a_new_list_is_shown_at_once_and_none_takes_no_row(open_shell: OpenShell, engine: FakeEngine) -> None:
    conversation = engine.seed("retry", messages=8)
    engine.tasks.set(conversation.id, small_board())
    async with open_shell(size=(80, 24)) as shell:
        await board(shell, conversation)
        assert "Todo list" not in shell.text
        conversation.set_todos(SEVEN)
        await shell.shows("Todo list of the agent 3/7")
        conversation.set_todos(TodoList((TodoItem("\x1b[2Jone [bold]two[/]"),)))
        await shell.shows("Todo list of the agent 0/1")
        assert "1. [ ] one [bold]two[/]" in shell.text
        conversation.set_todos(TodoList())
        await shell.lacks("Todo list of the agent")


async def test_a_long_list_leaves_rows_to_a_long_board_on_a_low_screen(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    conversation = engine.seed("retry", messages=8)
    engine.tasks.set(conversation.id, long_board())
    conversation.set_todos(TodoList(tuple(TodoItem(f"item {number}") for number in range(1, 101))))
    async with open_shell(size=(80, 12)) as shell:
        await board(shell, conversation)
        await shell.shows("Todo list of the agent 0/100   item 1")
        for row in ("1  request number 1", "2  request number 2", "3  request number 3"):
            assert row in shell.text


@pytest.mark.parametrize("height", [8, 10])
async def test_on_the_lowest_screens_the_board_keeps_its_rows_and_the_list_is_left_out(
    open_shell: OpenShell, engine: FakeEngine, height: int
) -> None:
    conversation = engine.seed("retry", messages=8)
    engine.tasks.set(conversation.id, long_board())
    async with open_shell(size=(80, height)) as shell:
        await board(shell, conversation)
        await shell.shows("1  request number 1")
        rows = [row for row in shell.text.splitlines() if "of a long day" in row]
        conversation.set_todos(SEVEN)
        await shell.pilot.pause()
        assert [row for row in shell.text.splitlines() if "of a long day" in row] == rows
        assert "Todo list of the agent" not in shell.text


@pytest.mark.parametrize(
    ("done", "first"), [(0, 1), (3, 3), (99, 99), (100, 99)], ids=["first", "within", "last", "all done"]
)
def test_the_items_in_sight_are_those_around_the_current_one(done: int, first: int) -> None:
    items = (TodoItem(f"item {number}", DONE if number <= done else TodoStatus.PENDING) for number in range(1, 101))
    heading, *rows = todo_rows(TodoList(tuple(items)), 60, 24, 2)
    assert heading.plain == f"Todo list of the agent {done}/100   {first} to {first + 1} of 100"
    assert [row.plain.split()[-1] for row in rows] == [str(first), str(first + 1)]


@pytest.mark.parametrize("width", [1, 10, 40])
def test_no_row_is_wider_than_the_sheet(width: int) -> None:
    todos = TodoList(tuple(TodoItem("長い項目" * 100) for _ in range(9)))
    for height in (10, 24, 60):
        assert all(row.cell_length <= max(width, 3) for row in todo_rows(todos, width, height, 2))
