"""The todo list: one row, all rows, a hundred of them, hostile texts."""

from __future__ import annotations

from typing import Final

from tests.phoenix_tui.shell.test_shell_plan import plan_question
from tests.snapshots.booth import LARGE, SMALL, Booth
from tools.displays import TodoItem, TodoList, TodoStatus

BOTH: Final = (SMALL, LARGE)
ITEMS: Final = (
    TodoItem("Read tests/test_backoff.py", TodoStatus.COMPLETED),
    TodoItem("Find where the delay is doubled", TodoStatus.COMPLETED),
    TodoItem("Ask about the upper bound", TodoStatus.CANCELLED),
    TodoItem("Bound the delay in relay/retry.py", TodoStatus.IN_PROGRESS, "Bounding the delay in relay/retry.py"),
    TodoItem("再試行の上限をテストで確かめる。長い文でも列は揃ったままで、途中で切れるときは文字の境目で切れる。"),
    TodoItem(f"Rename {'retry_with_exponential_backoff_' * 8}"),
    TodoItem("Clear\x1b[2J the\x07 bell and \u202eright to left\u202c"),
)
MANY: Final = tuple(
    TodoItem(f"Migrate table number {number}", TodoStatus.COMPLETED if number < 40 else TodoStatus.PENDING)
    for number in range(1, 101)
)


async def todo_list(place: Booth) -> None:
    """No list, one row of it, all of it, a hundred items."""
    async with place.opened() as shell:
        conversation = await shell.say("Fix the backoff")
        await shell.pilot.press("ctrl+t")
        await shell.until(lambda: shell.toasts)
        await place.take(shell, "empty", (SMALL,))
        conversation.set_todos(TodoList(ITEMS))
        await shell.shows("todo 3/7")
        await place.take(shell, "row", BOTH)
        await shell.pilot.press("ctrl+t")
        await shell.shows("[>]")
        await place.take(shell, "all", BOTH)
        conversation.set_todos(TodoList(MANY))
        await shell.shows("39/100")
        await place.take(shell, "hundred", BOTH)
        await shell.pilot.press("escape", "ctrl+t", "ctrl+l")
        await shell.until(lambda: shell.rows.has_focus)
        await place.take(shell, "in-the-list", BOTH)


SHORT: Final = """# Bound the delay

The delay in `relay/retry.py` doubles without a limit.

1. Add `max_delay = 60.0` to **Backoff**
2. Use it in `next_delay`
3. Test it: `tests/test_backoff.py`

| file | change |
|---|---|
| relay/retry.py | +4 -1 |
| tests/test_backoff.py | +12 |
"""
WORDS: Final = f"表を移す, and {'check_each_column_' * 6}"
LONG: Final = "\n\n".join(f"## Step {number}\n\nMigrate table number {number}, {WORDS}" for number in range(1, 40))


async def plan(place: Booth) -> None:
    """A plan, a long one, the line for remarks, the editor."""
    for name, text in (("short", SHORT), ("long", LONG)):
        async with place.opened() as shell:
            await shell.say("Bound the delay")
            shell.conversation.ask(plan_question(text))
            await shell.shows("1 a")
            await place.take(shell, name, BOTH)
            if name == "short":
                shell.answering.since = shell.question.gate.since = shell.answering.typed_at = 0.0  # long ago
                await shell.pilot.press("r")
                await shell.shows("Enter sends your remarks")
                await place.take(shell, "remarks", (SMALL,))


SCENES: Final = {"todo-list": todo_list, "plan": plan}
