"""What a subscriber of a conversation is told: one snapshot, then live updates in order (SPEC BED-011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from engine.machine.messages import ToolCall, ToolResult
from engine.machine.states import State
from engine.records import ConversationRecord, StoredMessage, ToolCallRecord
from tools.contract import JobInfo, Progress, ToolRequest


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How things stand when a subscription begins."""

    conversation: ConversationRecord
    state: State
    state_since: float
    """Monotonic time of the last state change."""
    messages: tuple[StoredMessage, ...]
    """The newest ones; older ones come from `Conversation.history`."""
    tool_calls: tuple[ToolCallRecord, ...]
    live_text: str
    """What has streamed of the reply under way; not stored yet."""
    live_thinking: str
    question: Question | None
    resumable: bool
    read_only: str
    """Not empty when another process owns it: the sentence to show."""


@dataclass(frozen=True, slots=True)
class Question:
    """A tool call that waits for an answer, with everything an approval must show."""

    call: ToolCall
    request: ToolRequest
    reason: str
    rule: str
    """The pattern that "always" would save."""
    asker: str
    """Who asks: the conversation's title, and the sub-agent's if it is one."""


@dataclass(frozen=True, slots=True)
class MessageSaved:
    """A message is in the database."""

    message: StoredMessage


@dataclass(frozen=True, slots=True)
class TextArrived:
    """More of the reply under way; merged, never reordered."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingArrived:
    """More reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolDrafted:
    """The model is writing a tool call: its name and how many characters of arguments so far."""

    name: str
    characters: int


@dataclass(frozen=True, slots=True)
class LiveTextDropped:
    """The reply under way ends unsaved; `cancelled` when the user stopped it, else it will be asked again."""

    cancelled: bool


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call is about to run, or to be asked about."""

    call: ToolCall
    request: ToolRequest | None
    """None when its arguments made no sense."""


@dataclass(frozen=True, slots=True)
class ToolProgressed:
    """A running call says something."""

    call_id: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A call is settled."""

    result: ToolResult
    duration: float
    ended_processes: int = 0


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The machine moved; `since` is monotonic."""

    state: State
    since: float
    resumable: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A question is open; None when it is closed."""

    question: Question | None


@dataclass(frozen=True, slots=True)
class ContextChanged:
    """The meter: tokens in the window, its size (0 unknown), whether estimated, the cost so far."""

    tokens: int
    window: int
    estimated: bool
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """A failed call is tried again in `seconds`."""

    attempt: int
    seconds: float
    cause: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something to say in passing."""

    text: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run is over: its status as in `runs.status`, and what the user should know."""

    run_id: str
    status: str
    error: str
    error_code: str
    iterations: int


@dataclass(frozen=True, slots=True)
class ConversationChanged:
    """Title, model, mode or archive state changed."""

    conversation: ConversationRecord


@dataclass(frozen=True, slots=True)
class JobsChanged:
    """The background jobs of the conversation."""

    jobs: tuple[JobInfo, ...]


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
    | Asked
    | ContextChanged
    | RetryScheduled
    | Noticed
    | RunEnded
    | ConversationChanged
    | JobsChanged
)
