"""The task board: small, long, hard to show, without tasks; one task; messages without a task."""

from __future__ import annotations

from typing import Final

from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.task_sheet import TaskSheet
from phoenix_tui.modals.tasks_sheet import TasksSheet
from phoenix_tui.modals.text_sheet import ConfirmSheet
from tests.snapshots.booth import LARGE, SMALL, Booth
from tests.snapshots.scenes_plan import ITEMS, MANY
from tests.support.fake_task_boards import EMPTY, hard_board, long_board, small_board
from tests.support.shell import Shell
from tools.displays import TodoList

BOTH: Final = (SMALL, LARGE)
NARROW: Final = (40, 24)


async def board(shell: Shell) -> None:
    """Open the board of the conversation in view."""
    await shell.pilot.press("f3")
    await shell.until(lambda: isinstance(shell.top, TasksSheet))


async def tasks(place: Booth) -> None:
    """The board with a few tasks: chosen, filtered, changed; one task; messages without one."""
    conversation = place.engine.seed("retry", messages=8)
    place.engine.tasks.set(conversation.id, small_board())
    place.engine.tasks.loose[conversation.id] = (7, 8)
    async with place.opened() as shell:
        await shell.open(conversation)
        await board(shell)
        await place.take(shell, "small", (*BOTH, NARROW))
        await shell.pilot.press("down", "s")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))
        await place.take(shell, "status", (SMALL,))
        await shell.pilot.press("escape", "x")
        await shell.until(lambda: isinstance(shell.top, ConfirmSheet))
        await place.take(shell, "delete", (SMALL,))
        await shell.pilot.press("escape", "slash")
        await shell.type("notes")
        await place.take(shell, "filtered", (SMALL,))
        await shell.pilot.press("escape", "n")
        await shell.shows("#7")
        await place.take(shell, "no-task", (SMALL,))
        await shell.pilot.press("escape", "enter")
        await shell.until(lambda: isinstance(shell.top, TaskSheet))
        await shell.shows("#1  you: message 0")
        await place.take(shell, "task", (*BOTH, NARROW))


async def tasks_hard(place: Booth) -> None:
    """200 tasks, then long words, wide letters and control characters."""
    conversation = place.engine.seed("long day", messages=2)
    place.engine.tasks.set(conversation.id, long_board())
    async with place.opened() as shell:
        await shell.open(conversation)
        await board(shell)
        await shell.pilot.press(*["pagedown"] * 10)
        await place.take(shell, "long", BOTH)
        await shell.pilot.press("o")
        await shell.shows("newest first")
        await place.take(shell, "newest", (SMALL,))
        await shell.pilot.press("o")
        await shell.lacks("newest first")
        place.engine.tasks.set(conversation.id, hard_board())
        await shell.shows("failed 2")
        await shell.pilot.press(*["up"] * 9)
        await place.take(shell, "hard", (*BOTH, NARROW))
        await shell.pilot.press("down", "down", "enter")
        await shell.until(lambda: isinstance(shell.top, TaskSheet))
        await place.take(shell, "hard-task", BOTH)


async def tasks_empty(place: Booth) -> None:
    """Boards without tasks: each says why, and what changes it."""
    conversation = place.engine.seed("quiet", messages=2)
    place.engine.tasks.set(conversation.id, EMPTY["off"])
    async with place.opened() as shell:
        await shell.open(conversation)
        await board(shell)
        for name, view in EMPTY.items():
            place.engine.tasks.set(conversation.id, view)
            await place.take(shell, name, BOTH)


async def tasks_todos(place: Booth) -> None:
    """The agent's todo list above its board: of seven items, of a hundred, and above no tasks."""
    conversation = place.engine.seed("retry", messages=8)
    place.engine.tasks.set(conversation.id, small_board())
    conversation.set_todos(TodoList(ITEMS))
    async with place.opened() as shell:
        await shell.open(conversation)
        await board(shell)
        await place.take(shell, "seven", (*BOTH, NARROW))
        conversation.set_todos(TodoList(MANY))
        await shell.shows("39/100")
        await place.take(shell, "hundred", BOTH)
        place.engine.tasks.set(conversation.id, EMPTY["off"])
        await shell.shows("Tracking is off")
        await place.take(shell, "no-tasks", (SMALL,))


SCENES: Final = {"tasks": tasks, "tasks-todos": tasks_todos, "tasks-hard": tasks_hard, "tasks-empty": tasks_empty}
