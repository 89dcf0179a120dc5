"""The task agent: one pass over waiting messages, reply by reply (SPEC ACX-12 to ACX-14).

Each reply is one transaction: its calls all hold or none of them, and the messages it linked have succeeded with it. A
crash between two replies leaves the others waiting, so that no message is lost and none is recorded twice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

from engine.conversation import Conversation
from engine.executor.asking import ask_aside, count
from engine.executor.memory_flush import whole
from engine.executor.session import Session
from engine.machine.messages import Role, StopReason, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest
from engine.ports.task_store import AppliedChanges, MessageTracking, TakenMessages, TaskRefused, TaskStore
from engine.records.model_calls import CallPurpose, ModelCall
from engine.tracking.task_prompt import board_text, instructions, request_text
from engine.tracking.task_tools import MOST_CALLS, TOOLS, Finish, TaskCall, Thought, call_of

T = TypeVar("T")

MOST_REPLIES: Final = 6
"""Replies of a pass (SPEC ACX-12)."""
MAX_TOKENS: Final = 4_096
DONE: Final = "Done."
TOO_MANY: Final = f"The task agent made more than {MOST_CALLS} calls at once."
CUT_OFF: Final = "The reply of the task agent was cut off."


class TaskAgent:
    """Records the messages of one conversation on its board."""

    def __init__(self, conversation: Conversation, session: Session, store: TaskStore) -> None:
        self._conversation = conversation
        self._session = session
        self._store = store

    async def record(self, model: str, taken: TakenMessages) -> AsyncGenerator[AppliedChanges]:
        """Record these messages; yields once after each reply that is stored.

        Raises:
            ProviderError: the model cannot be asked.
            TaskRefused: it asked for something impossible; nothing of that reply holds.
            StorageError: the board cannot be stored.
        """
        seqs = frozenset(taken.seqs)
        board = await self._store.board(self._session.record.id)
        tasks = (*((board.planning,) if board.planning else ()), *board.tasks)
        text = request_text(tasks, taken, self._session.record.todos)
        messages = [ModelMessage(Role.USER, (TextBlock(text),))]
        for number in range(1, MOST_REPLIES + 1):
            reply = await self._ask(model, messages)
            uses = [block for block in reply.blocks if isinstance(block, ToolUseBlock)]
            calls = calls_of(reply, uses, seqs)
            ends = not calls or number == MOST_REPLIES or any(isinstance(call, Finish) for call in calls)
            applied = await self._apply(taken, calls, ends=ends)
            yield applied
            if ends:
                return
            results = _results(uses, calls, applied)
            messages += [ModelMessage(Role.ASSISTANT, reply.blocks), ModelMessage(Role.USER, results)]

    async def settle(self, to: MessageTracking, problem: str) -> None:
        """Give the messages that are not recorded another progress and a reason, also when the caller is cancelled."""
        await whole(self._settle(to, problem))

    async def _ask(self, model: str, messages: Sequence[ModelMessage]) -> ModelReply:
        session = self._session
        _, name = session.ports.providers.resolve(model)
        system = instructions(session.settings.task_criteria)
        request = ModelRequest(name, system, tuple(messages), TOOLS, max_tokens=MAX_TOKENS)
        reply, _ = await ask_aside(session, CallPurpose.TRACKING, model, request)
        return reply

    async def _apply(self, taken: TakenMessages, calls: Sequence[TaskCall], *, ends: bool) -> AppliedChanges:
        changes = [call for call in calls if not isinstance(call, Finish | Thought)]

        async def store(ended: tuple[ModelCall, ...]) -> AppliedChanges:
            now = self._session.ports.clock.now()
            return await self._store.apply(self._session.record.id, taken.seqs, changes, ended, now, ends=ends)

        return await whole(self._with_calls(store))

    async def _settle(self, to: MessageTracking, problem: str) -> None:
        async def store(ended: tuple[ModelCall, ...]) -> None:
            now = self._session.ports.clock.now()
            await self._store.settle(self._session.record.id, to, now, ended, problem=problem)

        await self._with_calls(store)

    async def _with_calls(self, store: Callable[[tuple[ModelCall, ...]], Awaitable[T]]) -> T:
        """Store something with the ended calls, between two moves, so that neither undoes the sums of the other."""
        session = self._session
        async with self._conversation.between_moves:
            ended = await session.calls.take(session.ports.providers.price)
            try:
                stored = await store(ended)
            except BaseException:
                session.calls.give_back(ended)
                raise
            count(session, ended)
        return stored


def calls_of(reply: ModelReply, uses: Sequence[ToolUseBlock], seqs: frozenset[int]) -> list[TaskCall]:
    """The calls of a reply, each checked as far as its arguments alone allow. Raises TaskRefused."""
    if reply.truncated_call or (uses and reply.stop is StopReason.MAX_TOKENS):
        raise TaskRefused(CUT_OFF)
    if len(uses) > MOST_CALLS:
        raise TaskRefused(TOO_MANY)
    return [call_of(use, seqs) for use in uses]


def _results(
    uses: Sequence[ToolUseBlock], calls: Sequence[TaskCall], applied: AppliedChanges
) -> tuple[ToolResultBlock, ...]:
    """A result for each call; the last one ends with the board as it is now (SPEC ACX-13)."""
    effects = iter(applied.texts)
    texts = [DONE if isinstance(call, Finish | Thought) else next(effects) for call in calls]
    if applied.texts:
        texts[-1] += f"\n\n{board_text(applied.tasks)}"
    return tuple(ToolResultBlock(use.id, (TextBlock(text),)) for use, text in zip(uses, texts, strict=True))
