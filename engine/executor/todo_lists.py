"""The todo list of an open conversation: written by the model, changed by the user, told and remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, assert_never

from msgspec.structs import replace

from engine.context.todo_notes import MOST_REMINDERS, REMIND_AFTER, reminder, todo_note
from engine.executor.requests import Accepted, Receipt, Refused
from engine.executor.session import Session
from engine.machine import texts
from engine.machine.effects import FinishRun, Save, SavePlan, SaveTodos
from engine.machine.messages import ToolResult, ToolStatus
from engine.ports import ConversationChanges
from engine.records import ConversationRecord, PermissionMode, StoredMessage
from engine.updates import ConversationChanged
from tools.todo_items import MOST_ITEMS, TodoItem, TodoList, is_sound

CHANGED_MEANWHILE: Final = (
    "todo_write: the user changed the list meanwhile, so yours was not kept. Call it again with these changes in mind. "
    "The list is now:\n{items}"
)
CHANGED: Final = "The list changed in the meantime; look at it again."
FULL: Final = f"A todo list has at most {MOST_ITEMS} items; drop one first."
UNSOUND: Final = "An item needs a text of at most 500 characters on one line."


def told(session: Session, rows: Sequence[StoredMessage], iteration: int) -> str:
    """The note for one request of the model; empty where it knows the list."""
    todos, known = session.record.todos, session.run.todos
    if todos != known.known:
        known.known, known.since = todos, iteration - 1
    note = todo_note(todos, seen=_is_seen(session, rows, todos.at))
    if note or not todos.is_open:
        return note
    if known.noted != iteration and iteration - known.since > REMIND_AFTER and known.reminders < MOST_REMINDERS:
        known.note, known.noted = reminder(todos, iteration - 1 - known.since), iteration
        known.since, known.reminders = iteration - 1, known.reminders + 1
    return known.note if known.noted == iteration else ""


def _is_seen(session: Session, rows: Sequence[StoredMessage], at: int) -> bool:
    """True when the request contains the message with that number: no summary and no limit of turns cut it off."""
    if at < session.record.context_start_seq:
        return False
    turns = session.settings.history_turns
    place = at - rows[0].seq if rows else -1
    if not turns or not 0 <= place < len(rows):
        return True
    return rows[place].turn_number > rows[-1].turn_number - turns


def taken(session: Session, result: ToolResult, items: tuple[TodoItem, ...]) -> tuple[ToolResult, TodoList | None]:
    """The result of a call that wrote the list, and the list; none where the user's change would be lost by it."""
    now = session.record.todos
    if now.edited and now != session.run.todos.known:
        lines = "\n".join(item.line for item in now.items)
        text = CHANGED_MEANWHILE.format(items=lines or "(empty)")
        return replace(result, text=text, status=ToolStatus.ERROR, display_json=""), None
    return result, TodoList(items, at=session.record.message_count)


def with_finished_list(record: ConversationRecord, saves: tuple[Save, ...]) -> tuple[Save, ...]:
    """The saves of a move; at the end of a run a list with nothing left to do is cleared in the same move."""
    if not any(isinstance(save, FinishRun) for save in saves):
        return saves
    written = [save.todos for save in saves if isinstance(save, SaveTodos)]
    todos = written[-1] if written else record.todos
    is_over = (todos.items or todos.edited) and not todos.is_open
    return (*saves, SaveTodos(TodoList(at=record.message_count))) if is_over else saves


def take_plan(session: Session, save: SaveTodos | SavePlan) -> None:
    """Take a stored list, or an accepted plan with its mode, into the record, and report it."""
    match save:
        case SaveTodos(todos):
            session.record = replace(session.record, todos=todos)
        case SavePlan(plan, mode, at):
            chosen = PermissionMode(mode) if mode else session.record.permission_mode
            session.record = replace(session.record, plan=plan, plan_at=at, permission_mode=chosen)
            if session.sub_agents is not None:
                session.sub_agents.reconsider(session.record.id)
        case _:
            assert_never(save)
    session.publisher.publish(ConversationChanged(session.record))


class TodoEdits:
    """The user's changes of the list, stored between two moves."""

    def __init__(self, session: Session, between_moves: asyncio.Lock) -> None:
        self._session = session
        self._between_moves = between_moves

    @property
    def now(self) -> TodoList:
        """The list as it is now."""
        return self._session.record.todos

    async def replace(self, seen: TodoList, items: Sequence[TodoItem]) -> Receipt:
        """Put `items` in the place of the list `seen`; the next request of the model says so.

        Raises:
            StorageError: it cannot be stored.
        """
        session = self._session
        if session.read_only or session.record.agent is not None:
            return Refused(session.read_only or texts.READ_ONLY)
        if len(items) > MOST_ITEMS:
            return Refused(FULL)
        if not is_sound(items):
            return Refused(UNSOUND)
        async with self._between_moves:
            if session.record.todos != seen:
                return Refused(CHANGED)
            after = replace(seen, items=tuple(items), edited=True)
            changes = ConversationChanges(todos=after)
            await session.ports.store.change(session.record.id, changes, session.ports.clock.now())
            session.record = replace(session.record, todos=after)
        session.publisher.publish(ConversationChanged(session.record))
        return Accepted()
