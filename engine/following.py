"""Work with other processes: follows their conversations, takes over released ones, cancels runs on request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.session import AgentStopper, Session
from engine.machine.messages import Role, ToolCall, ToolResult, ToolStatus, ToolUseBlock
from engine.machine.states import StopCause, is_busy
from engine.ports import NoConversation, OwnedElsewhere, StorageError
from engine.ports.storage import CancelRequest
from engine.records import StoredConversation, StoredMessage, ToolCallRecord
from engine.updates import ConversationChanged, MessageSaved, StateChanged, ToolEnded, ToolStarted, Update

if TYPE_CHECKING:
    from engine.store.runs import RunStore


log = logging.getLogger(__name__)

LOOK_EVERY: Final = 1.0
"""Seconds between two looks; one reads a row by its key."""
AGAIN: Final = 10.0
"""Seconds until the next look where the database does not answer."""
OPEN: Final = frozenset({ToolStatus.QUEUED, ToolStatus.AWAITING_APPROVAL, ToolStatus.RUNNING})


def why_read_only(pid: int) -> str:
    """The refusal of a change in this process."""
    return f"Open in another window (pid {pid}): answers and messages go there · /fork"


class Following:
    """Polls while there are subscribers (SPEC BED-011); ends when the conversation is this process's own, or gone."""

    def __init__(self, conversation: Conversation, session: Session) -> None:
        self._conversation = conversation
        self._session = session
        self._seen: StoredConversation | None = None
        """Record as last read."""
        self._open: dict[str, ToolStatus] = {}
        """Unsettled calls, as last reported."""
        self._asking: set[str] = set()
        """Messages that contain them."""
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look from now on."""
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _follow(self) -> None:
        rest = LOOK_EVERY
        while self._session.read_only:
            await asyncio.sleep(rest)
            rest = LOOK_EVERY
            if not self._session.publisher.has_watchers:
                continue
            try:
                await self.look()
            except NoConversation:
                return
            except StorageError as error:
                log.info("the owner of a conversation cannot be followed: %s", error)
                rest = AGAIN

    async def look(self) -> None:
        """Report changes, and take over a conversation without an owner. Raises StorageError."""
        session = self._session
        record = await session.ports.store.conversation(session.record.id)
        if record is None:
            raise NoConversation(session.record.id)
        if record != self._seen or self._open:
            self._seen = record
            await self._tell(record)
        if record.owner_pid is None and not record.deleted:
            await self._take()
        elif record.owner_pid is None:
            return
        elif why_read_only(record.owner_pid) != session.read_only:
            self._hold_back(why_read_only(record.owner_pid))

    async def _tell(self, record: StoredConversation) -> None:
        session, before = self._session, self._session.record
        store, publish = session.ports.store, session.publisher.publish
        new: list[StoredMessage] = []
        if record.message_count > before.message_count:
            first, last = before.message_count + 1, record.message_count  # its owner may have stored more since
            new = await store.messages(record.id, first_seq=first, last_seq=last)
        # Only this process knows the window of its model.
        session.set_record(replace(record.record, context_window=before.context_window or record.context_window))
        session.remember(tuple(new))
        for message in new:
            await self._settle()  # results come before the message that gives them to the model
            publish(MessageSaved(message))
            self._expect(message)
        await self._settle()
        if record.state != session.state:
            self._conversation.loop.enter(record.state)
            session.moves.state_since = session.ports.clock.monotonic()
            publish(StateChanged(record.state, session.moves.state_since, session.resumable))
        session.tell_context()
        publish(ConversationChanged(session.record))

    def _expect(self, message: StoredMessage) -> None:
        calls = [block.id for block in message.blocks if isinstance(block, ToolUseBlock)]
        if calls and message.role is not Role.USER:
            self._asking.add(message.id)
            self._open.update(dict.fromkeys(calls, ToolStatus.QUEUED))

    async def _settle(self) -> None:
        """Report calls that began or ended since."""
        if not self._open:
            return
        calls = await self._session.ports.store.tool_calls(self._session.record.id, tuple(self._asking))
        known = self._open
        for call in [one for one in calls if one.tool_use_id in known and known[one.tool_use_id] is not one.status]:
            self._tell_call(call)
        if not self._open:
            self._asking.clear()

    def _tell_call(self, call: ToolCallRecord) -> None:
        publish = self._session.publisher.publish
        if call.status in OPEN:
            self._open[call.tool_use_id] = call.status
            publish(ToolStarted(ToolCall(call.tool_use_id, call.name, call.input_json), None))
            return
        del self._open[call.tool_use_id]
        result = ToolResult(call.tool_use_id, call.output_text, call.status, display_json=call.display_json)
        publish(ToolEnded(result, call.duration_ms / 1000))

    async def _take(self) -> None:
        session = self._session
        try:
            await session.ports.store.take(session.record.id)
        except OwnedElsewhere as owner:  # another window was first
            self._hold_back(why_read_only(owner.pid))
            return
        record = await session.ports.store.conversation(session.record.id)
        if record is None:
            raise NoConversation(session.record.id)
        await self._tell(record)  # rows closed by the takeover, such as a run that a kill cut off
        session.read_only = ""
        await self._conversation.load()
        session.publisher.publish(ConversationChanged(session.record))

    def _hold_back(self, why: str) -> None:
        self._session.read_only = why
        self._session.publisher.publish(ConversationChanged(self._session.record))

    async def catch_up(self) -> None:
        """Expect the ends of calls that were open when the conversation was opened."""
        session = self._session
        newest = await session.ports.store.messages(session.record.id, limit=1)
        for message in newest:
            self._expect(message)


REQUESTS_EVERY: Final = 0.25
"""Seconds between two looks while a run is under way; one costs 0.1 ms, and nothing between runs."""


class CancelWatcher:
    """Looks for requests while any conversation of this process is at work."""

    def __init__(self, runs: RunStore, opened: Mapping[str, Conversation], sub_agents: AgentStopper | None) -> None:
        self._runs = runs
        self._opened = opened
        self._sub_agents = sub_agents
        self._watching: asyncio.Task[None] | None = None
        self._seen: int | None = None

    def follow(self, update: Update) -> None:
        """Begin to look with the first run."""
        if isinstance(update, StateChanged) and is_busy(update.state) and not self.looks:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    @property
    def looks(self) -> bool:
        """True while it looks for requests."""
        return self._watching is not None and not self._watching.done()

    async def close(self) -> None:
        """Look no more."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))

    async def _watch(self) -> None:
        while any(is_busy(one.state) for one in self._opened.values()):
            try:
                version = await self._runs.foreign_version()
                if version != self._seen:
                    for request in await self._runs.take_requests():
                        self._cancel(request)
                    self._seen = version  # a read that failed is made again
            except StorageError as error:
                log.warning("requests to cancel could not be read: %s", error)
            await asyncio.sleep(REQUESTS_EVERY)

    def _cancel(self, request: CancelRequest) -> None:
        """Cancel as Esc does, and say who did; a sub-agent leaves its queue."""
        conversation = self._opened.get(request.conversation_id)
        if conversation is None:
            return
        log.info("another process cancels %s", request.run_id or request.conversation_id)
        if conversation.record.agent is not None and self._sub_agents is not None:
            self._sub_agents.stop((conversation.id,), StopCause.OUTSIDE)
        else:
            conversation.cancel(StopCause.OUTSIDE)
