"""/tasks and /track on the screen: every key of the board and of one task."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.records import AgentFacts, SpawnMode
from engine.records.tracked_tasks import TaskBoardView, TaskStatus, TrackingStatus
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.task_sheet import TaskSheet
from phoenix_tui.modals.tasks_sheet import TasksSheet
from phoenix_tui.modals.text_sheet import ConfirmSheet, LineSheet
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.fake_task_boards import EMPTY, hard_board, long_board, small_board, task
from tests.support.shell import Shell

WIDE = (100, 34)


async def says(shell: Shell, words: str) -> None:
    await shell.until(lambda: any(words in toast for toast in shell.toasts))


def talk(engine: FakeEngine, view: TaskBoardView | None = None, messages: int = 8) -> FakeConversation:
    """A conversation with a board, and three messages without a task."""
    conversation = engine.seed("retry", messages=messages)
    engine.tasks.set(conversation.id, small_board() if view is None else view)
    engine.tasks.loose[conversation.id] = tuple(range(7, min(messages, 9) + 1))
    return conversation


async def board(shell: Shell, conversation: FakeConversation, line: str = "") -> None:
    """Open the conversation and its board."""
    await shell.open(conversation)
    if line:
        await shell.type(line, "escape", "enter")
    else:
        await shell.press("f3")
    await shell.until(lambda: isinstance(shell.top, TasksSheet | TaskSheet))


def statuses(engine: FakeEngine, conversation: FakeConversation) -> list[TaskStatus]:
    return [one.status for one in engine.tasks.boards[conversation.id].tasks]


async def test_f3_shows_tasks_in_order_with_counts_words_of_their_status_and_the_planning_section_last(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        await board(shell, talk(engine))
        assert "tracked 12 · queue 3 · tracking on" in shell.text
        rows = ["✓ done     1  find out", "▸ running  2  fix the", "✗ failed   3  publish", "○ pending  4  write"]
        places = [shell.text.index(row) for row in rows]
        assert places == sorted(places)
        assert shell.text.index("Planning: 1 message, 1 preference") > places[-1]
        assert "│ the second attempt reuses the closed socket" in shell.text
        assert "prefers: The user wants short answers." in shell.text


async def test_s_asks_for_the_status_and_sets_it(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        await board(shell, conversation)
        await shell.press("down", "s", until=lambda: isinstance(shell.top, PickerSheet))
        assert "Status of task 2" in shell.text
        await shell.press("down", "enter", shows="Task 2 is done.")
        assert statuses(engine, conversation)[1] is TaskStatus.SUCCESS
        await shell.press("s", "escape", until=lambda: isinstance(shell.top, TasksSheet))
        assert statuses(engine, conversation)[1] is TaskStatus.SUCCESS


async def test_e_edits_the_text_in_place_and_esc_leaves_it(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        await board(shell, conversation)
        await shell.press("e", until=lambda: isinstance(shell.top, LineSheet))
        await shell.enter(" today", shows="The text of task 1 is changed.")
        assert engine.tasks.boards[conversation.id].tasks[0].description == "find out why the retry test hangs today"
        await shell.press("e", until=lambda: isinstance(shell.top, LineSheet))
        await shell.press("x", "escape", until=lambda: isinstance(shell.top, TasksSheet))
        assert engine.tasks.boards[conversation.id].tasks[0].description == "find out why the retry test hangs today"


async def test_x_deletes_only_after_a_yes_and_the_tasks_behind_it_move_up(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        await board(shell, conversation)
        await shell.press("x", until=lambda: isinstance(shell.top, ConfirmSheet))
        assert "Delete task 1, “find out why the retry test hangs”?" in shell.text
        await shell.press("n", until=lambda: isinstance(shell.top, TasksSheet))
        assert len(statuses(engine, conversation)) == 4
        await shell.press("delete", until=lambda: isinstance(shell.top, ConfirmSheet))
        await shell.press("y", shows="Task 1 is deleted; u restores it.")
        await shell.shows("running  1  fix the pool")
        assert len(statuses(engine, conversation)) == 3


async def test_u_restores_deleted_tasks_the_last_one_first(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=(80, 24)) as shell:
        conversation = talk(engine)
        before = engine.tasks.boards[conversation.id].tasks
        await board(shell, conversation)
        for _ in range(2):
            await shell.press("x", until=lambda: isinstance(shell.top, ConfirmSheet))
            await shell.press("y", shows="Task 1 is deleted; u restores it.")
            await shell.press("down", "up")
        await shell.press("u", shows="Task 1 is on the board again: fix the pool so that")
        await shell.press("q", until=lambda: shell.top is shell.screen)
        await shell.type("/tasks undo")
        await shell.press("escape", "enter", until=lambda: engine.tasks.boards[conversation.id].tasks == before)
        await shell.press("f3", shows="✓ done     1  find out")
        await shell.press("u", shows="There is nothing to undo.")


async def test_a_deletion_in_the_sheet_of_one_task_is_told_and_undone_on_the_board(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        await board(shell, conversation, "/tasks 3")
        await shell.until(lambda: isinstance(shell.top, TaskSheet))
        await shell.press("x", until=lambda: isinstance(shell.top, ConfirmSheet))
        await shell.press("n", until=lambda: isinstance(shell.top, TaskSheet))
        await shell.press("x", until=lambda: isinstance(shell.top, ConfirmSheet))
        await shell.press("y", until=lambda: isinstance(shell.top, TasksSheet))
        await shell.shows("Task 3 is deleted; u restores it.")
        await shell.press("u", shows="Task 3 is on the board again: publish the wheel")
        assert len(statuses(engine, conversation)) == 4


async def test_the_planning_section_has_neither_status_nor_text_to_change(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        await board(shell, talk(engine))
        await shell.press(*["down"] * 9, "s", "e", "x")
        await shell.pilot.pause()
        await shell.until(lambda: isinstance(shell.top, TasksSheet))
        await shell.press("enter", until=lambda: isinstance(shell.top, TaskSheet))
        await shell.shows("The user prefers tabs.")
        await shell.press("s", "e", "x")
        await shell.pilot.pause()
        assert isinstance(shell.top, TaskSheet)


async def test_enter_opens_a_task_and_enter_on_a_message_jumps_to_it(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=WIDE) as shell:
        await board(shell, talk(engine, messages=60))
        await shell.press("enter", until=lambda: isinstance(shell.top, TaskSheet))
        await shell.shows("#1  you: message 0")
        for words in ("Task 1", "done · 2h old", "Milestones", "read pool/conn.py", "Preferences", "Messages"):
            assert words in shell.text
        await shell.press("down", shows="› #2  agent: message 1")
        await shell.press("enter", until=lambda: shell.top is shell.screen)
        await shell.until(lambda: shell.transcript.canvas.viewport.slot == 1)


async def test_esc_in_a_task_returns_to_the_board_and_q_closes_it(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=WIDE) as shell:
        await board(shell, talk(engine))
        await shell.press("down", "enter", until=lambda: isinstance(shell.top, TaskSheet))
        await shell.press("escape", until=lambda: isinstance(shell.top, TasksSheet))
        await shell.shows("› ▸ running  2")
        await shell.press("q", until=lambda: shell.top is shell.screen)


async def test_status_text_and_deletion_work_in_the_sheet_of_one_task_too(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        await board(shell, conversation, "/tasks 3")
        await shell.until(lambda: isinstance(shell.top, TaskSheet))
        await shell.shows("Task 3")
        await shell.press("s", until=lambda: isinstance(shell.top, PickerSheet))
        await shell.press("up", "up", "up", "enter", shows="Task 3 is pending.")
        await shell.press("e", until=lambda: isinstance(shell.top, LineSheet))
        await shell.enter(" again", shows="publish the wheel again")
        await shell.press("x", until=lambda: isinstance(shell.top, ConfirmSheet))
        await shell.press("y", until=lambda: isinstance(shell.top, TasksSheet))
        assert [one.description for one in engine.tasks.boards[conversation.id].tasks][2] == "write release notes"


async def test_slash_filters_while_typing_and_esc_shows_all_again(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=WIDE) as shell:
        await board(shell, talk(engine))
        await shell.press("slash")
        await shell.type("socket", shows="filter: socket")
        await shell.lacks("publish the wheel")
        assert "fix the pool" in shell.text
        await shell.press("down", "enter", until=lambda: isinstance(shell.top, TaskSheet))
        await shell.shows("Task 2")
        await shell.press("escape", until=lambda: isinstance(shell.top, TasksSheet))
        await shell.type("zzz", shows="No task matches. Esc shows all.")
        await shell.press("escape", shows="publish the wheel")
        assert isinstance(shell.top, TasksSheet)
        await shell.press("escape", until=lambda: shell.top is shell.screen)


@pytest.mark.parametrize("by", ["key", "filter", "command"])
async def test_messages_without_a_task_are_shown_and_enter_jumps_to_one(
    open_shell: OpenShell, engine: FakeEngine, by: str
) -> None:
    async with open_shell(size=WIDE) as shell:
        await board(shell, talk(engine, messages=60), "/tasks none" if by == "command" else "")
        if by == "key":
            await shell.press("n")
        elif by == "filter":
            await shell.press("slash")
            await shell.type("no task")
        await shell.shows("#7  you: message 6")
        assert "publish the wheel" not in shell.text
        await shell.press("down", "enter", until=lambda: shell.top is shell.screen)
        await shell.until(lambda: shell.transcript.canvas.viewport.slot == 7)


async def test_n_again_shows_the_tasks_and_without_such_messages_a_sentence_says_so(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        engine.tasks.loose[conversation.id] = ()
        await board(shell, conversation)
        await shell.press("n", shows="Every message belongs to a task.")
        await shell.press("n", shows="publish the wheel")


async def test_o_shows_the_newest_first_and_reads_page_after_page(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=WIDE) as shell:
        await board(shell, talk(engine, long_board()))
        assert "1 / 200" in shell.text
        await shell.press("o", shows="1 / 200 · newest first")
        await shell.shows("request number 200 of")
        sheet = shell.top
        assert isinstance(sheet, TasksSheet)
        assert len(sheet.board.newest) == 50
        await shell.press(*["pagedown"] * 4, until=lambda: len(sheet.board.newest) == 100)
        for _ in range(4):
            await shell.press(*["pagedown"] * 5)
            await shell.pilot.pause()
        await shell.until(lambda: len(sheet.board.newest) == 200)
        await shell.press(*["pagedown"] * 20, shows="200 / 200 · newest first")
        await shell.shows("request number 1 of")
        await shell.press("o", shows="1 / 200")
        await shell.lacks("newest first")


async def test_a_board_that_changes_while_it_is_open_is_shown_anew_with_the_same_task_chosen(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        await board(shell, conversation)
        await shell.press("down", "down")
        view = small_board()
        moved = tuple(replace(one, order=one.order + 1) for one in view.tasks)
        first = replace(task(1, "a request before all", TaskStatus.RUNNING), id="new")
        status = replace(view.status, success=14, pending=0)
        engine.tasks.set(conversation.id, TaskBoardView((first, *moved), view.planning, status))
        await shell.shows("a request before all")
        assert "tracked 14 · queue 1" in shell.text
        assert "› ✗ failed   4  publish the wheel" in shell.text


async def test_a_task_that_is_open_follows_the_board_and_closes_when_it_is_gone(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        await board(shell, conversation, "/tasks 4")
        await shell.until(lambda: isinstance(shell.top, TaskSheet))
        view = small_board()
        changed = replace(view.tasks[3], status=TaskStatus.RUNNING, progresses=("outline written",))
        engine.tasks.set(conversation.id, replace(view, tasks=(*view.tasks[:3], changed)))
        await shell.shows("outline written")
        assert "▸ running" in shell.text
        engine.tasks.set(conversation.id, replace(view, tasks=view.tasks[:3]))
        await shell.until(lambda: isinstance(shell.top, TasksSheet))


async def test_t_switches_tracking_and_f_tracks_the_waiting_messages(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        await board(shell, conversation)
        await shell.press("t", shows="tracking off")
        await shell.press("t", shows="tracking on")
        await shell.press("f", shows="tracked 14 · queue 1")
        assert engine.tasks.flushed == [conversation.id]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("off", ("Tracking is off", "/track on switches it on", "costs tokens")),
        ("nothing-yet", ("No tasks yet.", "/track now")),
        ("only-old", ("Messages from now on are tracked.", "8 messages are from before tracking.")),
        ("planning-only", ("Planning: 1 message, 1 preference",)),
        ("problem", ("The model refused the request: rate limit reached.", "failed 4")),
    ],
)
async def test_a_board_without_tasks_says_why_and_what_to_do(
    open_shell: OpenShell, engine: FakeEngine, name: str, words: tuple[str, ...]
) -> None:
    async with open_shell(size=(120, 30)) as shell:
        await board(shell, talk(engine, EMPTY[name]))
        for one in words:
            assert one in shell.text
        await shell.press("s", "e", "x", "enter", "down", "o")
        await shell.pilot.pause()


@pytest.mark.parametrize("size", [(20, 10), (200, 60)])
async def test_texts_of_a_model_reach_the_screen_cleaned_and_cut_at_any_width(
    open_shell: OpenShell, engine: FakeEngine, size: tuple[int, int]
) -> None:
    async with open_shell(size=size) as shell:
        await board(shell, talk(engine, hard_board()))
        for _ in range(7):
            await shell.press("enter", until=lambda: isinstance(shell.top, TaskSheet))
            assert not any(sign in shell.text for sign in ("\x1b", "\u202e", "\x07", "evil"))
            await shell.press("escape", until=lambda: isinstance(shell.top, TasksSheet))
            await shell.press("down")
            assert not any(sign in shell.text for sign in ("\x1b", "\u202e", "\x07", "evil"))
        await shell.press(*["up"] * 4)
        assert size[0] < 80 or "Remove the cache [bold]now[/] gnp.exe" in shell.text


async def test_signs_are_ascii_where_the_terminal_has_no_others(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=WIDE, plain=True) as shell:
        await board(shell, talk(engine))
        for row in ("v done     1", "> running  2", "x failed   3", ". pending  4"):
            assert row in shell.text


async def test_a_click_chooses_a_row_and_one_on_the_chosen_row_opens_it(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        await board(shell, talk(engine))
        await shell.pilot.click("#rows", offset=(10, 2))
        await shell.shows("› ✗ failed   3")
        await shell.pilot.click("#rows", offset=(10, 2))
        await shell.until(lambda: isinstance(shell.top, TaskSheet))
        await shell.shows("Task 3")


async def test_a_change_that_is_refused_is_said_on_the_board_which_stays_open(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        await board(shell, conversation)
        await shell.press("s", until=lambda: isinstance(shell.top, PickerSheet))
        engine.tasks.boards[conversation.id] = TaskBoardView(status=small_board().status)
        await shell.press("enter", shows="This task is no longer on the board.")
        assert "publish the wheel" not in shell.text


@pytest.mark.parametrize("line", ["/tasks 1", "/track on"])
async def test_sub_agents_have_no_board_of_their_own(open_shell: OpenShell, engine: FakeEngine, line: str) -> None:
    async with open_shell(size=WIDE) as shell:
        conversation = talk(engine)
        facts = AgentFacts(engine.seed("parent").id, SpawnMode.BACKGROUND, "t1", 1, "look")
        conversation.record = replace(conversation.record, agent=facts)
        await shell.open(conversation)
        await shell.command(line)
        await says(shell, "Sub-agents have no task board")


async def test_40_columns_keep_mark_number_and_age(open_shell: OpenShell, engine: FakeEngine) -> None:
    async with open_shell(size=(40, 24)) as shell:
        await board(shell, talk(engine))
        await shell.shows("› ✓  1  find out why the retry …    2h")
        assert "Tasks tracked 12 · queue 3 · on" in shell.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/tasks 3 done", "Task 3 is done."),
        ("/tasks 3 success", "Task 3 is done."),
        ("/tasks 1 edit other words", "The text of task 1 is changed."),
        ("/tasks 9 done", "There is no task 9; the board has tasks 1 to 4."),
        ("/tasks 0", "Give the number of a task"),
        ("/tasks 99999999999999999999999", "Give the number of a task"),
        ("/tasks 1 finished", "Give the number of a task"),
        ("/tasks x", "Give the number of a task"),
        ("/track on", "Tracking is on for this conversation"),
        ("/track off", "Tracking is off for this conversation; its tasks stay."),
        ("/track now", "2 messages tracked"),
        ("/track later", "Give on, off or now"),
    ],
)
async def test_commands_change_a_task_or_tracking_and_answer_in_one_sentence(
    open_shell: OpenShell, engine: FakeEngine, line: str, said: str
) -> None:
    async with open_shell(size=WIDE) as shell:
        await shell.open(talk(engine))
        await shell.command(line)
        await says(shell, said)


async def test_without_messages_the_board_says_so_and_tracking_can_be_chosen_before_the_first_one(
    open_shell: OpenShell, engine: FakeEngine
) -> None:
    async with open_shell(size=WIDE) as shell:
        shell.screen.action_command("tasks")
        await shell.shows("nothing was sent in this conversation")
        await shell.press("escape", until=lambda: shell.composer.has_focus)
        await shell.command("/track off")
        await says(shell, "Tracking is off for this conversation")
        assert engine.tasks.boards[shell.conversation.id].status == TrackingStatus(enabled=False)
