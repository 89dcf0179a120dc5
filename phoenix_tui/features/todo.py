"""The todo list of the conversation in view: shown, and changed by the user for the next request."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from engine.api.conversation import ConversationApi
from phoenix_tui.features.front_end import FrontEnd, accepted
from tools.todo_items import LONGEST_CONTENT, TodoItem, TodoList, TodoStatus, lines_of, one_item_line
from tools.wording import counted, number_within

USAGE: Final = "/todo add TEXT, done N, drop N, edit N TEXT, clear; without a word it shows the list."
NO_LIST: Final = "There is no todo list here; /todo add TEXT begins one."
NO_TEXT: Final = "Say what is to be done: /todo add TEXT."
HEADING: Final = "Todo list"
TOO_LONG: Final = f"An item has at most {LONGEST_CONTENT} characters; shorten it."


async def todo(front: FrontEnd, argument: str) -> None:
    """Show the list, or change it."""
    word, _, rest = argument.partition(" ")
    rest = rest.strip()
    match word:
        case "":
            show_todos(front)
        case "add":
            await add_item(front, rest)
        case "clear":
            await clear_items(front)
        case "done" | "drop" | "edit":
            number, _, text = rest.partition(" ")
            await _change_numbered(front, word, number, text.strip())
        case _:
            front.tell(USAGE, bad=True)


def todos_in_view(front: FrontEnd) -> TodoList:
    """The list of the conversation in view; empty where there is none."""
    return front.conversation.todos.now if front.conversation is not None else TodoList()


def show_todos(front: FrontEnd) -> None:
    """Show all of the list, numbered."""
    todos = todos_in_view(front)
    if not todos.items:
        front.tell(NO_LIST)
    else:
        front.read(f"{HEADING} {todos.progress}", "\n".join(lines_of(todos.items)), hang=len("1. [ ] "))


async def add_item(front: FrontEnd, text: str) -> None:
    """Add an item at the end; a conversation is begun where there is none."""
    text = one_item_line(text or await front.ask_line("New item"))
    if not text or len(text) > LONGEST_CONTENT:
        front.tell(TOO_LONG if text else NO_TEXT, bad=True)
        return
    conversation = await front.current()
    todos = conversation.todos.now
    await _replace(conversation, todos, (*todos.items, TodoItem(text)))
    front.confirm_change(f"Added as item {len(todos.items) + 1}: {text}")


async def clear_items(front: FrontEnd) -> None:
    """Remove all items, after a yes."""
    todos, conversation = todos_in_view(front), front.conversation
    if conversation is None or not todos.items:
        front.tell(NO_LIST)
    elif await front.confirm(f"Clear the todo list of {counted(len(todos.items), 'item')}?", "clear", "keep"):
        await _replace(conversation, todos, ())
        front.confirm_change("The todo list is cleared.")


async def _change_numbered(front: FrontEnd, word: str, number: str, text: str) -> None:
    todos = todos_in_view(front)
    if not todos.items:
        front.tell(NO_LIST, bad=True)
        return
    chosen = number_within(number, len(todos.items))
    if chosen is None:
        front.tell(f"Give the number of an item, 1 to {len(todos.items)}: /todo {word} 1.", bad=True)
        return
    await change_item(front, word, chosen - 1, text)


async def change_item(front: FrontEnd, word: str, place: int, text: str = "") -> None:
    """Complete an item or open it again (`done`), remove it (`drop`) or change its text (`edit`)."""
    todos, conversation = todos_in_view(front), front.conversation
    if conversation is None or not 0 <= place < len(todos.items):
        front.tell(NO_LIST, bad=True)
        return
    item, items = todos.items[place], list(todos.items)
    match word:
        case "drop":
            del items[place]
            said = f"Dropped: {item.content}"
        case "done":
            items[place] = replace(item, status=TodoStatus.COMPLETED if item.is_open else TodoStatus.PENDING)
            said = f"{'Done' if item.is_open else 'Open again'}: {item.content}"
        case _:
            text = one_item_line(text or await front.ask_line(f"Item {place + 1}", item.content))
            if not text or len(text) > LONGEST_CONTENT:
                if text:
                    front.tell(TOO_LONG, bad=True)
                return
            items[place] = replace(item, content=text, active_form="")
            said = f"Changed: {text}"
    await _replace(conversation, todos, tuple(items))
    front.confirm_change(said)


async def _replace(conversation: ConversationApi, seen: TodoList, items: tuple[TodoItem, ...]) -> None:
    """Store the new list. Raises EngineError with the reason where it is refused."""
    accepted(await conversation.todos.replace(seen, items))
