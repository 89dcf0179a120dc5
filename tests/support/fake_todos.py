"""The todo list of a conversation without an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from engine.executor.requests import Accepted, Receipt, Refused
from tools.displays import TodoItem, TodoList


@dataclass
class FakeTodos:
    """Keeps the list in the record of its conversation."""

    read: Callable[[], TodoList]
    write: Callable[[TodoList], None]
    refusal: str = ""
    """Reason with which every change is refused."""
    changes: list[tuple[TodoItem, ...]] = field(default_factory=list[tuple[TodoItem, ...]])

    @property
    def now(self) -> TodoList:
        return self.read()

    async def replace(self, seen: TodoList, items: Sequence[TodoItem]) -> Receipt:
        if self.refusal:
            return Refused(self.refusal)
        self.changes.append(tuple(items))
        self.write(replace(seen, items=tuple(items), edited=True))
        return Accepted()
