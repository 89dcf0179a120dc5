"""The todo list of a conversation: its items, and the lines that show them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from tools.clean import clean_line

MOST_ITEMS: Final = 100
LONGEST_CONTENT: Final = 500
LONGEST_ACTIVE_FORM: Final = 200
"""Characters of an item, and of its words while it is being done."""


class TodoStatus(StrEnum):
    """Status of an item, as the model writes it."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


MARKS: Final = {
    TodoStatus.PENDING: "[ ]",
    TodoStatus.IN_PROGRESS: "[>]",
    TodoStatus.COMPLETED: "[x]",
    TodoStatus.CANCELLED: "[-]",
}
"""Sign of each status: letters alone, for every terminal, reader and model."""
OPEN: Final = frozenset({TodoStatus.PENDING, TodoStatus.IN_PROGRESS})


class TodoItem(Struct, frozen=True):
    """One item; its texts are single lines without control characters."""

    content: str
    status: TodoStatus = TodoStatus.PENDING
    active_form: str = field(default="", name="activeForm")
    """Words for it while it is being done, as in "Running the tests"; may be empty."""

    @property
    def is_open(self) -> bool:
        """True until it is completed or cancelled."""
        return self.status in OPEN

    @property
    def words(self) -> str:
        """Content of the item; while it is being done the words for that, where there are any."""
        return (self.active_form if self.status is TodoStatus.IN_PROGRESS else "") or self.content

    @property
    def line(self) -> str:
        """Sign and content."""
        return f"{MARKS[self.status]} {self.content}"


class TodoList(Struct, frozen=True):
    """The list of one conversation; the column `conversations.todos_json`."""

    items: tuple[TodoItem, ...] = ()
    edited: bool = False
    """True while the user's changes are newer than the model's list."""
    at: int = 0
    """Number of stored messages when the model wrote it: a view that begins later shows no call with this list."""

    @property
    def done(self) -> int:
        """Number of items that are completed or cancelled."""
        return sum(not item.is_open for item in self.items)

    @property
    def is_open(self) -> bool:
        """True while an item is left to do."""
        return any(item.is_open for item in self.items)

    @property
    def progress(self) -> str:
        """Done and all, as in `3/7`; empty without items."""
        return f"{self.done}/{len(self.items)}" if self.items else ""

    @property
    def current(self) -> TodoItem | None:
        """The item in progress, else the next one to do; None where all are done."""
        running = (item for item in self.items if item.status is TodoStatus.IN_PROGRESS)
        return next(running, None) or next((item for item in self.items if item.is_open), None)

    @property
    def summary(self) -> str:
        """Progress and the words of the current item."""
        current = self.current
        return f"{self.progress} {current.words}" if current is not None else self.progress


def lines_of(items: Sequence[TodoItem]) -> list[str]:
    """A line an item, numbered from 1 as `/todo` names them."""
    width = len(str(len(items)))
    return [f"{place:>{width}}. {item.line}" for place, item in enumerate(items, 1)]


def one_item_line(text: str) -> str:
    """Text of an item: one line, no control characters, single blanks."""
    return " ".join(clean_line(text).split())


def is_sound(items: Sequence[TodoItem]) -> bool:
    """True for items that `todo_write` or `/todo` could have stored."""
    return len(items) <= MOST_ITEMS and all(_is_sound(item) for item in items)


def _is_sound(item: TodoItem) -> bool:
    texts = (item.content, item.active_form)
    fits = 0 < len(item.content) <= LONGEST_CONTENT and len(item.active_form) <= LONGEST_ACTIVE_FORM
    return fits and all(one_item_line(text) == text for text in texts)
