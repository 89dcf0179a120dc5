"""What the engine needs from outside, as Protocols, with the values that cross them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from engine.machine.effects import FinishRun, MarkToolCall, SaveToolCalls, SaveToolResult, StartRun
from engine.machine.messages import Block, NewMessage, Role, StopReason, Usage
from engine.machine.states import State
from engine.records import (
    Attachment,
    ConversationQuery,
    ConversationRecord,
    ConversationSummary,
    NewConversation,
    PermissionMode,
    Recovery,
    SearchHit,
    StoredMessage,
    ToolCallRecord,
    Totals,
)
from tools.contract import JsonObject, PreparedImage, ToolSpec

# The store. One move of the machine is one transaction.


@dataclass(frozen=True, slots=True)
class AppendMessage:
    """Append `message` with the next seq, in the current turn or a new one."""

    message: NewMessage
    run_id: str = ""
    new_turn: bool = False
    usage: Usage | None = None
    model: str = ""
    duration_ms: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class DrainInboxRows:
    """Turn unconsumed inbox rows into messages: tool results first as one, then one each (SPEC UNI-08)."""

    run_id: str
    message_ids: tuple[str, ...]
    """Fresh ids, at least one per row that may be there; unused ones are dropped."""
    new_turn: bool = False


@dataclass(frozen=True, slots=True)
class SetContext:
    """The context meter and the totals after a reply."""

    context_tokens: int
    context_window: int
    estimated: bool
    totals: Totals
    last_usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """One bus event for the `events` table; never a text chunk (SPEC SDK-04)."""

    id: str
    type: str
    payload_json: str = "{}"
    run_id: str = ""
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """One finished span of a run's trace (SPEC CLAW-80)."""

    id: str
    run_id: str
    kind: str
    """agent, llm or tool."""
    name: str
    iteration: int
    status: str
    duration_ms: int
    provider: str = ""
    model: str = ""
    usage: Usage | None = None
    error: str = ""
    output_preview: str = ""


Write: TypeAlias = (
    AppendMessage
    | SaveToolCalls
    | MarkToolCall
    | SaveToolResult
    | StartRun
    | FinishRun
    | DrainInboxRows
    | SetContext
    | RecordEvent
    | RecordSpan
)


@dataclass(frozen=True, slots=True)
class Move:
    """All that one step of the machine changes, committed together or not at all."""

    conversation_id: str
    state: State
    writes: tuple[Write, ...]
    at: float
    """Wall clock, seconds since the epoch; order is by seq, never by this."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The messages a move appended, with their seq, in order."""

    messages: tuple[StoredMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class ConversationChanges:
    """Fields to change outside a move; None leaves a field as it is."""

    title: str | None = None
    draft: str | None = None
    scroll_seq: int | None = None
    model: str | None = None
    permission_mode: PermissionMode | None = None
    archived: bool | None = None
    deleted: bool | None = None
    unread: bool | None = None


class StorageError(Exception):
    """The database cannot do this; the message is one sentence for the user and names the fix."""


class OwnedElsewhere(Exception):
    """Another process owns the conversation."""

    def __init__(self, conversation_id: str, pid: int) -> None:
        super().__init__(f"Process {pid} has this conversation open.")
        self.conversation_id = conversation_id
        self.pid = pid


class Store(Protocol):
    """Everything that stays. Every method may raise StorageError."""

    @property
    def warning(self) -> str:
        """Not empty while nothing is kept on disk: why, and what to do (FAULTS 30)."""
        ...

    async def create(self, new: NewConversation, at: float) -> ConversationRecord:
        """Create a conversation in state idle, owned by this process."""
        ...

    async def conversation(self, conversation_id: str) -> ConversationRecord | None:
        """One conversation, or None."""
        ...

    async def conversations(self, query: ConversationQuery) -> list[ConversationSummary]:
        """The list, newest first."""
        ...

    async def find(self, reference: str) -> list[ConversationSummary]:
        """Those whose id is `reference`, else whose id starts with it, else whose title equals it."""
        ...

    async def take(self, conversation_id: str) -> Recovery:
        """Become the owner; a dead owner's leavings are recovered first (SPEC c10).

        Raises:
            OwnedElsewhere: a living process has it.
        """
        ...

    async def release(self, conversation_id: str) -> None:
        """Give ownership up."""
        ...

    async def recover_all(self) -> list[Recovery]:
        """Boot recovery of every conversation whose owner is dead. Idempotent."""
        ...

    async def commit(self, move: Move) -> Committed:
        """Write one move in one transaction; no cancellation reaches it once it is queued."""
        ...

    async def note_process(self, conversation_id: str, call_id: str, pid: int, started: int) -> None:
        """Remember the process of a running call."""
        ...

    async def change(self, conversation_id: str, changes: ConversationChanges, at: float) -> None:
        """Change fields outside a move."""
        ...

    async def messages(
        self, conversation_id: str, *, first_seq: int = 1, last_seq: int | None = None, limit: int | None = None
    ) -> list[StoredMessage]:
        """Messages by seq, ascending; with `limit` the newest of the range."""
        ...

    async def tool_calls(self, conversation_id: str, message_ids: Sequence[str]) -> list[ToolCallRecord]:
        """The calls of these assistant messages, in request order."""
        ...

    async def add_attachment(self, conversation_id: str, image: PreparedImage, at: float) -> Attachment:
        """Store an image once per content hash and conversation."""
        ...

    async def attachments(self, ids: Sequence[str]) -> Mapping[str, Attachment]:
        """Attachments by id; unknown ids are missing from the answer."""
        ...

    async def close(self) -> None:
        """Finish queued writes and close; releases every ownership."""
        ...


class Library(Protocol):
    """What is done to whole conversations, past and present. Every method may raise StorageError."""

    async def fork(self, source_id: str, new_id: str, at: float, up_to_seq: int | None = None) -> ConversationRecord:
        """Copy a conversation, whole or up to a message, under a new id, owned by this process."""
        ...

    async def purge(self, conversation_id: str) -> None:
        """Remove a conversation for good, with its rows and its unshared attachments."""
        ...

    async def search(self, text: str, *, limit: int = 50) -> list[SearchHit]:
        """Messages that contain `text`, newest first."""
        ...

    async def export(self, conversation_id: str) -> JsonObject:
        """Everything of a conversation as JSON, lossless."""
        ...

    async def import_conversation(self, data: JsonObject, at: float) -> str:
        """Read what `export` wrote; gives the id, a new one where the old is taken."""
        ...


# Providers.


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One message of a request; roles alternate, starting with the user (SPEC I2)."""

    role: Role
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ImageBytes:
    """An attachment as it goes on the wire."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model. `model` is the part after the provider's name."""

    model: str
    system: tuple[str, ...]
    """The static part, then the parts that change per call."""
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    images: Mapping[str, ImageBytes] = field(default_factory=dict[str, ImageBytes])
    """By attachment id: every image that `messages` name."""
    max_tokens: int | None = None
    """None: the model's maximum, else 8,192 (SPEC BED-006)."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A tool call is being written; `name` once at its start, then pieces of its arguments."""

    name: str
    json: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A whole reply: always the last item of a stream that ended properly."""

    blocks: tuple[Block, ...]
    stop: StopReason
    usage: Usage
    model: str
    truncated_call: bool = False
    """The last tool use was cut off by the output limit and is not among `blocks`."""
    usage_estimated: bool = False


StreamItem: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | ModelReply


class ProviderError(Exception):
    """A call failed; `message` is written for the user and names no secret."""

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        retryable: bool,
        retry_after: float = 0.0,
        context_overflow: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        """network, timeout, rate_limit, overloaded, server, auth, invalid_request, refused_image, protocol."""
        self.retryable = retryable
        self.retry_after = retry_after
        self.context_overflow = context_overflow


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model; 0 and None mean unknown."""

    provider: str
    name: str
    context_window: int = 0
    max_output: int = 0
    vision: bool | None = None
    local: bool = False
    note: str = ""

    @property
    def reference(self) -> str:
        """PROVIDER/MODEL, as flags and the status line name it."""
        return f"{self.provider}/{self.name}"


class Provider(Protocol):
    """Speaks to models. A stream that ends without a ModelReply raises ProviderError."""

    @property
    def name(self) -> str:
        """The part of a model reference before the slash."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Ask once, no retries. Closing the generator closes the connection.

        Raises:
            ProviderError: anything that went wrong, sorted into retryable and not.
        """
        ...

    def describe(self, model: str) -> ModelInfo:
        """What is known of `model` without asking anyone."""
        ...

    async def models(self) -> list[ModelInfo]:
        """The models on offer; asks the server where there is one."""
        ...

    async def warm(self) -> None:
        """Open a connection ahead of the first request; failures are silent."""
        ...

    async def close(self) -> None:
        """Close every connection and end every helper process."""
        ...


class Providers(Protocol):
    """All configured providers."""

    def resolve(self, reference: str) -> tuple[Provider, str]:
        """The provider and the model name of `anthropic/claude-...`.

        Raises:
            ProviderError: unknown provider or missing credentials, naming the fix.
        """
        ...

    def price(self, reference: str, usage: Usage) -> float | None:
        """US dollars of a reply; None where the price is unknown."""
        ...

    async def close(self) -> None:
        """Close all of them."""
        ...


# Time, ids and files.


class Clock(Protocol):
    """Wall and monotonic time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class Ids(Protocol):
    """Fresh identifiers."""

    def new(self) -> str:
        """A UUID4 as text."""
        ...


class ImageFiles(Protocol):
    """Reads attachment files for the wire."""

    async def read(self, path: Path) -> bytes:
        """The bytes of one attachment."""
        ...
