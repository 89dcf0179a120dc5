"""An engine without models: conversations whose updates a test plays by hand."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from engine.engine import Activity, ConversationOptions, Engine, EngineError
from engine.executor.requests import Accepted, ApprovalAnswer, Receipt, Refused, RunCaps
from engine.executor.session import MessageRange
from engine.executor.session_parts import HookFacts
from engine.machine.messages import Origin, Role, TextBlock, ToolCall
from engine.machine.states import (
    AwaitingApproval,
    AwaitingLlm,
    Errored,
    Idle,
    Requesting,
    Run,
    State,
    StopCause,
    ToolExecuting,
    ToolRound,
    is_busy,
)
from engine.machine.texts import BUSY
from engine.open_conversations import ActivityReporter, summary_of
from engine.permissions.rules import Rule
from engine.ports import ConversationChanges, ModelInfo
from engine.ports.storage import DatabaseWaits
from engine.records import (
    Attachment,
    ConversationQuery,
    ConversationRecord,
    ConversationSummary,
    ForkPlace,
    SideExchange,
    StoredMessage,
)
from engine.records.runs import CallSum, RunRecord, Totals
from engine.records.tracked_tasks import TrackingStatus
from engine.run_options import Effort
from engine.search import SearchQuery
from engine.store.library import Library
from engine.updates import (
    ApprovalAsked,
    ConversationChanged,
    LiveTextDropped,
    MessageSaved,
    Question,
    RunEnded,
    Snapshot,
    StateChanged,
    TasksChanged,
    TextArrived,
    ToolStarted,
    Update,
)
from phoenix_tui.features.service_interfaces import InstallProgress, LocalOffer, Setting
from phoenix_tui.lifecycle.launch import Launch, Services
from tests.support.fake_agents import FakeSubAgents
from tests.support.fake_context import FakeContext
from tests.support.fake_jobs import FakeJobs
from tests.support.fake_library import FakeLibrary
from tests.support.fake_models import MODELS, FakeModels
from tests.support.fake_profiles import FakeProfiles
from tests.support.fake_queue import FakeQueue
from tests.support.fake_routing import FakeRouting
from tests.support.fake_rules import rule_desk
from tests.support.fake_side import FakeSide
from tests.support.fake_tasks import FakeTasks
from tests.support.fake_terminal import FakeTerminal
from tests.support.fake_todos import FakeTodos
from tests.support.fake_traces import FakeTraces
from tools.contract import Command, Enforcement, Finished, ImageRejected, ToolRequest
from tools.displays import TodoList

RUN = Run("run-1", 50)
CLOCK = itertools.count(1_000)
KEPT = (
    "title",
    "draft",
    "scroll_seq",
    "model",
    "permission_mode",
    "sandbox",
    "archived",
    "deleted",
    "supervisor",
    "effort",
)
"""Changes that set the record's field of the same name."""


@dataclass
class FakeConversation:
    """Keeps what was asked of it; `play` tells its subscribers something."""

    record: ConversationRecord
    engine: FakeEngine
    read_only: str = ""
    state: State = field(default_factory=lambda: Idle(0))
    question: Question | None = None
    said: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    caps: list[RunCaps | None] = field(default_factory=list)
    answers: list[tuple[str, ApprovalAnswer]] = field(default_factory=list)
    shells: list[tuple[str, bool]] = field(default_factory=list)
    attached: list[bytes] = field(default_factory=list)
    messages: list[StoredMessage] = field(default_factory=list)
    cancelled: int = 0
    retried: int = 0
    warmed: int = 0
    refusal: str = ""
    """Reason with which every message is refused."""
    hold: asyncio.Event | None = None
    """Keeps every message waiting until it is set."""
    resumable: bool = False
    live_text: str = ""
    """Streamed text at the time of a subscription."""
    listeners: list[Callable[[Update], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = FakeQueue(self.play)
        self.context = FakeContext()
        self.hooks = HookFacts()
        self.routing = FakeRouting(self.play)
        self.side = FakeSide()
        self.todos = FakeTodos(lambda: self.record.todos, self.set_todos)
        self.jobs = FakeJobs(self.play)
        self.terminal = FakeTerminal()
        self.rules: dict[Rule, float] = {}
        self.teller = ActivityReporter(self, self.engine.watchers)

    @property
    def id(self) -> str:
        return self.record.id

    def set_todos(self, todos: TodoList) -> None:
        """Another list, told as the engine does."""
        self.record = replace(self.record, todos=todos)
        self.engine.stored[self.id] = self.record
        self.play(ConversationChanged(self.record))

    def play(self, *updates: Update) -> None:
        for update in updates:
            if isinstance(update, StateChanged):
                self.state = update.state
            if isinstance(update, ApprovalAsked):
                self.question = update.question
            for listener in tuple(self.listeners):
                listener(update)
            if self.record.agent is None:  # sub-agents are in no list
                self.teller.follow(update)

    def become(self, state: State) -> None:
        self.play(StateChanged(state, self.engine.now))

    async def subscribe(self, listener: Callable[[Update], None]) -> Callable[[], None]:
        listener(
            Snapshot(
                self.record,
                self.state,
                self.engine.now,
                tuple(self.messages),
                (),
                self.live_text,
                "",
                self.question,
                self.resumable,
                self.read_only,
                queue=self.queue.waiting,
                queue_held=self.queue.held,
                agents=tuple(self.engine.sub_agents.views(self.id)),
                route=self.routing.card,
                results=self.engine.sub_agents.results(self.id),
            )
        )
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def add(self, text: str, role: Role = Role.USER) -> StoredMessage:
        seq = len(self.messages) + 1
        origin = Origin.HUMAN if role is Role.USER else Origin.LLM
        message = StoredMessage(f"{self.id}-{seq}", seq, 0, seq - 1, role, origin, (TextBlock(text),), 0.0)
        self.messages.append(message)
        self.record = replace(self.record, message_count=seq)
        return message

    async def say(
        self,
        text: str,
        image_ids: Sequence[str] = (),
        caps: RunCaps | None = None,
        attached: Sequence[TextBlock] = (),
    ) -> Receipt:
        self.caps.append(caps)
        if self.hold is not None:
            await self.hold.wait()
        if self.read_only or self.refusal:
            return Refused(self.read_only or self.refusal)
        if is_busy(self.state):
            return Refused(BUSY)
        self.said.append((text, tuple(image_ids)))
        message = self.add(text)
        self.play(MessageSaved(message))
        self.become(AwaitingLlm(1, RUN, Requesting()))
        return Accepted(message.id)

    async def interrupt_and_say(self, text: str, image_ids: Sequence[str] = (), caps: RunCaps | None = None) -> Receipt:
        self.cancel()
        return await self.say(text, image_ids, caps)

    def answer_with(self, text: str) -> None:
        self.play(TextArrived(text), MessageSaved(self.add(text, Role.ASSISTANT)))
        self.record = replace(self.record, last_status="success")
        self.play(RunEnded(RUN.id, "success", "", "", 1))
        self.become(Idle(2))

    def cancel(self, by: StopCause = StopCause.USER) -> None:
        self.cancelled += 1
        self.engine.sub_agents.stop_all(self.id)
        if is_busy(self.state):
            self.record = replace(self.record, last_status="cancelled")
            self.play(LiveTextDropped(cancelled=True), ApprovalAsked(None), RunEnded(RUN.id, "cancelled", "", "", 1))
            self.become(Idle(3))
        elif isinstance(self.state, Errored):
            self.become(Idle(3))

    def ask(self, question: Question) -> None:
        round_ = ToolRound("m", question.call)
        self.play(ToolStarted(question.call, question.request))
        self.question = question
        self.become(AwaitingApproval(1, RUN, round_, question.reason))
        self.play(ApprovalAsked(question))

    async def answer(self, call_id: str, answer: ApprovalAnswer) -> Receipt:
        self.answers.append((call_id, answer))
        question = self.question
        self.play(ApprovalAsked(None))
        if question is not None:
            self.become(ToolExecuting(1, RUN, ToolRound("m", question.call)))
        return Accepted()

    async def attach(self, data: bytes, path: Path | None = None) -> Attachment:
        if not data.startswith(b"\x89PNG"):
            raise ImageRejected("This is no image.")
        self.attached.append(data)
        return _image(f"image-{len(self.attached)}")

    async def retry(self, caps: RunCaps | None = None) -> Receipt:
        self.caps.append(caps)
        self.retried += 1
        self.become(AwaitingLlm(1, RUN, Requesting()))
        return Accepted()

    async def shell(self, command: str, send_to_model: bool) -> Receipt:
        self.shells.append((command, send_to_model))
        return Accepted()

    async def change(self, changes: ConversationChanges) -> None:
        kept = {name: value for name in KEPT if (value := getattr(changes, name)) is not None}
        if changes.pinned is not None:
            kept["pinned_at"] = time.time() * changes.pinned
        if changes.unread is not None:
            (self.engine.unread.add if changes.unread else self.engine.unread.discard)(self.id)
        self.record = replace(self.record, **kept)
        if self.record.agent is None:
            self.engine.stored[self.id] = self.record
        self.play(ConversationChanged(self.record))

    async def history(self, before_seq: int, limit: int) -> MessageRange:
        return MessageRange(tuple(one for one in self.messages if one.seq < before_seq)[-limit:], ())

    def warm(self) -> None:
        self.warmed += 1


def _image(name: str) -> Attachment:
    return Attachment(name, Path(name), "image/png", 640, 480, 20, 640, 480, 20)


class FakeEngine:
    """Conversations in memory."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.now = time.monotonic()
        self.stored: dict[str, ConversationRecord] = {}
        self.opened: dict[str, FakeConversation] = {}
        self.closed = False
        self.watchers: list[Callable[[Activity], None]] = []
        self.unread: set[str] = set()
        self.forked_beside: list[SideExchange] = []
        self.forks: list[tuple[str, int | None]] = []
        self.searched: list[SearchQuery] = []
        self.summaries: dict[int, str] = {}
        """Summaries by the seq of a prompt."""
        self.written_elsewhere = False
        self.traces = FakeTraces()
        self.past_runs: list[RunRecord] = []
        self.states: dict[str, State] = {}
        """States of conversations that the list tells of; the others are idle."""
        self.call_sums: list[CallSum] = []
        self.bulk = FakeBulk(self)
        self.sub_agents = FakeSubAgents(self)
        self.tasks = FakeTasks(self._tasks_changed)
        self.waits = DatabaseWaits()
        self.rules = rule_desk(self.opened)
        self.spoken: dict[str, list[StoredMessage]] = {}
        """Messages of conversations that are closed."""

    def _tasks_changed(self, conversation_id: str, status: TrackingStatus) -> None:
        if (conversation := self.opened.get(conversation_id)) is not None:
            conversation.play(TasksChanged(conversation_id, status))

    def seed(
        self, title: str, *, draft: str = "", messages: int = 0, age: float = 0.0, cost: float = 0.0
    ) -> FakeConversation:
        conversation = self._make(ConversationOptions(self.cwd, "demo/guide", title))
        conversation.record = replace(
            conversation.record,
            draft=draft,
            message_count=messages,
            last_status="success" if messages else "",
            updated_at=conversation.record.updated_at - age,
            totals=Totals(cost_usd=cost),
        )
        for number in range(messages):
            conversation.add(f"message {number}", Role.ASSISTANT if number % 2 else Role.USER)
        self.stored[conversation.id] = conversation.record
        return conversation

    def _make(self, options: ConversationOptions) -> FakeConversation:
        number = len(self.stored) + 1
        at = time.time() - 100_000
        record = ConversationRecord(
            id=options.id or f"c{number:07d}",
            title=options.title,
            cwd=options.cwd,
            model=options.model,
            profile=options.profile,
            permission_mode=options.permission_mode,
            effort=options.effort,
            system_prompt="",
            append_system_prompt=options.append_system_prompt,
            context_window=200_000,
            context_tokens=0,
            context_estimated=False,
            totals=Totals(),
            draft="",
            scroll_seq=0,
            context_start_seq=1,
            summary="",
            archived=False,
            deleted=False,
            created_at=at,
            updated_at=at + number,
            message_count=0,
            owner_pid=None,
            sandbox=options.sandbox,
            sandbox_required=options.sandbox_required,
        )
        self.stored[record.id] = record
        self.opened[record.id] = conversation = FakeConversation(record, self)
        return conversation

    async def create(self, options: ConversationOptions) -> FakeConversation:
        return self._make(options)

    async def open(self, conversation_id: str) -> FakeConversation:
        if conversation_id not in self.stored and conversation_id not in self.opened:
            raise EngineError(f"There is no conversation {conversation_id}.")
        if conversation_id not in self.opened:
            self.opened[conversation_id] = opened = FakeConversation(self.stored[conversation_id], self)
            opened.messages = self.spoken.pop(conversation_id, [])
        return self.opened[conversation_id]

    async def list(self, query: ConversationQuery | None = None) -> Sequence[ConversationSummary]:
        query = query or ConversationQuery()
        wanted = (query.deleted, query.archived and not query.deleted)
        records = [self.opened[one].record if one in self.opened else self.stored[one] for one in self.stored]
        kept = [one for one in records if (one.deleted, one.archived and not one.deleted) == wanted]
        rows = [replace(self._summary(record), unread=record.id in self.unread) for record in kept]
        rows.sort(key=lambda row: -row.updated_at)
        return rows[query.offset : query.offset + query.limit]

    def _summary(self, record: ConversationRecord) -> ConversationSummary:
        return summary_of(record, self.states.get(record.id, Idle(0)))

    async def attachments(self, ids: Sequence[str]) -> Sequence[Attachment]:
        return tuple(_image(name) for name in ids if name != "gone")

    async def find(self, reference: str, *, partly: bool = False) -> Sequence[ConversationSummary]:
        stored = self.stored.values()
        found = [one for one in stored if reference in {one.id, one.title}]
        parts = [one for one in stored if reference.casefold() in one.title.casefold()] if partly else []
        return [self._summary(one) for one in found or parts]

    async def fork(
        self,
        conversation_id: str,
        up_to_seq: int | None = None,
        beside: Sequence[SideExchange] = (),
        place: ForkPlace | None = None,
    ) -> FakeConversation:
        self.forked_beside += beside
        source = await self.open(conversation_id)
        self.forks.append((conversation_id, up_to_seq))
        copy = self._make(
            ConversationOptions(place.cwd if place else self.cwd, source.record.model, f"{source.record.title} (copy)")
        )
        copy.messages = list(source.messages)
        return copy

    async def change(self, conversation_id: str, changes: ConversationChanges) -> None:
        await (await self.open(conversation_id)).change(changes)

    def watch(self, watcher: Callable[[Activity], None]) -> Callable[[], None]:
        self.watchers.append(watcher)
        return lambda: self.watchers.remove(watcher)

    def live(self) -> Sequence[FakeConversation]:
        return tuple(self.opened.values())

    async def forget(self, conversation_id: str) -> None:
        conversation = self.opened.pop(conversation_id, None)
        if conversation is not None:
            self.stored[conversation_id] = conversation.record
            self.spoken[conversation_id] = conversation.messages

    async def stop_all(self) -> None:
        for conversation in self.live():
            conversation.cancel()

    async def close(self, reason: str = "") -> None:
        await self.stop_all()
        self.closed = True


@dataclass
class FakeBulk:
    """Many at once."""

    engine: FakeEngine
    elsewhere: set[str] = field(default_factory=set)
    """Ids that another process owns."""

    async def change(self, ids: Iterable[str], changes: ConversationChanges) -> Sequence[str]:
        refused: list[str] = []
        for one in ids:
            if one in self.elsewhere:
                refused.append(one)
            elif one in self.engine.opened:
                await self.engine.opened[one].change(changes)
            else:
                conversation = FakeConversation(self.engine.stored[one], self.engine)
                await conversation.change(changes)
        return refused

    async def newest(self, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        return self.engine.spoken.get(conversation_id, [])[-limit:]

    async def purge(self, ids: Iterable[str]) -> Sequence[str]:
        for one in ids:
            del self.engine.stored[one]
        return []


@dataclass
class FakeOnboarding:
    """A machine that can run a small model."""

    offer: LocalOffer | None = None
    servers: Sequence[ModelInfo] = ()
    keys: list[tuple[str, str]] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    installed: int = 0

    async def local_offer(self) -> LocalOffer | None:
        return self.offer

    async def install(self, progress: Callable[[InstallProgress], None]) -> str:
        progress(InstallProgress(50, 100, "Downloading"))
        self.installed += 1
        return "local/small"

    async def save_key(self, provider: str, key: str) -> str:
        self.keys.append((provider, key))
        return f"{provider}/first"

    async def accept_server(self, reference: str) -> None:
        self.accepted.append(reference)

    async def local_servers(self) -> Sequence[ModelInfo]:
        return self.servers


@dataclass
class FakeSettings:
    """Settings that keep what was saved; a value "wrong" is refused."""

    kept: list[tuple[str, str]] = field(default_factory=list)
    rows: list[Setting] = field(
        default_factory=lambda: [
            Setting("model", "", "default", "text", "model of new conversations"),
            Setting("theme", "phoenix-dark", "config.toml:1", "text", "colours", (), True),
            Setting(
                "notifications", "auto", "default", "one of auto, bell, off", "tell me", ("auto", "bell", "off"), True
            ),
            Setting("mouse", "true", "default", "true or false", "the mouse", ("true", "false"), True),
            Setting("vim", "false", "default", "true or false", "the keys of vim", ("true", "false"), True),
        ]
    )

    def all(self) -> Sequence[Setting]:
        return self.rows

    def save(self, name: str, value: str) -> None:
        if value == "wrong":
            raise EngineError(f"config.toml: '{name}' must be something else, not 'wrong'.")
        self.kept.append((name, value))
        self._put(name, value, "config.toml:3")

    def reset(self, name: str) -> None:
        self.kept.append((name, ""))
        self._put(name, "", "default")

    def _put(self, name: str, value: str, source: str) -> None:
        self.rows = [replace(row, value=value, source=source) if row.name == name else row for row in self.rows]


class NoPrograms:
    """A runner on a machine without programs."""

    async def run(self, command: Command, report: object = None) -> Finished:
        raise FileNotFoundError(command.argv[0])


class FakeSystem:
    """A machine on which everything works."""

    async def doctor(self) -> str:
        return "everything works"

    def efforts(self, reference: str) -> tuple[Effort, ...]:
        return next((model.efforts for model in MODELS if model.reference == reference), ())

    async def enforcement(self) -> Enforcement:
        return Enforcement.FULL


def services(engine: FakeEngine, onboarding: FakeOnboarding | None = None, **changes: object) -> Services:
    """All services behind the screens, faked."""
    made = services_around(cast(Engine, engine), cast(Library, FakeLibrary(engine)), engine.cwd, onboarding)
    return replace(made, **changes)


def services_around(
    engine: Engine,
    library: Library,
    cwd: Path,
    onboarding: FakeOnboarding | None = None,
    settings: FakeSettings | None = None,
) -> Services:
    """An engine, with all services beside it faked."""
    return Services(
        engine,
        library,
        onboarding or FakeOnboarding(),
        NoPrograms(),
        FakeSystem(),
        settings or FakeSettings(),
        profiles=FakeProfiles(cwd),
        models=FakeModels(),
    )


def launch(folder: Path, **changes: object) -> Launch:
    """A start in `folder`."""
    made = Launch(folder, folder / "state", folder / "config.toml", folder / "keymap.toml")
    return replace(made, **changes)


def question(command: str = "rm -r build && make test", **changes: object) -> Question:
    """A bash call that asks."""
    made = Question(
        ToolCall("call-1", "bash", "{}"),
        ToolRequest(command, command=command),
        "a clean build is needed",
        f"bash({command})",
        "api-retry",
    )
    return replace(made, **changes)
