"""Todo list and plan of an open conversation: kept, changed by the user, described to the model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, assert_never

from msgspec.structs import replace

from engine.context.prompt import MOST_REMINDERS, REMIND_AFTER, reminder, todo_note, with_plan
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, PlanChoice, Receipt, Refused
from engine.executor.session import Session
from engine.executor.window import describe_change, estimate_tokens
from engine.machine import texts
from engine.machine.effects import FinishRun, Save, SavePlan, SaveTodos
from engine.machine.events import ApprovalAnswered, PlanAnswer, Verdict
from engine.machine.messages import ToolResult, ToolStatus
from engine.machine.views import (
    MOST_EARLIER,
    CompactionCause,
    CompactionDraft,
    CompactionKind,
    ContextView,
    EarlierView,
)
from engine.ports import ConversationChanges
from engine.records import ConversationRecord, PermissionMode, StoredMessage
from engine.updates import ConversationChanged, Question
from tools.displays import MOST_ITEMS, TodoItem, TodoList, is_sound
from tools.planning import why_no_plan

CHANGED_MEANWHILE: Final = (
    "todo_write: the user changed the list meanwhile, so yours was not kept. Call it again with these changes in mind. "
    "The list is now:\n{items}"
)
CHANGED: Final = "The list changed in the meantime; look at it again."
FULL: Final = f"A todo list has at most {MOST_ITEMS} items; drop one first."
UNSOUND: Final = "An item needs a text of at most 500 characters on one line."


def describe_list(session: Session, rows: Sequence[StoredMessage], iteration: int) -> str:
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


def take_list(session: Session, result: ToolResult, items: tuple[TodoItem, ...]) -> tuple[ToolResult, TodoList | None]:
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
            session.change_record(todos=todos)
        case SavePlan(plan, mode, at):
            chosen = PermissionMode(mode) if mode else session.record.permission_mode
            session.change_record(plan=plan, plan_at=at, permission_mode=chosen)
            if session.equipment.sub_agents is not None:
                session.equipment.sub_agents.reconsider(session.record.id)
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
            session.change_record(todos=after)
        session.publisher.publish(ConversationChanged(session.record))
        return Accepted()


NO_REMARKS: Final = "Say what should be different about the plan."
MODES: Final = {
    PlanChoice.ACCEPT_EDITS: PermissionMode.ACCEPT_EDITS,
    PlanChoice.FRESH: PermissionMode.ACCEPT_EDITS,
    PlanChoice.ASK: PermissionMode.ASK,
}
"""Permission mode after each yes."""
ACCEPTED: Final = "Plan approved; permission mode {mode}"
FRESH: Final = (
    "The user approved a plan and left out the messages before it. Carry the plan out; read again what you need."
)
FRESH_NOTE: Final = "Context cleared but for the plan · {count} messages left out; /context restores them"


def choice_of(answer: ApprovalAnswer) -> PlanChoice:
    """The answer to a plan, also where only yes or no can be said."""
    if answer.plan_choice is not None:
        return answer.plan_choice
    if answer.choice is not ApprovalChoice.DENY:
        return PlanChoice.ASK
    return PlanChoice.REVISE if answer.reason.strip() else PlanChoice.LEAVE


def check_plan_answer(answer: ApprovalAnswer) -> str:
    """Reason why an answer to a plan cannot be taken; empty when it can."""
    if choice_of(answer) is PlanChoice.REVISE:
        return "" if answer.reason.strip() else NO_REMARKS
    return why_no_plan(answer.plan) if answer.plan else ""


def build_plan_event(session: Session, question: Question, answer: ApprovalAnswer) -> ApprovalAnswered:
    """The event of an answer to a plan, built in the move that takes it."""
    choice, call_id, message_id = choice_of(answer), question.call.id, session.ports.ids.new()
    if choice is PlanChoice.LEAVE:
        return ApprovalAnswered(call_id, Verdict.DENY, message_id)
    if choice is PlanChoice.REVISE:
        return ApprovalAnswered(call_id, Verdict.DENY, message_id, plan=PlanAnswer(remarks=answer.reason.strip()))
    plan, at = answer.plan or question.request.plan, session.record.message_count
    if choice is PlanChoice.DELIVER:
        delivered = PlanAnswer(plan, answer_id=session.ports.ids.new(), at=at)
        return ApprovalAnswered(call_id, Verdict.ALLOW, message_id, plan=delivered)
    mode, note = MODES[choice], ACCEPTED.format(mode=MODES[choice].value)
    fresh = _draft_fresh_view(session, plan, at) if choice is PlanChoice.FRESH else None
    edited = bool(answer.plan) and answer.plan != question.request.plan
    accepted = PlanAnswer(plan, edited, mode.value, fresh=fresh, at=at)
    return ApprovalAnswered(call_id, Verdict.ALLOW, message_id, note=note, plan=accepted)


def _draft_fresh_view(session: Session, plan: str, at: int) -> CompactionDraft:
    """The view behind the row and the result of this very move, which holds the plan alone."""
    record = session.record
    earlier = EarlierView(record.summary, record.context_start_seq, record.context_tokens, record.context_estimated)
    all_earlier = (*record.earlier_views, earlier)[-MOST_EARLIER:]
    view = ContextView(FRESH, at + BEFORE_FRESH + 1, record.omitted, all_earlier)
    tokens = estimate_tokens(session, (), with_plan(view, plan, at))
    left_out = at - max(record.context_start_seq - 1, 0)
    facts = describe_change(session, CompactionCause.ASKED, CompactionKind.SUMMARY, view, tokens, left_out)
    return CompactionDraft(view, tokens, FRESH_NOTE.format(count=left_out), facts)


BEFORE_FRESH: Final = 2
"""Messages that the move of an accepted plan stores ahead of a fresh view: the row about it, and the results."""
