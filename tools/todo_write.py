"""todo_write: the model's own list of what is to be done; each call gives the whole list."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.arguments import Arguments, object_schema
from tools.contract import (
    JsonObject,
    PlainDisplay,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.todo_items import (
    LONGEST_ACTIVE_FORM,
    LONGEST_CONTENT,
    MOST_ITEMS,
    TodoItem,
    TodoList,
    TodoStatus,
    lines_of,
    one_item_line,
)
from tools.wording import counted

NAME: Final = "todo_write"
FIELDS: Final = ("content", "status", "activeForm")
CLEARED: Final = "The todo list is empty now."
_SPEC: Final = ToolSpec(
    NAME,
    "Keep a list of what is to be done, which the user sees and may change. Each call replaces the whole list. Use it "
    "for work of three or more steps: have one item in progress, and mark it completed as soon as it is.",
    object_schema(
        {
            "todos": {
                "type": "array",
                "maxItems": MOST_ITEMS,
                "items": object_schema(
                    {
                        "content": {"type": "string", "description": "What to do, on one line."},
                        "status": {"type": "string", "enum": list(TodoStatus)},
                        "activeForm": {"type": "string", "description": "The same while it is done: Running the tests"},
                    },
                    ["content", "status"],
                ),
            }
        },
        ["todos"],
    ),
    ToolClass.READ,
)


class TodoWrite(Struct, frozen=True):
    """The tool; the list is stored with its result."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Show how far the work is."""
        return ToolRequest(summary=TodoList(items_of(args)).summary)

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Hand the list over, to be stored in the move of this result."""
        items = items_of(args)
        return ToolOutput(result_text(items), display=PlainDisplay("\n".join(lines_of(items))), todos=items)


def items_of(args: JsonObject) -> tuple[TodoItem, ...]:
    """The items of a call.

    Raises:
        ToolInputError: one of them, or the list, is not as the schema says.
    """
    Arguments(args, ("todos",))
    given = args.get("todos")
    if not isinstance(given, list):
        raise ToolInputError("The argument todos is missing: give the whole list, or [] to clear it.")
    if len(given) > MOST_ITEMS:
        raise ToolInputError(f"todos has {len(given):,} items; at most {MOST_ITEMS} are kept: join some of them.")
    found = Arguments(args, ("todos",)).objects("todos") if given else []
    return tuple(_item(fields, f"todos[{place}].") for place, fields in enumerate(found))


def _item(fields: JsonObject, where: str) -> TodoItem:
    read = Arguments(fields, FIELDS, where)
    content = _line(read, "content", where, LONGEST_CONTENT)
    if not content:
        raise ToolInputError(f"{where}content is empty: say what is to be done.")
    word = read.text("status")
    if word not in set(TodoStatus):
        raise ToolInputError(f"{where}status must be one of {', '.join(TodoStatus)}.")
    active = _line(read, "activeForm", where, LONGEST_ACTIVE_FORM) if read.has("activeForm") else ""
    return TodoItem(content, TodoStatus(word), active)


def _line(read: Arguments, name: str, where: str, most: int) -> str:
    text = read.text(name)
    if len(text) > most:
        raise ToolInputError(f"{where}{name} has {len(text):,} characters; at most {most} are kept: shorten it.")
    return one_item_line(text)


def result_text(items: tuple[TodoItem, ...]) -> str:
    """The result as the model reads it."""
    if not items:
        return CLEARED
    numbers = Counter(item.status for item in items)
    parts = [f"{numbers[status]} {status.value.replace('_', ' ')}" for status in TodoStatus if numbers[status]]
    text = f"The todo list is kept: {counted(len(items), 'item')}, {', '.join(parts)}."
    running = numbers[TodoStatus.IN_PROGRESS]
    return f"{text} {running} items are in progress: have one in progress at a time." if running > 1 else text
