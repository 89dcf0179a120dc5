"""The todo list of the conversation in view, in its dock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.machine.states import State, is_busy
from tools.todo_items import TodoList

if TYPE_CHECKING:
    from phoenix_tui.widgets.dock import Dock


def show_todos(dock: Dock, todos: TodoList, state: State) -> None:
    """Show the list; the panel is made with the first one."""
    if dock.todos is None:
        if not todos.items:
            return
        # After the first frame, with the first list.
        from phoenix_tui.widgets.todo_panel import TodoPanel  # noqa: PLC0415 - as said

        dock.todos = TodoPanel()
        dock.mount(dock.todos, before=dock.question if dock.question.is_attached else "#rule")
    dock.todos.show(todos, works=is_busy(state))
