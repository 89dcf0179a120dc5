"""The engine: creates, opens, lists and closes conversations; owns every one that runs here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from engine.agents.manager import SubAgents
from engine.agents.spawn_tools import all_tools
from engine.conversation import Conversation
from engine.executor.call_questions import ServerSampling
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Activity as Activity
from engine.executor.requests import ConversationOptions as ConversationOptions
from engine.executor.requests import EngineError as EngineError
from engine.executor.session import Ports
from engine.following import CancelWatcher
from engine.machine.states import StopCause
from engine.memory.memory_tools import memory_tools
from engine.open_conversations import AgentFollower, OpenConversations, Watcher
from engine.ports import ConversationChanges, NoConversation, OwnedElsewhere
from engine.ports.files import FilesError
from engine.ports.storage import DatabaseWaits
from engine.records import (
    Attachment,
    ConversationQuery,
    ConversationSummary,
    ForkPlace,
    NewConversation,
    Recovery,
    SideExchange,
    StoredMessage,
)
from engine.rule_store import RuleStore
from engine.tracking.tracker import TaskBoards
from tools.mcp_form import LEFT, FormAnswer, ServerForm
from tools.mcp_sampling import DECLINED, NOT_CALLED, SampleAnswer, SampleRefused, SampleRequest
from tools.shedding import SheddingOrder, shedding


class ConversationBulk:
    """Every stored conversation; those in `opened` are changed through themselves, so that their screens know."""

    def __init__(self, ports: Ports, opened: Mapping[str, Conversation]) -> None:
        self._ports = ports
        self._opened = opened

    async def change(self, ids: Iterable[str], changes: ConversationChanges) -> Sequence[str]:
        """Change many, those that are not open in one transaction; returns those that another process has.

        Raises:
            StorageError: it cannot be stored; of the closed ones none has changed.
        """
        closed: list[str] = []
        refused: list[str] = []
        for conversation_id in ids:
            conversation = self._opened.get(conversation_id)
            if conversation is None:
                closed.append(conversation_id)
            elif conversation.read_only:
                refused.append(conversation_id)
            else:
                await conversation.change(changes)
        if closed:
            refused += await self._ports.library.change_all(closed, changes, self._ports.clock.now())
        return refused

    async def newest(self, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        """Read the newest messages, ascending, without becoming the owner."""
        return await self._ports.store.messages(conversation_id, limit=limit)

    async def purge(self, ids: Iterable[str]) -> Sequence[str]:
        """Remove for good all that are not open here; returns those that another process has."""
        refused: list[str] = []
        for conversation_id in ids:
            try:
                await self._ports.library.purge(conversation_id)
            except OwnedElsewhere:
                refused.append(conversation_id)
        if self._ports.rewinding is not None:
            with suppress(FilesError):  # the next collection drops the rest
                await self._ports.rewinding.collect()
        return refused


class Engine:
    """Conversations of one database, in one process."""

    def __init__(self, ports: Ports, settings: EngineSettings | None = None) -> None:
        self.ports = ports
        settings = settings or EngineSettings()
        self._conversations = OpenConversations(ports, settings)
        self.resting = self._conversations.resting
        """Closes conversations that were left."""
        opened = self._conversations.opened
        self.bulk = ConversationBulk(ports, opened)
        self.rules = RuleStore(ports, opened)
        self.tasks = TaskBoards(ports, settings, opened, self._conversations.trackers)
        """Task boards of all conversations."""
        self.sub_agents = SubAgents(ports, settings, self._conversations) if ports.agents is not None else None
        """Sub-agents of its conversations; None without a store for them."""
        self._conversations.sub_agents = self.sub_agents
        self.cancel_watcher: CancelWatcher | None = None
        """Cancels runs that another process wants cancelled; None without a store for runs."""
        if ports.runs is not None:
            self.cancel_watcher = CancelWatcher(ports.runs, opened, self.sub_agents)
            self._conversations.cancelling = self.cancel_watcher
        tools = all_tools(ports, self.sub_agents, settings.agent_depth)
        if ports.memory is not None and settings.memory:
            tools |= memory_tools(ports.memory, ports.store, settings.history_turns)
        self._conversations.tools = tools
        shedding.add("messages of conversations at rest", SheddingOrder.READ, self._count_rows, self._forget_rows)
        shedding.add("conversations out of sight", SheddingOrder.OPEN, self.resting.__len__, self.resting.now)
        shedding.add("looks at folders", SheddingOrder.READ, self._count_looks, self._forget_looks)

    @property
    def warning(self) -> str:
        """Warning while nothing is kept on disk; else empty."""
        return self.ports.store.warning

    @property
    def waits(self) -> DatabaseWaits:
        """Waits for a database that another program keeps busy."""
        return self.ports.store.waits

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Tools of the model in a conversation of the user."""
        return tuple(self._conversations.tools)

    def leave_out(self, leaves_out: Callable[[str], bool]) -> None:
        """Give these tools to no model of conversations that are opened from now on, sub-agents included."""
        tools = self._conversations.tools
        self._conversations.tools = {name: tool for name, tool in tools.items() if not leaves_out(name)}

    async def start(self) -> Sequence[Recovery]:
        """Recover all conversations at the start, without model calls (SPEC DEC-03)."""
        return await self.ports.store.recover_all()

    async def create(self, options: ConversationOptions) -> Conversation:
        """A new conversation, open and idle.

        Raises:
            EngineError: the folder is no usable working directory, or memory is short.
        """
        self._conversations.refuse_when_full()
        cwd = check_working_directory(options.cwd)
        new = NewConversation(
            id=options.id or self.ports.ids.new(),
            cwd=cwd,
            model=options.model,
            title=options.title,
            permission_mode=options.permission_mode,
            profile=options.profile,
            system_prompt=options.system_prompt,
            append_system_prompt=options.append_system_prompt,
            supervisor=options.supervisor,
            sandbox=options.sandbox,
            sandbox_required=options.sandbox_required,
            scripted=options.scripted,
            effort=options.effort,
        )
        return await self._conversations.adopt(await self.ports.store.create(new, self.ports.clock.now()))

    async def open(self, conversation_id: str) -> Conversation:
        """A stored conversation; read-only when another process owns it.

        Raises:
            EngineError: there is no such conversation, or memory is short.
            StorageError: it cannot be read.
        """
        return await self._conversations.open(conversation_id)

    async def list(self, query: ConversationQuery | None = None) -> Sequence[ConversationSummary]:
        """Stored conversations, newest first."""
        return await self.ports.store.conversations(query or ConversationQuery())

    async def attachments(self, ids: Sequence[str]) -> tuple[Attachment, ...]:
        """Stored images by id, in this order; those that are gone are left out."""
        found: Mapping[str, Attachment] = await self.ports.store.attachments(ids) if ids else {}
        return tuple(found[one] for one in ids if one in found)

    async def find(self, reference: str, *, partly: bool = False) -> Sequence[ConversationSummary]:
        """Find conversations by id, beginning of an id, slug or title; with `partly` also by a part of the title."""
        return await self.ports.store.find(reference, partly=partly)

    async def fork(
        self,
        conversation_id: str,
        up_to_seq: int | None = None,
        beside: Sequence[SideExchange] = (),
        place: ForkPlace | None = None,
    ) -> Conversation:
        """A copy under a new id, open here; it ends with the questions `beside` and their answers.

        It works in the folder of its source, or in that of `place`.
        """
        self._conversations.refuse_when_full()
        new_id, now = self.ports.ids.new(), self.ports.clock.now()
        record = await self.ports.library.fork(conversation_id, new_id, now, up_to_seq, beside, place)
        return await self._conversations.adopt(record)

    async def change(self, conversation_id: str, changes: ConversationChanges) -> None:
        """Rename, archive, trash and the like.

        Raises:
            EngineError: there is no such conversation, or another process owns it.
            StorageError: it cannot be stored.
        """
        conversation = self._conversations.opened.get(conversation_id)
        if conversation is not None:
            await conversation.change(changes)
            return
        try:
            await self.ports.store.take(conversation_id)
        except OwnedElsewhere as owner:
            raise EngineError(
                f"Process {owner.pid} has this conversation open; close it there, or copy it with --fork."
            ) from owner
        except NoConversation as error:
            raise EngineError(str(error)) from error
        try:
            await self.ports.store.change(conversation_id, changes, self.ports.clock.now())
        finally:
            await self.ports.store.release(conversation_id)

    def live(self) -> tuple[Conversation, ...]:
        """Every conversation that is open here."""
        return tuple(self._conversations.opened.values())

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` for changes in every open conversation; the result ends it."""
        watchers = self._conversations.watchers
        watchers.append(watcher)
        return lambda: watchers.remove(watcher) if watcher in watchers else None

    def follow_agents(self, follower: AgentFollower) -> Callable[[], None]:
        """Call `follower` for every update of every sub-agent; the result ends it."""
        followers = self._conversations.followers
        followers.append(follower)
        return lambda: followers.remove(follower)

    async def answer_server(self, conversation_id: str, server: str, form: ServerForm) -> FormAnswer:
        """The user's answer to a question of an MCP server; left where the conversation is not open here."""
        conversation = find_asked_conversation(self, conversation_id)
        return LEFT if conversation is None else await conversation.server_questions.ask(server, form)

    async def sample_for_server(self, conversation_id: str, server: str, request: SampleRequest) -> SampleAnswer:
        """The answer of a model to an MCP server, after the user's yes; the call is a sub-agent's own.

        Raises:
            SampleRefused: there is none.
        """
        conversation = find_asked_conversation(self, conversation_id)
        calling = self._conversations.opened.get(conversation_id)
        if conversation is None or calling is None:
            raise SampleRefused(NOT_CALLED, DECLINED)
        sampling = ServerSampling(conversation.server_questions.session, calling.server_questions.session)
        return await sampling.answer(server, request)

    async def forget(self, conversation_id: str) -> None:
        """Close one conversation; its run is stopped."""
        await self._conversations.close(conversation_id)

    async def stop_all(self) -> None:
        """Cancel the run of every open conversation."""
        for conversation in self.live():
            conversation.cancel()
        await asyncio.gather(*(conversation.wait_idle() for conversation in self.live()))

    async def close(self, reason: str = "") -> None:
        """Stop everything within the grace time, then close store and providers; hooks hear the `reason`.

        A run under way is interrupted, and can be resumed (SPEC STM-12): no one stopped it.
        """
        for conversation in self._conversations.opened.values():
            conversation.hooks.end_reason = reason or conversation.hooks.end_reason
        self.ports.store.waits.hurry()
        if self.cancel_watcher is not None:
            await self.cancel_watcher.close()
        if self.sub_agents is not None:
            self.sub_agents.close()
        async with AsyncExitStack() as stack:  # the store closes, and owns nothing more, whatever happens before
            stack.push_async_callback(self.ports.store.close)
            if self.ports.trace_export is not None:
                stack.push_async_callback(self.ports.trace_export.close)
            stack.push_async_callback(self.ports.providers.close)
            if self.ports.rewinding is not None:
                stack.push_async_callback(self.ports.rewinding.close)
            await self.resting.close()
            opened = self._conversations
            await asyncio.gather(*(opened.close(one, by=StopCause.ENDING) for one in tuple(opened.opened)))

    def _count_looks(self) -> int:
        return int(self.ports.rewinding is not None and self.ports.rewinding.recorder.keeps)

    def _forget_looks(self) -> None:
        if self.ports.rewinding is not None:
            self.ports.rewinding.recorder.rest()

    def _count_rows(self) -> int:
        return sum(one.context.kept_messages for one in self.live())

    def _forget_rows(self) -> None:
        for one in self.live():
            one.context.forget_messages()


def check_working_directory(path: Path) -> Path:
    """The real path of a usable working directory (SPEC SDK-25).

    Raises:
        EngineError: it does not exist, is no folder or cannot be read.
    """
    try:
        resolved = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise EngineError(f"The working directory {path} does not exist; choose another with -C.") from error
    if not resolved.is_dir():
        raise EngineError(f"{path} is not a directory; choose another with -C.")
    if not os.access(resolved, os.R_OK | os.X_OK):
        raise EngineError(f"The directory {path} cannot be read; check its permissions.")
    return resolved


def find_asked_conversation(engine: Engine, conversation_id: str) -> Conversation | None:
    """The conversation in which a question is asked: for a sub-agent its parent's; None where it is not open here."""
    opened = {one.id: one for one in engine.live()}
    conversation = opened.get(conversation_id)
    while conversation is not None and (agent := conversation.record.agent) is not None:
        conversation = opened.get(agent.parent_id)
    return conversation
