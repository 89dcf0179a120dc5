"""Notes for the model about the todo list and the plan, at the end of a request or behind a summary.

Their texts are byte-stable: a model reads them, and a summary is cached with them.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from engine.machine.views import ContextView
from tools.todo_items import TodoList, lines_of

REMIND_AFTER: Final = 10
"""Model calls without a new list before a reminder."""
MOST_REMINDERS: Final = 3
"""Reminders of one run."""
CHANGED: Final = "[The user changed the todo list. It is now:\n{items}\nWork by it; todo_write replaces all of it.]"
EMPTIED: Final = "[The user cleared the todo list. Write another one only if you need it.]"
AGAIN: Final = "[Your todo list, from a message that you no longer see:\n{items}]"
REMINDER: Final = (
    "[The todo list has not changed for {calls} model calls. It is now:\n{items}\n"
    "If something is done, or is no longer to be done, call todo_write; otherwise go on.]"
)
PLAN: Final = "\n\n[The plan that the user approved, word for word:\n{plan}\n]"


def todo_note(todos: TodoList, *, seen: bool) -> str:
    """The list where the model does not know it: the user changed it, or its own call is not `seen` any more."""
    if todos.edited:
        return CHANGED.format(items=_items(todos)) if todos.items else EMPTIED
    return AGAIN.format(items=_items(todos)) if todos.is_open and not seen else ""


def reminder(todos: TodoList, calls: int) -> str:
    """The reminder after so many model calls without a new list."""
    return REMINDER.format(calls=calls, items=_items(todos))


def with_plan(view: ContextView, plan: str, plan_at: int) -> ContextView:
    """The view with the accepted plan behind its summary, where the messages that show the plan are left out."""
    if not plan or not view.summary or view.start_seq <= plan_at:
        return view
    return replace(view, summary=view.summary + PLAN.format(plan=plan))


def _items(todos: TodoList) -> str:
    return "\n".join(lines_of(todos.items))
