"""Open conversations of this process: opened once, listed with their activity, and closed some time after their last
viewer left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeAlias, runtime_checkable

from engine.background.after_run import CompactionAfterRun, Titler, TurnNotes
from engine.context.estimate import Calibration
from engine.conversation import Conversation
from engine.executor.effect_runner import EffectRunner
from engine.executor.engine_settings import EngineSettings
from engine.executor.model_limits import Governor, build_caps
from engine.executor.requests import Activity, EngineError, MemoryShort
from engine.executor.session import AgentStopper, Equipment, ModelUse, Ports, Session
from engine.executor.window import window_of
from engine.following import CancelWatcher, Following, why_read_only
from engine.machine.states import STATE_NAMES, AwaitingApproval, Errored, State, StopCause
from engine.ports import NoConversation, OwnedElsewhere
from engine.ports.profiles import ASK_TOOL, OWN_TOOLS, Profile, ProfileError
from engine.records import ConversationRecord, ConversationSummary, StoredConversation
from engine.tracking.tracker import TaskTracker
from engine.updates import (
    AgentsChanged,
    AgentView,
    ApprovalAsked,
    ConversationChanged,
    LiveTextDropped,
    MessageSaved,
    Publisher,
    StateChanged,
    TextArrived,
    ToolDrafted,
    Update,
    ViewersLeft,
)
from tools.contract import Tool
from tools.shedding import garbage


def summary_of(record: ConversationRecord, state: State) -> ConversationSummary:
    """The row of an open conversation; it is read while it is shown, so never unread here."""
    return ConversationSummary(
        id=record.id,
        title=record.title,
        cwd=record.cwd,
        model=record.model,
        state_name=STATE_NAMES[type(state)],
        context_tokens=record.context_tokens,
        context_window=record.context_window,
        totals=record.spent,
        archived=record.archived,
        unread=False,
        updated_at=record.updated_at,
        message_count=record.message_count,
        owner_pid=record.owner_pid,
        pinned_at=record.pinned_at,
        last_status=record.last_status,
        has_draft=bool(record.draft),
        progress=record.todos.progress if record.todos.is_open else "",
        put_away_at=record.updated_at if record.archived or record.deleted else 0.0,
    )


Watcher = Callable[[Activity], None]


class WatchedConversation(Protocol):
    """A conversation, as far as a list knows it."""

    @property
    def record(self) -> ConversationRecord:
        """Stored facts of the conversation."""
        ...

    @property
    def state(self) -> State:
        """State of the machine."""
        ...


class ActivityReporter:
    """Follows one conversation. Reports only the first piece of a streaming answer, so that twenty at once cost
    nothing.
    """

    def __init__(self, conversation: WatchedConversation, watchers: Sequence[Watcher]) -> None:
        self._conversation = conversation
        self._watchers = watchers
        self._writing = False
        self._agents = (0, 0)
        """Sub-agents at work, and those that ask."""
        self._asked_by_server = False

    def follow(self, update: Update) -> None:
        """Send the watchers the changes that a list shows."""
        match update:
            case TextArrived() | ToolDrafted():
                if self._writing:
                    return
                self._writing = True
            case StateChanged() | MessageSaved():
                self._writing = False
            case LiveTextDropped():
                self._writing = False
                return  # a change of state follows
            case ApprovalAsked(question):
                self._asked_by_server = question is not None and bool(question.server)
            case ConversationChanged():
                pass
            case AgentsChanged(agents=views):
                before, self._agents = self._agents, count_agents(views)
                if before == self._agents:
                    return
            case _:
                return
        if self._watchers:
            self._tell()

    def _tell(self) -> None:
        state = self._conversation.state
        needs_you = isinstance(state, AwaitingApproval | Errored) or self._agents[1] > 0 or self._asked_by_server
        activity = Activity(
            summary_of(self._conversation.record, state), state, needs_you, self._writing, *self._agents
        )
        for watcher in tuple(self._watchers):
            watcher(activity)


def count_agents(views: Sequence[AgentView]) -> tuple[int, int]:
    """Number of sub-agents that work or queue, and number of them whose questions are open."""
    working = [view for view in views if view.outcome is None]
    return len(working), sum(isinstance(view.state, AwaitingApproval) and view.asked > 0.0 for view in working)


AgentFollower: TypeAlias = Callable[[Conversation, Update], None]
"""Listener to updates of sub-agents."""

KILOBYTES: Final = 150
"""Kilobytes of an open conversation of some turns, without its messages."""
PATIENCE: Final = 60.0
"""Seconds after the last look: going back and forth between two conversations reads neither again."""
AGENT_PATIENCE: Final = 5.0
"""Seconds that a sub-agent stays open after its end or its last viewer: ten of them hold ten transcripts."""


class AgentOwner(AgentStopper, Protocol):
    """Owner of all sub-agents, which are conversations themselves and therefore above this module."""

    async def welcome(self, conversation: Conversation, publisher: Publisher) -> None:
        """Know a conversation that was opened."""
        ...

    async def leave(self, parent: Conversation, by: StopCause) -> None:
        """End the sub-agents of a conversation that closes."""
        ...

    def needs(self, parent_id: str) -> bool:
        """True when a conversation must stay open for its sub-agents."""
        ...

    def works(self, agent_id: str) -> bool:
        """True while a sub-agent must stay open."""
        ...


class BackgroundAsker(Protocol):
    """Asks a model beside the messages of one conversation, after what happens in it."""

    @property
    def under_way(self) -> bool:
        """True while it asks, or stores an answer."""
        ...

    def follow(self, update: Update) -> None:
        """Take in an update."""
        ...

    async def close(self) -> None:
        """Stop asking, within the grace time of a conversation."""
        ...


@runtime_checkable
class FolderTool(Protocol):
    """A tool whose definition depends on the folder of its conversation."""

    def in_folder(self, cwd: Path) -> Tool:
        """The tool of a conversation that works there."""
        ...


class OpenConversations:
    """Opens, keeps and closes the conversations of this process."""

    def __init__(self, ports: Ports, settings: EngineSettings) -> None:
        self.ports = ports
        self.watchers: list[Watcher] = []
        """Listeners to the activity of conversations of the user."""
        self.followers: list[AgentFollower] = []
        self.tools: Mapping[str, Tool] = ports.tools
        """Tools of conversations of the user."""
        self.sub_agents: AgentOwner | None = None
        self.cancelling: CancelWatcher | None = None
        """Listener to all of them, which cancels runs for other processes."""
        self.resting = Resting(self)
        """Closes conversations that were left."""
        self._settings = settings
        self._governor = Governor()
        self._spending = build_caps(ports.statistics, ports.clock, settings.budget_day_usd, settings.budget_project_usd)
        self._calibration = Calibration()
        self._open: dict[str, Conversation] = {}
        self._opening = asyncio.Lock()
        self._askers: dict[str, tuple[BackgroundAsker, ...]] = {}
        self.trackers: dict[str, TaskTracker] = {}
        """The askers that task boards call, by conversation."""
        self._following: dict[str, Following] = {}
        self._closing: dict[str, asyncio.Event] = {}

    @property
    def opened(self) -> Mapping[str, Conversation]:
        """Open conversations by id."""
        return self._open

    def refuse_when_full(self) -> None:
        """Raise MemoryShort while no conversation can be opened."""
        if why := self._settings.memory_gauge.refusal():
            raise MemoryShort(why)

    async def open(self, conversation_id: str) -> Conversation:
        """Open a stored conversation; it is read-only when another process owns it.

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

    async def adopt(self, stored: StoredConversation, read_only: str = "") -> Conversation:
        """Open a conversation that this process has taken, or only follows."""
        publisher, record = Publisher(), stored.record
        profile = _profile_of(record, self.ports)
        tools, settings = _tools_of(record, profile, self.tools, asks=self._settings.attended), self._settings
        session = Session(
            record,
            stored.state,
            self.ports,
            settings,
            publisher,
            Equipment(tools, profile, self.sub_agents),
            ModelUse(self._governor, self._calibration, self._spending),
            read_only,
        )
        session.change_record(context_window=window_of(session, record.model))
        conversation = Conversation(session, EffectRunner(session))
        self._askers[record.id] = self._askers_of(conversation, session)
        for asker in self._askers[record.id]:
            publisher.add(asker.follow)
        publisher.add(partial(self._follow_viewers, conversation))
        if self.cancelling is not None:
            publisher.add(self.cancelling.follow)
        if record.agent is None:  # sub-agents are in no list
            publisher.add(ActivityReporter(conversation, self.watchers).follow)
        else:
            publisher.add(partial(_tell, self.followers, conversation))
        await conversation.load()
        self._open[record.id] = conversation
        if read_only:
            self._following[record.id] = following = Following(conversation, session)
            await following.catch_up()
            following.begin()
        if self.sub_agents is not None:
            await self.sub_agents.welcome(conversation, publisher)
        return conversation

    async def close(self, conversation_id: str, *, rests: bool = False, by: StopCause = StopCause.USER) -> None:
        """Close one; its run is stopped. One that `rests` may be opened again with all that its jobs printed."""
        self.resting.stop(conversation_id)
        if self.sub_agents is not None:
            self.sub_agents.stop((conversation_id,), by)
        conversation = self._open.pop(conversation_id, None)
        if conversation is None:
            return
        self._closing[conversation_id] = closed = asyncio.Event()
        try:
            if (following := self._following.pop(conversation_id, None)) is not None:
                await following.close()
            self.trackers.pop(conversation_id, None)
            for asker in self._askers.pop(conversation_id):
                await asker.close()
            await conversation.close(rests=rests, by=by)
            for source in self.ports.extensions:
                source.close_conversation(conversation_id)
            if self.ports.edit_checks is not None:
                self.ports.edit_checks.forget_conversation(conversation_id)
            if self.sub_agents is not None and conversation.record.agent is None:
                await self.sub_agents.leave(conversation, by)
        finally:
            del self._closing[conversation_id]
            closed.set()
            garbage.note_end(KILOBYTES)

    def needs(self, conversation: Conversation) -> bool:
        """True while something of a conversation without viewers would be missed if it were closed now."""
        sub_agents = self.sub_agents
        if conversation.record.agent is not None:
            return sub_agents is not None and sub_agents.works(conversation.id)
        asks = any(asker.under_way for asker in self._askers[conversation.id])
        return asks or conversation.in_use or (sub_agents is not None and sub_agents.needs(conversation.id))

    def _askers_of(self, conversation: Conversation, session: Session) -> tuple[BackgroundAsker, ...]:
        """All that ask beside its messages; task tracking is for conversations of the user, and is closed first."""
        askers = (
            Titler(conversation, session),
            TurnNotes(conversation, session),
            CompactionAfterRun(conversation, session),
        )
        if session.record.agent is not None or self.ports.tasks is None:
            return askers
        self.trackers[conversation.id] = tracker = TaskTracker(conversation, session, self.ports.tasks)
        tracker.look()
        return tracker, *askers

    async def _take(self, conversation_id: str) -> Conversation:
        self.refuse_when_full()
        read_only = ""
        try:
            await self.ports.store.take(conversation_id)
        except OwnedElsewhere as owner:
            read_only = why_read_only(owner.pid)
        except NoConversation as error:
            raise EngineError(str(error)) from error
        stored = await self.ports.store.conversation(conversation_id)
        if stored is None:
            raise EngineError(str(NoConversation(conversation_id)))
        return await self.adopt(stored, read_only)

    def _follow_viewers(self, conversation: Conversation, update: Update) -> None:
        if isinstance(update, ViewersLeft):
            self.resting.soon(conversation)


class Resting:
    """Closes an idle conversation some time after its last viewer left; the store has all of it."""

    def __init__(self, conversations: OpenConversations) -> None:
        self._conversations = conversations
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.patience = PATIENCE
        self.agent_patience = AGENT_PATIENCE

    def __len__(self) -> int:
        """Number of conversations due to be closed."""
        return len(self._due)

    def soon(self, conversation: Conversation) -> None:
        """Close it after a while if it has no viewer then; look again later while it is busy."""
        self.stop(conversation.id)
        patience = self.patience if conversation.record.agent is None else self.agent_patience
        self._due[conversation.id] = asyncio.get_running_loop().call_later(patience, self._look, conversation)

    def now(self) -> None:
        """Close at once all due conversations that are not needed: memory is short."""
        for conversation_id in tuple(self._due):
            if (conversation := self._conversations.opened.get(conversation_id)) is not None:
                self._look(conversation)

    def stop(self, conversation_id: str) -> None:
        """Look at this one no more."""
        if (due := self._due.pop(conversation_id, None)) is not None:
            due.cancel()

    async def close(self) -> None:
        """Look no more, and wait for those that are being closed."""
        for conversation_id in tuple(self._due):
            self.stop(conversation_id)
        await asyncio.gather(*self._closing)

    def _look(self, conversation: Conversation) -> None:
        self.stop(conversation.id)
        if self._conversations.opened.get(conversation.id) is not conversation or conversation.agents.watched:
            return
        of_user = conversation.record.agent is None
        if self._conversations.needs(conversation):
            if of_user:  # the end of a sub-agent that works begins the wait again
                self.soon(conversation)
            return
        task = asyncio.get_running_loop().create_task(self._conversations.close(conversation.id, rests=of_user))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _profile_of(record: ConversationRecord, ports: Ports) -> Profile | None:
    """Profile of a conversation; None when it is gone or broken by now: the mode remains the conversation's own."""
    if ports.profiles is None or not record.profile:
        return None
    try:
        return ports.profiles.resolve(record.profile, record.cwd)
    except ProfileError:
        return None


def _tools_of(
    record: ConversationRecord, profile: Profile | None, tools: Mapping[str, Tool], *, asks: bool
) -> dict[str, Tool]:
    """Tools of this conversation's model; a sub-agent never spawns (SPEC BED-009), and `asks` says if a user is
    there to be asked.
    """
    left_out = {*(OWN_TOOLS if record.agent is not None else ()), *(() if asks else (ASK_TOOL,))}
    own = {
        name: tool.in_folder(record.cwd) if isinstance(tool, FolderTool) else tool
        for name, tool in tools.items()
        if name not in left_out
    }
    return {name: tool for name, tool in own.items() if profile is None or profile.allows(name)}


def _tell(followers: Sequence[AgentFollower], agent: Conversation, update: Update) -> None:
    for follower in tuple(followers):
        follower(agent, update)
