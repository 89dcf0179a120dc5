"""The todo list on the screen: one row, all rows, and the user's changes by keys and by command."""

from __future__ import annotations

from typing import Any

from engine.machine.states import AwaitingLlm, Idle, Requesting, Run
from engine.updates import StateChanged
from phoenix_tui.modals.text_sheet import ConfirmSheet, LineSheet
from tools.displays import TodoItem, TodoList, TodoStatus

READ = TodoItem("Read the code", TodoStatus.COMPLETED)
TEST = TodoItem("Run the tests", TodoStatus.IN_PROGRESS, "Running the tests")
REPORT = TodoItem("Report")
LIST = TodoList((READ, TEST, REPORT))


def words(shell: Any) -> list[str]:
    return [item.line for item in shell.conversation.todos.now.items]


async def test_a_list_is_one_row_with_progress_and_the_current_item_until_ctrl_t(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        await shell.pilot.press("ctrl+t")
        await shell.until(lambda: "There is no todo list here; /todo add TEXT begins one." in shell.toasts)
        conversation.set_todos(LIST)
        await shell.shows("todo 1/3 Running the tests")
        assert "[ ] Report" not in shell.text
        await shell.pilot.press("ctrl+t")
        await shell.shows("3 [ ] Report")
        assert "1 [x] Read the code" in shell.text
        assert "2 [>] Run the tests" in shell.text
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.composer.has_focus)
        assert "[ ] Report" in shell.text, "it stays open for reading"
        await shell.pilot.press("ctrl+t")
        await shell.lacks("[ ] Report")


async def test_keys_complete_edit_drop_and_add_items(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.set_todos(LIST)
        await shell.until(lambda: shell.dock.todos is not None)
        await shell.pilot.press("ctrl+t")
        await shell.until(lambda: shell.dock.todos.has_focus)
        assert shell.dock.todos.chosen == 1, "the current item is chosen"
        await shell.pilot.press("space")
        await shell.until(lambda: words(shell)[1] == "[x] Run the tests")
        await shell.pilot.press("space")
        await shell.until(lambda: words(shell)[1] == "[ ] Run the tests")
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, LineSheet))
        await shell.type("!")
        await shell.pilot.press("enter")
        await shell.until(lambda: words(shell)[1] == "[ ] Run the tests!")
        await shell.until(lambda: shell.dock.todos.has_focus)
        await shell.pilot.press("delete")
        await shell.until(lambda: words(shell) == ["[x] Read the code", "[ ] Report"])
        await shell.pilot.press("a")
        await shell.until(lambda: isinstance(shell.top, LineSheet))
        await shell.type("push")
        await shell.pilot.press("enter")
        await shell.until(lambda: words(shell)[-1] == "[ ] push")
        await shell.until(lambda: shell.dock.todos.has_focus)
        await shell.pilot.press("down", "down", "down")
        await shell.until(lambda: shell.composer.has_focus)


async def test_the_command_adds_completes_edits_drops_and_clears(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.say("go")
        await shell.command("/todo add  Write \x1b[31m the   docs ")
        await shell.command("/todo add Push")
        assert words(shell) == ["[ ] Write the docs", "[ ] Push"]
        await shell.command("/todo done 1")
        await shell.command("/todo edit 2 Push it")
        assert words(shell) == ["[x] Write the docs", "[ ] Push it"]
        await shell.command("/todo drop 1")
        assert words(shell) == ["[ ] Push it"]
        for wrong, said in (
            ("/todo done", "Give the number of an item, 1 to 1: /todo done 1."),
            ("/todo drop 2", "Give the number of an item, 1 to 1: /todo drop 1."),
            ("/todo burn", "/todo add TEXT, done N, drop N, edit N TEXT, clear; without a word it shows the list."),
            ("/todo add " + "x" * 501, "An item has at most 500 characters; shorten it."),
        ):
            await shell.command(wrong)
            await shell.until(lambda said=said: said in shell.toasts)
        assert words(shell) == ["[ ] Push it"]
        shell.screen.startup.command("/todo clear")
        await shell.until(lambda: isinstance(shell.top, ConfirmSheet))
        await shell.pilot.press("y")
        await shell.until(lambda: words(shell) == [])


async def test_a_change_that_is_refused_says_why(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.todos.refusal = "The list changed in the meantime; look at it again."
        await shell.command("/todo add Push")
        await shell.until(lambda: conversation.todos.refusal in shell.toasts)


async def test_a_finished_list_leaves_the_dock_with_the_end_of_the_run(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.play(StateChanged(AwaitingLlm(1, Run("r", 9), Requesting()), 0.0))
        conversation.set_todos(TodoList((READ, TEST)))
        await shell.shows("todo 1/2")
        conversation.set_todos(TodoList((READ, TodoItem("Run the tests", TodoStatus.CANCELLED))))
        await shell.shows("todo 2/2")
        conversation.play(StateChanged(Idle(2), 0.0))
        await shell.lacks("todo 2/2")


async def test_the_list_of_another_conversation_is_not_shown(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.set_todos(LIST)
        await shell.shows("todo 1/3")
        await shell.command("/new")
        await shell.lacks("todo 1/3")
        await shell.open(conversation)
        await shell.shows("todo 1/3")


async def test_the_conversation_list_shows_how_far_the_list_is(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.set_todos(LIST)
        await shell.pilot.press("ctrl+l")
        await shell.until(lambda: any(" 1/3 " in line and "todo" not in line for line in shell.text.splitlines()))
