"""Makes sub-agents: from a request, a profile and the parent to rows in the store and open conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import TypeVar

from msgspec.structs import replace

from engine.agents.results import AgentResults
from engine.agents.scheduler import AgentScheduler, RunningAgent
from engine.agents.spawn_requests import TaskRequest
from engine.agents.views import AgentBoard, view_of
from engine.context.agent_prompt import snapshot
from engine.conversation import Conversation
from engine.effort import Effort
from engine.executor.engine_settings import EngineSettings
from engine.open_conversations import OpenConversations
from engine.ports import ProviderError, StorageError
from engine.ports.agent_store import AgentStore
from engine.ports.profiles import Profile, ProfileError
from engine.records import AgentFacts, ConversationRecord, NewConversation, SpawnMode, StoredConversation
from tools.contract import ToolInputError
from tools.wording import one_line

T = TypeVar("T", int, float)
TITLE = 50
"""Characters (SPEC STM-11)."""


class AgentFactory:
    """Turns requests into conversations, and hands those to the scheduler: all of a call, or none."""

    def __init__(
        self,
        store: AgentStore,
        settings: EngineSettings,
        conversations: OpenConversations,
        scheduler: AgentScheduler,
        results: AgentResults,
        board: AgentBoard,
    ) -> None:
        self._ports = conversations.ports
        self._store = store
        self._settings = settings
        self._conversations = conversations
        self._scheduler = scheduler
        self._results = results
        self._board = board

    async def start_all(
        self,
        parent: Conversation,
        call_id: str,
        tasks: Sequence[TaskRequest],
        mode: SpawnMode,
        *,
        sequential: bool = False,
    ) -> list[RunningAgent]:
        """Make the sub-agents of a call and start them; where the call is cut off meanwhile they end unbegun."""
        making = asyncio.ensure_future(self._open_all(parent, call_id, tasks, mode))
        try:
            all_running = await asyncio.shield(making)
        except asyncio.CancelledError:
            self._results.start(self._give_up(making))
            raise
        if sequential:
            for place, running in enumerate(all_running):
                running.after = tuple(all_running[:place])
        self._scheduler.start(all_running)
        return all_running

    async def _give_up(self, making: asyncio.Future[list[RunningAgent]]) -> None:
        with suppress(ToolInputError, StorageError):  # then there are none
            self._scheduler.dismiss(await making)

    async def _open_all(
        self, parent: Conversation, call_id: str, tasks: Sequence[TaskRequest], mode: SpawnMode
    ) -> list[RunningAgent]:
        records = await self.make(parent.record, call_id, tasks, mode)
        background = mode is SpawnMode.BACKGROUND
        all_running: list[RunningAgent] = []
        try:
            for record in records:
                conversation = await self._conversations.adopt(record)
                row = await self._store.row(record.id)
                assert record.agent is not None, "what was made for a call is a sub-agent"
                all_running.append(self._scheduler.add(conversation, record.agent, parent, background=background))
                if row is not None:
                    self._board.put(parent.id, view_of(row))
        except BaseException:
            self._scheduler.dismiss(all_running)
            raise
        return all_running

    async def make(
        self, parent: ConversationRecord, call_id: str, requests: Sequence[TaskRequest], mode: SpawnMode
    ) -> Sequence[StoredConversation]:
        """The sub-agents of one call, in its order; all or none.

        Raises:
            ToolInputError: a profile is unknown or broken.
            StorageError: they cannot be stored.
        """
        first = max(1, parent.context_start_seq)
        rows = await self._ports.store.messages(parent.id, first_seq=first)

        @cache
        def context(window: int) -> str:
            return snapshot(rows, parent.summary, call_id, window)

        new = [
            self._new(
                parent, request, AgentFacts(parent.id, mode, call_id, place, request.title or request.task), context
            )
            for place, request in enumerate(requests, 1)
        ]
        return await self._store.create_all(new, self._ports.clock.now())

    def _new(
        self, parent: ConversationRecord, request: TaskRequest, facts: AgentFacts, context: Callable[[int], str]
    ) -> NewConversation:
        profile, settings = self._profile(request.profile, parent), self._settings
        model = profile.model or parent.model
        turns, seconds = profile.limits_under(settings.agent_turns, settings.agent_timeout)
        limited = replace(
            facts,
            max_turns=_asked(request.max_turns, turns, narrows=profile.project),
            timeout=_asked(request.timeout, seconds, narrows=profile.project),
            priority=request.priority,
            context=context(self._window(model)),
        )
        return NewConversation(
            id=self._ports.ids.new(),
            cwd=parent.cwd,
            model=model,
            title=one_line(facts.task, TITLE),
            permission_mode=profile.mode_under(parent.permission_mode),
            profile=profile.name,
            agent=limited,
            prompt=request.task,
            sandbox=profile.sandbox_under(parent.sandbox),
            sandbox_required=parent.sandbox_required or bool(profile.sandbox),
            effort=Effort(profile.effort) if profile.effort else parent.effort,
        )

    def _window(self, model: str) -> int:
        """Context window of a model in tokens, 0 while unknown."""
        try:
            provider, name = self._ports.providers.resolve(model)
        except ProviderError:
            return 0  # the call itself reports it
        return provider.describe(name).context_window

    def _profile(self, name: str, parent: ConversationRecord) -> Profile:
        if self._ports.profiles is None:
            raise ToolInputError("Sub-agents are not available here.")
        try:
            return self._ports.profiles.resolve(name, parent.cwd)
        except ProfileError as error:
            raise ToolInputError(error.sentence) from error


def _asked(wanted: T, limit: T, *, narrows: bool) -> T:
    """Limit of the task itself, bounded by that of a profile that only narrows."""
    return min(wanted, limit) if wanted and narrows else wanted or limit
