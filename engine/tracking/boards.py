"""The task boards as front ends use them: read, edited by the user, and processed on request."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import EngineError
from engine.executor.session import Ports
from engine.ports import ConversationChanges, OwnedElsewhere
from engine.ports.task_store import TaskRefused
from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus
from engine.tracking.tracker import TaskTracker

if TYPE_CHECKING:
    from engine.store.task_store import TaskStore


NO_STORE: Final = "Nothing keeps a task board here."
NOT_OPEN: Final = "Open this conversation first; only its owner processes its messages."
NOTHING_REMOVED: Final = "There is nothing to undo: no task of this conversation was deleted since Phoenix began."
MOST_REMOVED: Final = 50
"""Removals of a conversation that can be undone."""


class TaskBoards:
    """`engine.api.engine.TasksApi` over the store and the conversations that are open here."""

    def __init__(
        self,
        ports: Ports,
        settings: EngineSettings,
        opened: Mapping[str, Conversation],
        trackers: Mapping[str, TaskTracker],
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._opened = opened
        self._trackers = trackers
        self._removed: dict[str, deque[TrackedTask]] = {}
        """Tasks that the user removed in this process, the last one at the end, by conversation."""

    async def board(self, conversation_id: str) -> TaskBoardView:
        """See `TasksApi.board`."""
        found = await self._store.board(conversation_id)
        return replace(found, status=await self._complete_status(conversation_id, found.status))

    async def page(
        self, conversation_id: str, cursor: str = "", limit: int = 20, *, newest_first: bool = False
    ) -> TaskPage:
        """See `TasksApi.page`."""
        with _sentences():
            return await self._store.page(conversation_id, cursor, limit, newest_first=newest_first)

    async def edit(
        self, conversation_id: str, task_id: str, status: TaskStatus | None = None, description: str | None = None
    ) -> TrackedTask:
        """See `TasksApi.edit`."""
        with _sentences():
            now = self._ports.clock.now()
            task = await self._store.edit(conversation_id, task_id, status, description, now)
        await self._publish_status(conversation_id)
        return task

    async def remove(self, conversation_id: str, task_id: str) -> None:
        """See `TasksApi.remove`."""
        with _sentences():
            removed = await self._store.remove(conversation_id, task_id, self._ports.clock.now())
        if not removed.is_planning:
            self._removed.setdefault(conversation_id, deque(maxlen=MOST_REMOVED)).append(removed)
        await self._publish_status(conversation_id)

    async def put_back(self, conversation_id: str) -> TrackedTask:
        """See `TasksApi.put_back`."""
        removed = self._removed.get(conversation_id)
        if not removed:
            raise EngineError(NOTHING_REMOVED)
        last = removed.pop()  # now, so that two calls at once put two back
        try:
            with _sentences():
                task = await self._store.put_back(conversation_id, last, self._ports.clock.now())
        except BaseException:
            removed.append(last)
            raise
        await self._publish_status(conversation_id)
        return task

    async def flush(self, conversation_id: str) -> TrackingStatus:
        """See `TasksApi.flush`."""
        tracker = self._trackers.get(conversation_id)
        if tracker is None or self._opened[conversation_id].read_only:
            raise EngineError(NOT_OPEN)
        await tracker.flush()
        return await self._publish_status(conversation_id)

    async def set_tracking(self, conversation_id: str, on: bool) -> TrackingStatus:
        """See `TasksApi.set_tracking`."""
        changes = ConversationChanges(tracking=on)
        conversation = self._opened.get(conversation_id)
        with _sentences():
            if conversation is not None:
                await conversation.change(changes)
            else:
                await self._ports.store.change(conversation_id, changes, self._ports.clock.now())
        return await self._publish_status(conversation_id)

    async def find_untasked(self, conversation_id: str) -> tuple[int, ...]:
        """See `TasksApi.find_untasked`."""
        return await self._store.read_untasked(conversation_id)

    @property
    def _store(self) -> TaskStore:
        if self._ports.tasks is None:
            raise EngineError(NO_STORE)
        return self._ports.tasks

    async def _publish_status(self, conversation_id: str) -> TrackingStatus:
        """Tell viewers of an open conversation, and return its status."""
        if (tracker := self._trackers.get(conversation_id)) is not None:
            return await tracker.tell()
        return await self._complete_status(conversation_id, await self._store.status(conversation_id))

    async def _complete_status(self, conversation_id: str, status: TrackingStatus) -> TrackingStatus:
        """The status with what only an open conversation knows, else with the effect of the setting."""
        if (tracker := self._trackers.get(conversation_id)) is not None:
            return replace(status, enabled=tracker.enabled, problem=tracker.problem or status.problem)
        chosen = await self._store.read_choice(conversation_id)
        return replace(status, enabled=self._settings.task_tracking if chosen is None else chosen)


@contextmanager
def _sentences() -> Generator[None]:
    """Turn refusals of the store into the error that front ends know."""
    try:
        yield
    except TaskRefused as error:
        raise EngineError(str(error)) from error
    except OwnedElsewhere as owner:
        raise EngineError(f"Process {owner.pid} has this conversation open; change its tasks there.") from owner
