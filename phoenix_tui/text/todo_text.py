"""Texts of the agent's todo list beside the task board."""

from __future__ import annotations

from typing import Final

from phoenix_tui.text.task_text import shown
from tools.todo_items import TodoList, lines_of

HEADING: Final = "Todo list of the agent"


def todo_heading(todos: TodoList) -> str:
    """Name of the list with its progress, `Todo list of the agent 3/7`."""
    return f"{HEADING} {todos.progress}"


def todo_lines(todos: TodoList) -> list[str]:
    """The whole list as lines without signs; empty without items."""
    if not todos.items:
        return []
    return [f"{todo_heading(todos)}:", *(shown(line) for line in lines_of(todos.items))]
