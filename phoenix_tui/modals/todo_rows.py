"""Rows of the agent's todo list above the task board. Pure: values in, text out."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from phoenix_tui.text.labels import Tone
from phoenix_tui.text.task_text import format_todo_heading, shown
from phoenix_tui.widgets.todo_panel import TONES
from tools.todo_items import TodoList, lines_of

SHARE: Final = 10
"""The items take this part of the screen's rows at most."""
LEAST: Final = 2
"""Items below the heading; where there is no room for as many, the current one is beside it."""


def todo_rows(todos: TodoList, width: int, height: int, indent: int) -> list[Content]:
    """Heading and items around the current one, for a screen of this size; empty without items."""
    if not todos.items:
        return []
    room = height // SHARE
    head = Content.styled(format_todo_heading(todos), "bold")
    if room < LEAST:
        current = todos.current
        words = Content.styled(f"   {shown(current.words)}" if current is not None else "", Tone.QUIET.value)
        return [Content.assemble(head, words).truncate(width, ellipsis=True)]
    first = _first(todos, room)
    lines = list(zip(lines_of(todos.items), todos.items, strict=True))[first : first + room]
    if len(todos.items) > room:
        place = f"   {first + 1} to {first + len(lines)} of {len(todos.items)}"
        head = Content.assemble(head, (place, Tone.QUIET.value))
    rows = [head.truncate(width, ellipsis=True)]
    for line, item in lines:
        text = Content.styled(shown(line), TONES[item.status]).truncate(max(width - indent, 1), ellipsis=True)
        rows.append(Content.assemble(" " * indent, text))
    return rows


def _first(todos: TodoList, room: int) -> int:
    """Index of the first shown item: one before the current item, or before the end."""
    current = todos.current
    place = todos.items.index(current) if current is not None else len(todos.items)
    return max(min(place - 1, len(todos.items) - room), 0)
