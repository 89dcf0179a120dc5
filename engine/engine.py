"""The engine: creates, opens, lists and closes conversations; owns every one that runs here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from engine.activities import ActivityTeller, Watcher
from engine.agents.manager import SubAgents
from engine.agents.tool_sets import all_tools, profile_of, tools_for
from engine.conversation import Conversation
from engine.conversation_bulk import ConversationBulk
from engine.executor.composing import window_of
from engine.executor.effect_runner import EffectRunner
from engine.executor.governor import Governor
from engine.executor.publisher import Publisher
from engine.executor.requests import Activity as Activity
from engine.executor.requests import ConversationOptions as ConversationOptions
from engine.executor.requests import EngineError as EngineError
from engine.executor.requests import MemoryShort
from engine.executor.session import EngineSettings, Ports, Session
from engine.following import Following, why_read_only
from engine.ports import ConversationChanges, NoConversation, OwnedElsewhere
from engine.ports.database_waits import DatabaseWaits
from engine.records import (
    Attachment,
    ConversationQuery,
    ConversationSummary,
    NewConversation,
    Recovery,
    StoredConversation,
)
from engine.resting import Resting
from engine.rule_store import RuleStore
from engine.titles import Titler
from engine.turn_notes import TurnNotes
from engine.updates import Update
from tools.garbage import garbage
from tools.shedding import Order, shedding

AgentFollower: TypeAlias = Callable[[Conversation, Update], None]
"""Listener to updates of sub-agents."""

KILOBYTES: Final = 150
"""Kilobytes of an open conversation of some turns, without its messages."""


class Engine:
    """Conversations of one database, in one process."""

    def __init__(self, ports: Ports, settings: EngineSettings | None = None) -> None:
        self.ports = ports
        self._settings = settings or EngineSettings()
        self._governor = Governor()
        self._open: dict[str, Conversation] = {}
        self._watchers: list[Watcher] = []
        self._followers: list[AgentFollower] = []
        self._opening = asyncio.Lock()
        self._askers: dict[str, tuple[Titler, TurnNotes]] = {}
        self._following: dict[str, Following] = {}
        self.resting = Resting(self._open, self._needed, partial(self._close, rests=True))
        """Closes conversations that were left."""
        self.bulk = ConversationBulk(ports, self._open)
        self._closing: dict[str, asyncio.Event] = {}
        hires = ports.agents is not None
        self.sub_agents = (
            SubAgents(ports, self._settings, self._open, self._adopt, self.open, self.forget) if hires else None
        )
        """Sub-agents of its conversations; None without a store for them."""
        self._tools = all_tools(ports, self.sub_agents, self._settings.agent_depth)
        self.rules = RuleStore(ports, self._open)
        self._register_caches()

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
        return tuple(self._tools)

    async def start(self) -> Sequence[Recovery]:
        """Recover all conversations at the start, without model calls (SPEC DEC-03)."""
        return await self.ports.store.recover_all()

    async def create(self, options: ConversationOptions) -> Conversation:
        """A new conversation, open and idle.

        Raises:
            EngineError: the folder is no usable working directory, or memory is short.
        """
        self._refuse_when_full()
        cwd = working_directory(options.cwd)
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
        )
        return await self._adopt(await self.ports.store.create(new, self.ports.clock.now()))

    async def open(self, conversation_id: str) -> Conversation:
        """A stored conversation; read-only when another process owns it.

        Raises:
            EngineError: there is no such conversation, or memory is short.
            StorageError: it cannot be read.
        """
        while True:
            if (closing := self._closing.get(conversation_id)) is not None:
                await closing.wait()  # it would lose here what that one releases; others open meanwhile
            async with self._opening:
                if conversation_id not in self._closing:
                    return self._open.get(conversation_id) or await self._take(conversation_id)

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

    async def fork(self, conversation_id: str, up_to_seq: int | None = None) -> Conversation:
        """A copy under a new id, open here."""
        self._refuse_when_full()
        new_id, now = self.ports.ids.new(), self.ports.clock.now()
        record = await self.ports.library.fork(conversation_id, new_id, now, up_to_seq)
        return await self._adopt(record)

    async def change(self, conversation_id: str, changes: ConversationChanges) -> None:
        """Rename, archive, trash and the like.

        Raises:
            EngineError: there is no such conversation, or another process owns it.
            StorageError: it cannot be stored.
        """
        conversation = self._open.get(conversation_id)
        if conversation is not None:
            await conversation.change(changes)
            return
        try:
            await self.ports.store.take(conversation_id)
        except OwnedElsewhere as owner:
            raise EngineError(
                f"Process {owner.pid} has this conversation open; close it there, or --fork it."
            ) from owner
        except NoConversation as error:
            raise EngineError(str(error)) from error
        try:
            await self.ports.store.change(conversation_id, changes, self.ports.clock.now())
        finally:
            await self.ports.store.release(conversation_id)

    def live(self) -> tuple[Conversation, ...]:
        """Every conversation that is open here."""
        return tuple(self._open.values())

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` for changes in every open conversation; the result ends it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def follow_agents(self, follower: AgentFollower) -> Callable[[], None]:
        """Call `follower` for every update of every sub-agent; the result ends it."""
        self._followers.append(follower)
        return lambda: self._followers.remove(follower)

    async def forget(self, conversation_id: str) -> None:
        """Close one conversation; its run is stopped."""
        await self._close(conversation_id)

    async def _close(self, conversation_id: str, *, rests: bool = False) -> None:
        self.resting.stop(conversation_id)
        if self.sub_agents is not None:
            self.sub_agents.stop((conversation_id,))
        conversation = self._open.pop(conversation_id, None)
        if conversation is None:
            return
        self._closing[conversation_id] = closed = asyncio.Event()
        try:
            if (following := self._following.pop(conversation_id, None)) is not None:
                await following.close()
            for asker in self._askers.pop(conversation_id):
                await asker.close()
            await conversation.close(rests=rests)
            if self.sub_agents is not None and conversation.record.agent is None:
                await self.sub_agents.leave(conversation)
        finally:
            del self._closing[conversation_id]
            closed.set()
            garbage.ended(KILOBYTES)

    async def stop_all(self) -> None:
        """Cancel the run of every open conversation."""
        for conversation in self.live():
            conversation.cancel()
        await asyncio.gather(*(conversation.wait_idle() for conversation in self.live()))

    async def close(self) -> None:
        """Stop everything within the grace time, then close store and providers."""
        self.ports.store.waits.hurry()
        if self.sub_agents is not None:
            self.sub_agents.close()
        await self.resting.close()
        await asyncio.gather(*(self.forget(conversation_id) for conversation_id in tuple(self._open)))
        if self.ports.rewinding is not None:
            await self.ports.rewinding.close()
        await self.ports.providers.close()
        await self.ports.store.close()

    def _refuse_when_full(self) -> None:
        if why := self._settings.why_full():
            raise MemoryShort(why)

    def _register_caches(self) -> None:
        """Register caches to drop when memory is short."""
        shedding.add("messages of conversations at rest", Order.READ, self._rows_at_rest, self._forget_rows)
        shedding.add("conversations out of sight", Order.OPEN, self.resting.__len__, self.resting.now)
        shedding.add("looks at folders", Order.READ, self._looks, self._forget_looks)

    def _looks(self) -> int:
        return int(self.ports.rewinding is not None and self.ports.rewinding.recorder.keeps)

    def _forget_looks(self) -> None:
        if self.ports.rewinding is not None:
            self.ports.rewinding.recorder.rest()

    def _rows_at_rest(self) -> int:
        return sum(one.context.kept_messages for one in self.live())

    def _forget_rows(self) -> None:
        for one in self.live():
            one.context.forget_messages()

    def _needed(self, conversation: Conversation) -> bool:
        asks = any(asker.under_way for asker in self._askers[conversation.id])
        return asks or conversation.in_use or (self.sub_agents is not None and self.sub_agents.needs(conversation.id))

    async def _take(self, conversation_id: str) -> Conversation:
        self._refuse_when_full()
        read_only = ""
        try:
            await self.ports.store.take(conversation_id)
        except OwnedElsewhere as owner:
            read_only = why_read_only(owner.pid)
        except NoConversation as error:
            raise EngineError(str(error)) from error
        record = await self.ports.store.conversation(conversation_id)
        if record is None:
            raise EngineError(str(NoConversation(conversation_id)))
        return await self._adopt(record, read_only)

    async def _adopt(self, stored: StoredConversation, read_only: str = "") -> Conversation:
        publisher, record = Publisher(), stored.record
        profile = profile_of(record, self.ports)
        tools = tools_for(record, profile, self._tools)
        session = Session(
            record,
            stored.state,
            self.ports,
            self._settings,
            self._governor,
            publisher,
            tools,
            profile,
            self.sub_agents,
            read_only,
        )
        session.set_window(window_of(session, record.model))
        conversation = Conversation(session, runner := EffectRunner(session))
        titler, notes = self._askers[record.id] = Titler(conversation, session), TurnNotes(conversation, session)
        publisher.add(titler.follow)
        runner.after_run = notes.begin
        if record.agent is None:  # sub-agents are in no list
            publisher.add(ActivityTeller(conversation, self._watchers).follow)
            publisher.left = partial(self.resting.soon, conversation)
        else:
            publisher.add(partial(_tell, self._followers, conversation))
        await conversation.load()
        self._open[record.id] = conversation
        if read_only:
            self._following[record.id] = following = Following(conversation, session)
            await following.catch_up()
            following.begin()
        if self.sub_agents is not None:
            await self.sub_agents.welcome(conversation, publisher)
        return conversation


def working_directory(path: Path) -> Path:
    """The real path of a usable working directory (SPEC SDK-25).

    Raises:
        EngineError: it does not exist, is no folder or cannot be read.
    """
    try:
        resolved = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise EngineError(f"The working directory {path} does not exist: choose another with -C.") from error
    if not resolved.is_dir():
        raise EngineError(f"{path} is not a directory: choose another with -C.")
    if not os.access(resolved, os.R_OK | os.X_OK):
        raise EngineError(f"The directory {path} cannot be read: check its permissions.")
    return resolved


def _tell(followers: Sequence[AgentFollower], agent: Conversation, update: Update) -> None:
    for follower in tuple(followers):
        follower(agent, update)
