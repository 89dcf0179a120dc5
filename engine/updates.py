"""Updates for subscribers of a conversation: one snapshot, then live updates in order (SPEC BED-011)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from engine.machine.effects import Strategy
from engine.machine.messages import Role, ToolCall, ToolResult
from engine.machine.states import AgentOutcome, State
from engine.records import ConversationRecord, QueuedMessage, RunPriority, StoredMessage, ToolCallRecord
from engine.records.runs import ModelCall
from engine.records.tracked_tasks import TrackingStatus
from tools.contract import JobInfo, Progress, ToolClass, ToolRequest

if TYPE_CHECKING:
    from engine.ports.extensions import HookEvent, HookReply


MOST_TASKS: Final = 10
"""Tasks of one call (SPEC REQ-SA)."""
PARALLEL, SEQUENTIAL = Strategy.PARALLEL.value, Strategy.SEQUENTIAL.value
"""Orders in which the sub-agents of a call work."""


class RouteAgent(Struct, frozen=True):
    """One sub-agent of a decision."""

    profile: str
    task: str
    priority: RunPriority = RunPriority.NORMAL


class Route(Struct, frozen=True):
    """A decision that makes sense (SPEC SDK-09); texts are a model's."""

    strategy: Strategy = Strategy.SINGLE
    agents: tuple[RouteAgent, ...] = ()
    """Empty where the main model answers alone."""
    reasoning: str = ""
    confidence: float = 0.0
    """0 to 1."""
    fallback: str = ""
    """Reason why the main model answers alone, when no other decision was possible; else empty."""


class RouteCard(Struct, frozen=True):
    """A decision that can be overruled; nothing has been started yet."""

    id: str
    route: Route
    starts_at: float
    """Monotonic time at which it starts by itself; 0: it waits for the user."""


class StartAgents(Struct, frozen=True):
    """Start these; empty: as they were decided."""

    agents: tuple[RouteAgent, ...] = ()


class AnswerAlone(Struct, frozen=True):
    """The main model answers without them."""


RouteVerdict: TypeAlias = StartAgents | AnswerAlone


class RouteOffer(Struct, eq=False):
    """A decision shown to the user."""

    card: RouteCard
    verdict: asyncio.Future[RouteVerdict]
    timer: asyncio.TimerHandle | None = None
    answered: bool = False
    """True once the user answered, which is a yes to the start."""


class AgentView(Struct, frozen=True):
    """A sub-agent as a row shows it; times are wall clock, 0 where there is none."""

    id: str
    task: str
    profile: str
    model: str
    background: bool
    state: State
    waits: bool
    """Others have to end before it may start."""
    activity: str
    """Current action, such as the command of a running tool; empty while it thinks."""
    turn: int
    max_turns: int
    started: float
    ended: float
    timeout: float
    """Seconds that its run may take."""
    tokens: int
    """Tokens read and written in all its requests, independent of its window."""
    cost_usd: float | None
    last_output: float
    outcome: AgentOutcome | None = None
    """Outcome; None while it has not ended."""
    writing: bool = False
    """True while its reply arrives."""
    asked: float = 0.0
    """Time at which its question was asked."""
    call_id: str = ""
    """Call of the parent that began it."""


class Snapshot(Struct, frozen=True):
    """State of a conversation when a subscription begins."""

    conversation: ConversationRecord
    state: State
    state_since: float
    """Monotonic time of the last state change."""
    messages: tuple[StoredMessage, ...]
    """The newest ones; older ones come from `Conversation.history`."""
    tool_calls: tuple[ToolCallRecord, ...]
    live_text: str
    """Text of the current reply so far; not stored yet."""
    live_thinking: str
    question: Question | None
    resumable: bool
    read_only: str
    """Sentence to show when another process owns it; else empty."""
    run_started: float = 0.0
    """Monotonic time at which the run under way began; 0 between runs."""
    running: RunningCall | None = None
    queue: tuple[QueuedMessage, ...] = ()
    """Messages to send when the conversation is idle, first to be sent first."""
    queue_held: bool = False
    """True while the queue waits for the user after a stop, an error or a restart."""
    agents: tuple[AgentView, ...] = ()
    """Sub-agents, oldest first."""
    results: int = 0
    """Ends of its sub-agents that its model has not read yet."""
    route: RouteCard | None = None
    """The supervisor's decision that can be overruled now."""


class RunningCall(Struct, frozen=True):
    """The tool call that runs when a subscription begins."""

    call_id: str
    started: float
    """Monotonic."""
    tail: str
    """Newest output, at most 4 KB."""
    wants_screen: bool = False
    """True while a line of the user needs the whole terminal."""


class Question(Struct, frozen=True):
    """A tool call that waits for an answer, with everything an approval must show."""

    call: ToolCall
    request: ToolRequest
    reason: str
    rule: str
    """The pattern that "always" would save."""
    asker: str
    """Author of the question: the conversation's title (`as_asked` puts its model there), or the sub-agent's."""
    tool_class: ToolClass = ToolClass.RUN
    asked: float = 0.0
    """Monotonic."""
    left_open: bool = False
    """True when its run ended with Phoenix: the answer is sent as a message of the user."""
    server: str = ""
    """Name of the MCP server that asks, while one of its calls runs; empty for all others."""
    by_hook: bool = False
    """True where a hook wants the question: no mode and no rule answers it."""


class MessageSaved(Struct, frozen=True):
    """A message is in the database."""

    message: StoredMessage


class TextArrived(Struct, frozen=True):
    """Further text of the current reply; merged, never reordered."""

    text: str


class ThinkingArrived(Struct, frozen=True):
    """Further reasoning."""

    text: str


class ToolDrafted(Struct, frozen=True):
    """The model is writing a tool call: its name and how many characters of arguments so far."""

    name: str
    characters: int


class LiveTextDropped(Struct, frozen=True):
    """The reply under way ends unsaved; `cancelled` when the user stopped it, else it will be asked again."""

    cancelled: bool


class ToolStarted(Struct, frozen=True):
    """A call is about to run, or to be asked about."""

    call: ToolCall
    request: ToolRequest | None
    """Request of the call; None when its arguments were invalid."""


class ToolProgressed(Struct, frozen=True):
    """A running call says something."""

    call_id: str
    progress: Progress


class ToolEnded(Struct, frozen=True):
    """A call is settled."""

    result: ToolResult
    duration: float
    ended_processes: int = 0


class StateChanged(Struct, frozen=True):
    """The machine moved; `since` is monotonic."""

    state: State
    since: float
    resumable: bool = False


class ApprovalAsked(Struct, frozen=True):
    """A question is open; None when it is closed."""

    question: Question | None


class ContextChanged(Struct, frozen=True):
    """The meter: tokens in the window, its size (0 unknown), whether estimated, cost and tokens of all requests."""

    tokens: int
    window: int
    estimated: bool
    cost_usd: float | None
    used: int = 0


class CallEnded(Struct, frozen=True):
    """A stored model call, with its usage; also a failed or stopped one, or one beside runs."""

    call: ModelCall


class RetryScheduled(Struct, frozen=True):
    """A failed call is tried again in `seconds`."""

    attempt: int
    seconds: float
    cause: str


class Noticed(Struct, frozen=True):
    """A passing notice to the user."""

    text: str


class Paced(Struct, frozen=True):
    """Delay in seconds before the next call, to stay below the rate limit of its model."""

    seconds: float


class PromptProgressed(Struct, frozen=True):
    """Share of the prompt that the model's server has read, in per cent."""

    percent: int


class RunEnded(Struct, frozen=True):
    """The end of a run: its status as in `runs.status`, and the message for the user."""

    run_id: str
    status: str
    error: str
    error_code: str
    iterations: int


class ConversationChanged(Struct, frozen=True):
    """Title, model, mode or archive state changed."""

    conversation: ConversationRecord


class QueueChanged(Struct, frozen=True):
    """Queued messages, and True in `held` while they wait for the user."""

    waiting: tuple[QueuedMessage, ...]
    held: bool


class JobsChanged(Struct, frozen=True):
    """The background jobs of the conversation."""

    jobs: tuple[JobInfo, ...]


class AgentsChanged(Struct, frozen=True):
    """Current views of the sub-agents of the conversation, oldest first."""

    agents: tuple[AgentView, ...]
    results: int = 0
    """Ends that their parent's model has not read yet."""


class Routed(Struct, frozen=True):
    """The supervisor has decided, and this can be overruled; None once it is settled."""

    card: RouteCard | None


class AnswerEnded(Struct, frozen=True):
    """A run of the user's ended with an answer: work in the background may begin."""

    run_id: str


class BackgroundSummary(Struct, frozen=True):
    """A summary of older messages is being made in the background, or that is over."""

    active: bool


class TasksChanged(Struct, frozen=True):
    """The task board of a conversation, or what tracking did with its messages, has changed."""

    conversation_id: str
    status: TrackingStatus


class HookStarted(Struct, frozen=True):
    """A hook has begun; `call_id` names the call that it is about, if any."""

    hook_id: str
    event: HookEvent
    name: str
    call_id: str = ""
    status: str = ""
    """Text of its file to show while it runs."""
    subject: str = ""
    """Name that matchers are held against first, such as a tool's; empty where the event has none."""


class HookEnded(Struct, frozen=True):
    """A hook has ended; None where it was stopped."""

    hook_id: str
    reply: HookReply | None
    call_id: str = ""
    event: HookEvent | None = None
    subject: str = ""


class ViewersLeft(Struct, frozen=True):
    """The last viewer of a conversation has left; only parts of the engine still listen."""


Update: TypeAlias = (
    Snapshot
    | MessageSaved
    | TextArrived
    | ThinkingArrived
    | ToolDrafted
    | LiveTextDropped
    | ToolStarted
    | ToolProgressed
    | ToolEnded
    | StateChanged
    | ApprovalAsked
    | ContextChanged
    | CallEnded
    | RetryScheduled
    | Noticed
    | Paced
    | PromptProgressed
    | RunEnded
    | ConversationChanged
    | JobsChanged
    | QueueChanged
    | AgentsChanged
    | Routed
    | AnswerEnded
    | BackgroundSummary
    | TasksChanged
    | HookStarted
    | HookEnded
    | ViewersLeft
)


Listener = Callable[[Update], None]
Unsubscribe = Callable[[], None]
"""Ends a subscription."""
log = logging.getLogger(__name__)


class Publisher(Struct, eq=False):
    """The listeners of one conversation and the text that is streaming now."""

    text: list[str] = field(default_factory=list[str])
    thinking: list[str] = field(default_factory=list[str])
    _listeners: list[Listener] = field(default_factory=list[Listener])
    _watching: int = 0

    def watch(self, listener: Listener) -> Callable[[], None]:
        """Subscribe a viewer, in contrast to the engine's own parts; the result ends it."""
        remove, here = self.add(listener), True
        self._watching += 1

        def leave() -> None:
            nonlocal here
            remove()
            if here:
                here = False
                self._watching -= 1
                if not self._watching:
                    self.publish(ViewersLeft())

        return leave

    def add(self, listener: Listener) -> Callable[[], None]:
        """Subscribe; the returned function ends it."""
        self._listeners.append(listener)

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    @property
    def has_watchers(self) -> bool:
        """True while there are viewers."""
        return self._watching > 0

    def publish(self, update: Update) -> None:
        """Send the update to all listeners, and keep the live text for later subscribers."""
        match update:
            case TextArrived(text):
                self.text.append(text)
            case ThinkingArrived(text):
                self.thinking.append(text)
            case MessageSaved(message) if message.role is not Role.ASSISTANT:
                pass
            case MessageSaved() | LiveTextDropped():
                self.text.clear()
                self.thinking.clear()
            case _:
                pass  # other updates leave the live text unchanged
        for listener in tuple(self._listeners):
            try:
                listener(update)
            except Exception:  # the app edge: a screen that fails must not stop a conversation
                log.exception("a subscriber failed on %s and was dropped", type(update).__name__)
                if listener in self._listeners:
                    self._listeners.remove(listener)
