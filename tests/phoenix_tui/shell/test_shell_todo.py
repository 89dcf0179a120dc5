"""The todo list, and plans: read, changed, approved."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice
from engine.machine.messages import ToolCall
from engine.machine.states import AwaitingLlm, Idle, Requesting, Run
from engine.updates import Question, StateChanged
from phoenix_tui.modals.tasks_sheet import TasksSheet, todo_rows
from phoenix_tui.modals.text_sheet import ConfirmSheet, EditSheet, LineSheet, TextSheet
from phoenix_tui.widgets.answer_keys import TYPING_PAUSE
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.phoenix_tui.shell.test_shell_question import asked
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.fake_task_boards import long_board, small_board
from tests.support.shell import Shell
from tools.contract import PlainDisplay, ToolClass, ToolRequest
from tools.displays import TodoItem, TodoList, TodoStatus

READ = TodoItem("Read the code", TodoStatus.COMPLETED)
TEST = TodoItem("Run the tests", TodoStatus.IN_PROGRESS, "Running the tests")
REPORT = TodoItem("Report")
LIST = TodoList((READ, TEST, REPORT))


def words(shell: Any) -> list[str]:
    return [item.line for item in shell.conversation.todos.now.items]


async def test_a_list_is_one_row_with_progress_and_the_current_item_until_ctrl_t(shell: Shell) -> None:
    conversation = await shell.say("go")
    await shell.press("ctrl+t", until=lambda: "There is no todo list here; /todo add TEXT begins one." in shell.toasts)
    conversation.set_todos(LIST)
    await shell.shows("todo 1/3 Running the tests")
    assert "○ Report" not in shell.text
    await shell.press("ctrl+t", shows="3 ○ Report")
    assert "1 ✓ Read the code" in shell.text
    assert "2 ▸ Run the tests" in shell.text
    await shell.press("escape", until=lambda: shell.composer.has_focus)
    assert "○ Report" in shell.text, "it stays open for reading"
    await shell.press("ctrl+t")
    await shell.lacks("○ Report")


async def test_keys_complete_edit_drop_and_add_items(shell: Any) -> None:
    conversation = await shell.say("go")
    conversation.set_todos(LIST)
    await shell.until(lambda: shell.dock.todos is not None)
    await shell.press("ctrl+t", until=lambda: shell.dock.todos.has_focus)
    assert shell.dock.todos.chosen == 1, "the current item is chosen"
    await shell.press("space", until=lambda: words(shell)[1] == "[x] Run the tests")
    await shell.press("space", until=lambda: words(shell)[1] == "[ ] Run the tests")
    await shell.press("enter", until=lambda: isinstance(shell.top, LineSheet))
    await shell.enter("!", until=lambda: words(shell)[1] == "[ ] Run the tests!")
    await shell.until(lambda: shell.dock.todos.has_focus)
    await shell.press("delete", until=lambda: words(shell) == ["[x] Read the code", "[ ] Report"])
    await shell.press("a", until=lambda: isinstance(shell.top, LineSheet))
    await shell.enter("push", until=lambda: words(shell)[-1] == "[ ] push")
    await shell.until(lambda: shell.dock.todos.has_focus)
    await shell.press("down", "down", "down", until=lambda: shell.composer.has_focus)


async def test_the_command_adds_completes_edits_drops_and_clears(shell: Any) -> None:
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
    await shell.press("y", until=lambda: words(shell) == [])


async def test_a_change_that_is_refused_says_why(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.todos.refusal = "The list changed in the meantime; look at it again."
    await shell.command("/todo add Push")
    await shell.until(lambda: conversation.todos.refusal in shell.toasts)


async def test_a_finished_list_leaves_the_dock_with_the_end_of_the_run(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.play(StateChanged(AwaitingLlm(1, Run("r", 9), Requesting()), 0.0))
    conversation.set_todos(TodoList((READ, TEST)))
    await shell.shows("todo 1/2")
    conversation.set_todos(TodoList((READ, TodoItem("Run the tests", TodoStatus.CANCELLED))))
    await shell.shows("todo 2/2")
    conversation.play(StateChanged(Idle(2), 0.0))
    await shell.lacks("todo 2/2")


async def test_the_list_of_another_conversation_is_not_shown(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.set_todos(LIST)
    await shell.shows("todo 1/3")
    await shell.command("/new")
    await shell.lacks("todo 1/3")
    await shell.open(conversation)
    await shell.shows("todo 1/3")


async def test_the_conversation_list_shows_how_far_the_list_is(shell: Shell) -> None:
    conversation = await shell.say("go")
    conversation.set_todos(LIST)
    await shell.press("ctrl+l")
    await shell.until(lambda: any(" 1/3 " in line and "todo" not in line for line in shell.text.splitlines()))


PLAN = "# Bound the delay\n\nRead **retry.py**, then:\n\n- change `delay`\n- run the tests"


def plan_question(plan: str = PLAN) -> Question:
    request = ToolRequest("Bound the delay", preview=PlainDisplay(plan), plan=plan)
    call = ToolCall("call-1", "exit_plan", "{}")
    return Question(call, request, "in plan mode, nothing is changed before you approve", "", "", ToolClass.READ)


def mode_of(shell: Any) -> str:
    return str(shell.conversation.record.permission_mode.value)


async def planned(shell: Any, plan: str = PLAN) -> Any:
    """A conversation whose plan has been in view for a while."""
    found = plan_question(plan)
    conversation, _ = await asked(
        shell, **{name: getattr(found, name) for name in ("call", "request", "reason", "rule", "tool_class")}
    )
    return conversation


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("3", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ACCEPT_EDITS)),
        ("a", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ACCEPT_EDITS)),
        ("1", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ASK)),
        ("2", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.FRESH)),
        ("4", ApprovalAnswer(ApprovalChoice.DENY, plan_choice=PlanChoice.LEAVE)),
    ],
)
async def test_a_number_or_letter_answers_the_plan(open_shell: Any, key: str, answer: ApprovalAnswer) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await planned(shell)
        await shell.shows("Carry out this plan?")
        await shell.press(key, until=lambda: conversation.answers)
        assert conversation.answers == [("call-1", answer)]


async def test_the_plan_is_rendered_and_its_answers_are_named(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await planned(shell)
        await shell.shows("• change delay")
        assert "**" not in shell.text
        for words in (
            "› y  Yes, and ask before each change",
            "  s  Yes, with a fresh context, and accept edits",
            "  a  Yes, and accept edits",
            "  n  No, stay in plan mode",
            "  r  No, tell it what to change",
            "  e  Edit the plan first …",
        ):
            assert words in shell.text


async def test_remarks_are_written_on_a_line_or_as_a_message(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await planned(shell)
        await shell.press("5", until=lambda: shell.question.line.is_open)
        await shell.type("add tests", shows="Enter sends your remarks; the agent revises its plan.")
        await shell.press("enter", until=lambda: conversation.answers)
        assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY, reason="add tests"))]


async def test_the_rule_above_a_message_says_that_it_asks_for_another_plan(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await planned(shell)
        shell.answering.clock.seconds += TYPING_PAUSE
        await shell.type("more", shows="Enter: no, change the plan as this says")
        await shell.press("enter", until=lambda: conversation.answers)
        assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY, reason="more"))]


async def test_e_changes_the_plan_and_its_answer_carries_it(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await planned(shell)
        await shell.press("e", until=lambda: isinstance(shell.top, EditSheet))
        await shell.type(" twice", "ctrl+s", shows="run the tests twice")
        shell.answering.clock.seconds += TYPING_PAUSE
        await shell.press("1", until=lambda: conversation.answers)
        [(_, answer)] = conversation.answers
        assert answer == ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ASK, plan=f"{PLAN} twice")


async def test_an_e_typed_into_a_message_is_text_where_no_plan_waits(shell: Shell) -> None:
    await asked(shell)
    await shell.type("e")
    assert shell.composer.text == "e"


async def test_a_yes_to_a_long_plan_counts_once_all_of_it_was_in_sight(shell: Shell) -> None:
    conversation = await planned(shell, "\n\n".join(f"{number}. step" for number in range(40)))
    await shell.press("1", until=lambda: shell.question.gate.refusal)
    assert conversation.answers == []


async def test_a_hostile_plan_reaches_no_terminal_and_is_laid_out(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await planned(shell, "# a\x1b]52;c;AAAA\x07\n\n\u202egnp.exe 漢字\n\n" + "[" * 2_000)
        await shell.shows("漢字")
        shell.conversation.ask(plan_question("漢字 \x1b[2J\n" + "[" * 30_000))
        await shell.shows("[[[[")
        assert not {"\x1b", "\x07", "\u202e"} & set(shell.text)


async def test_the_command_shows_the_approved_plan_or_how_to_begin_plan_mode(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        shell.screen.action_command("plan")
        await shell.shows("Enter begins plan mode")
        await shell.press("enter", shows="Enter leaves plan mode")
        assert mode_of(shell) == "plan"
        await shell.press("enter", shows="Enter begins plan mode")
        assert mode_of(shell) == "ask"
        await shell.press("escape", until=lambda: shell.composer.has_focus)
        await shell.command("/plan on")
        await shell.until(lambda: any(toast.startswith("Plan mode: the agent reads") for toast in shell.toasts))
        await shell.command("/plan off")
        assert mode_of(shell) == "ask"
        await shell.command("/plan edit")
        await shell.until(lambda: "No plan waits for an answer here." in shell.toasts)
        await shell.command("/plan what")
        await shell.until(lambda: any(toast.startswith("/plan shows") for toast in shell.toasts))
        conversation.record = replace(conversation.record, plan=PLAN)
        shell.screen.action_command("plan")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        await shell.shows("Bound the delay")


DONE, DOING = TodoStatus.COMPLETED, TodoStatus.IN_PROGRESS
SEVEN = TodoList((
    *(TodoItem(f"step {number}", DONE) for number in range(1, 4)),
    TodoItem("run the tests", DOING, "running the tests"),
    *(TodoItem(f"step {number}") for number in range(5, 8)),
))


async def open_board(shell: Shell, conversation: FakeConversation) -> None:
    await shell.open(conversation)
    await shell.press("f3", until=lambda: isinstance(shell.top, TasksSheet))


async def test_the_list_stands_above_the_board_with_its_progress(open_shell: OpenShell, engine: FakeEngine) -> None:
    conversation = engine.seed("retry", messages=8)
    engine.tasks.set(conversation.id, small_board())
    conversation.set_todos(SEVEN)
    async with open_shell() as shell:
        await open_board(shell, conversation)
        await shell.shows("Todo list of the agent 3/7")
        parts = ("Tasks   tracked 12", "Todo list of the agent 3/7", "4. ▸ run the tests", "1  find out why")
        places = [shell.text.index(part) for part in parts]
        assert places == sorted(places)
        for row in ("1  find out", "2  fix the", "3  publish", "4  write", "Planning: ", "│ the second attempt"):
            assert row in shell.text, "the board is whole"


async def test_a_new_list_is_shown_at_once_and_none_takes_no_row(open_shell: OpenShell, engine: FakeEngine) -> None:
    conversation = engine.seed("retry", messages=8)
    engine.tasks.set(conversation.id, small_board())
    async with open_shell(size=(80, 24)) as shell:
        await open_board(shell, conversation)
        assert "Todo list of the agent" not in shell.text
        conversation.set_todos(SEVEN)
        await shell.shows("Todo list of the agent 3/7")
        conversation.set_todos(TodoList((TodoItem("\x1b[2Jone [bold]two[/]"),)))
        await shell.shows("Todo list of the agent 0/1")
        assert "1. ○ one [bold]two[/]" in shell.text
        conversation.set_todos(TodoList())
        await shell.lacks("Todo list of the agent")


async def test_a_long_list_leaves_rows_to_a_long_board_on_a_low_screen(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    conversation = engine.seed("retry", messages=8)
    engine.tasks.set(conversation.id, long_board())
    conversation.set_todos(TodoList(tuple(TodoItem(f"item {number}") for number in range(1, 101))))
    async with open_shell(size=(80, 12)) as shell:
        await open_board(shell, conversation)
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
        await open_board(shell, conversation)
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
