"""Editing keys in the order of typing.

Textual inserts a letter when its key event arrives, but runs a binding such as Backspace only once the event went up
to the app: what was typed in one burst (a paste without brackets, a busy loop) would be edited in another order.
"""

from __future__ import annotations

from typing import Final

from textual import events
from textual.widgets import TextArea

EDITS: Final = {
    "backspace": TextArea.action_delete_left,
    "delete": TextArea.action_delete_right,
    "left": TextArea.action_cursor_left,
    "right": TextArea.action_cursor_right,
    "home": TextArea.action_cursor_line_start,
    "end": TextArea.action_cursor_line_end,
}


def edit_at_once(area: TextArea, event: events.Key) -> bool:
    """Carry out an editing key now; False where it is none."""
    edit = EDITS.get(event.key)
    if edit is None:
        return False
    event.stop()
    event.prevent_default()
    edit(area)
    return True
