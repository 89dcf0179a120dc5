"""Editing keys in the order of typing.

Textual inserts a letter when its key event arrives, but runs a binding such as Backspace only once the event went up to
the app: keys typed in one burst (a paste without brackets, a busy loop) would be edited in another order.
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from functools import cache
from typing import Final, cast

from textual import events
from textual.actions import parse
from textual.binding import Binding
from textual.widgets import TextArea

EDITS: Final = ("cursor_", "delete_", "select_")
"""Prefixes of the actions that move the cursor of a text area, remove text or select it."""


@cache
def _edits(kind: type[TextArea]) -> dict[str, str]:
    """Actions by key, of the class and its bases; the app itself runs priority bindings."""
    return {
        key.strip(): each.action
        for one in reversed(kind.__mro__)
        for each in vars(one).get("BINDINGS", ())
        if isinstance(each, Binding) and not each.priority and each.action.startswith(EDITS)
        for key in each.key.split(",")
    }


def edit_at_once(area: TextArea, event: events.Key) -> bool:
    """Carry out an editing key now; False where it is none."""
    action = _edits(type(area)).get(event.key)
    if action is None:
        return False
    event.stop()
    event.prevent_default()
    _, name, arguments = parse(action)
    edit: object = getattr(area, f"action_{name}")(*arguments)
    if isinstance(edit, Coroutine):  # Ctrl+K: it waits for nothing, and so ends with its first step
        with suppress(StopIteration):
            cast("Coroutine[None, None, None]", edit).send(None)
    return True
