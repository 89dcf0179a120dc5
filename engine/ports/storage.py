"""Values that the store takes and gives: moves, changes, runs and waits; and its errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock, get_ident
from typing import Final, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.effects import (
    FinishRun,
    MarkToolCall,
    SavePlan,
    SaveRoute,
    SaveTodos,
    SaveToolCalls,
    SaveToolResult,
    StartRun,
)
from engine.machine.messages import NewMessage, Usage
from engine.machine.states import State
from engine.machine.views import CompactionFacts, ContextView
from engine.records import ConversationRecord, PermissionMode, StoredMessage, TitleBy
from engine.records.events import EventKind
from engine.records.runs import ModelCall, RunRecord, TurnNote
from engine.records.traces import SpanContent, Trace, TraceSpan, TraceSummary
from engine.run_options import Effort
from tools.contract import SandboxMode
from tools.displays import TodoList


class AppendMessage(Struct, frozen=True):
    """Append `message` with the next seq, in the current turn or a new one."""

    message: NewMessage
    run_id: str = ""
    new_turn: bool = False
    usage: Usage | None = None
    model: str = ""
    duration_ms: int = 0
    cost_usd: float | None = None
    agent_id: str = ""
    """Author of a message that no model wrote: supervisor."""


class DrainInboxRows(Struct, frozen=True):
    """Turn unconsumed inbox rows into messages: tool results first as one, then one each (SPEC UNI-08)."""

    run_id: str
    message_ids: tuple[str, ...]
    """Fresh ids, at least one per row that may be there; unused ones are dropped."""
    new_turn: bool = False


class SetContext(Struct, frozen=True):
    """The context meter after a reply."""

    context_tokens: int
    context_window: int
    estimated: bool
    last_usage: Usage | None = None


class RecordCall(Struct, frozen=True):
    """An ended model call: its row, its span, and its addition to every sum."""

    call: ModelCall


class LimitRun(Struct, frozen=True):
    """Time limit of a run of the user."""

    run_id: str
    seconds: float


class SetView(Struct, frozen=True):
    """New view of its messages for a model: a compaction succeeded."""

    view: ContextView


class RecordCompaction(Struct, frozen=True):
    """One attempt to make the context shorter."""

    id: str
    facts: CompactionFacts


class RecordEvent(Struct, frozen=True):
    """One bus event for the `events` table; never a text chunk (SPEC SDK-04)."""

    id: str
    type: EventKind
    payload_json: str = "{}"
    run_id: str = ""
    """Run of the event; start and end of a sub-agent give its own, and the row gets that of the parent."""
    message_id: str = ""
    agent_id: str = ""
    """The sub-agent's conversation."""
    conversation_id: str = ""
    """Empty: the conversation that moves."""


class RecordSpan(Struct, frozen=True):
    """The span of an ended tool call, in its run's trace (SPEC CLAW-80); `RecordCall` writes those of models."""

    id: str
    run_id: str
    tool_use_id: str
    name: str
    iteration: int
    status: str
    duration_ms: int
    error: str = ""
    output_preview: str = ""
    input_preview: str = ""
    """The call's input; empty unless verbose (SPEC CLAW-81)."""


class RemoveQueued(Struct, frozen=True):
    """The queued message that this move sends leaves the queue."""

    id: str


class DeliverQueued(Struct, frozen=True):
    """Store a queued message in the running turn, unless it has left the queue or has another text by now."""

    id: str
    text: str
    """Text from which `message` was made."""
    message: NewMessage
    run_id: str


class Deposit(Struct, frozen=True):
    """A message to a sub-agent goes into its inbox: its next run begins with it."""

    text: str
    sender: str
    """USER, or the id of its parent."""


class MakeBackground(Struct, frozen=True):
    """Make the sub-agent report its end by a completion message."""


class SuppressWakes(Struct, frozen=True):
    """Keep present and future results of this conversation's sub-agents from beginning a turn."""


Write: TypeAlias = (
    AppendMessage
    | SaveToolCalls
    | MarkToolCall
    | SaveToolResult
    | SaveTodos
    | SavePlan
    | StartRun
    | SaveRoute
    | FinishRun
    | DrainInboxRows
    | RecordCall
    | LimitRun
    | DeliverQueued
    | SetContext
    | SetView
    | RecordCompaction
    | RecordEvent
    | RecordSpan
    | RemoveQueued
    | Deposit
    | MakeBackground
    | SuppressWakes
)


class Move(Struct, frozen=True):
    """All that one step of the machine changes, committed together or not at all."""

    conversation_id: str
    state: State
    writes: tuple[Write, ...]
    at: float
    """Wall clock, seconds since the epoch; order is by seq, never by this."""
    tracking: str = ""
    """Progress of its messages through task tracking: `pending`, `disabled`, or empty for none; notices have none."""


class Committed(Struct, frozen=True):
    """The messages a move appended, with their seq, in order."""

    messages: tuple[StoredMessage, ...] = ()


class ImportTerms(Struct, frozen=True):
    """Settings that an imported conversation takes from the user instead of its file."""

    cwd: Path
    model: str
    permission_mode: PermissionMode = PermissionMode.ASK
    sandbox: SandboxMode = SandboxMode.WORKSPACE


class Imported(Struct, frozen=True):
    """An imported conversation."""

    id: str
    left_out: tuple[str, ...] = ()
    """Parts of the file that were not taken, in words that continue a sentence; text of the file in it is one line."""


class ConversationChanges(Struct, frozen=True):
    """Fields to change outside a move; None leaves a field as it is."""

    title: str | None = None
    draft: str | None = None
    scroll_seq: int | None = None
    model: str | None = None
    permission_mode: PermissionMode | None = None
    sandbox: SandboxMode | None = None
    """Chosen by the user, so it is required from then on."""
    archived: bool | None = None
    deleted: bool | None = None
    unread: bool | None = None
    pinned: bool | None = None
    supervisor: bool | None = None
    effort: Effort | None = None
    todos: TodoList | None = None
    suggested_title: str | None = None
    """A model's; kept only where the user gave no title."""
    calls: tuple[ModelCall, ...] = ()
    """Calls beside runs; they are added to the usage of the conversation."""
    compact_percent: int | None = None
    turn_note: TurnNote | None = None
    """Subject of one turn; removed turns are left alone."""
    view: ContextView | None = None
    context_tokens: int | None = None
    """An estimate, after something was left out of the window; else `context_counted`."""
    context_counted: bool = False
    """True when the provider counted `context_tokens`."""
    compaction: RecordCompaction | None = None
    """Record of that change of the view."""
    mcp_off: tuple[str, ...] | None = None
    """MCP servers that are switched off in it."""
    mcp_loaded: tuple[str, ...] | None = None
    """MCP tools that its model has loaded, in the order of loading."""
    tracking: bool | None = None
    """True when its tasks are tracked, whatever the setting says; False when they are not."""
    events: tuple[RecordEvent, ...] = ()
    """Events outside moves, such as a message that was refused."""

    def apply(self, record: ConversationRecord, at: float) -> ConversationRecord:
        """The record as the store has it now; the window of another model is its caller's to know."""
        return replace(
            self._set_title(record),
            draft=record.draft if self.draft is None else self.draft,
            scroll_seq=record.scroll_seq if self.scroll_seq is None else self.scroll_seq,
            model=self.model or record.model,
            permission_mode=self.permission_mode or record.permission_mode,
            sandbox=self.sandbox or record.sandbox,
            sandbox_required=record.sandbox_required or self.sandbox is not None,
            supervisor=record.supervisor if self.supervisor is None else self.supervisor,
            effort=self.effort or record.effort,
            mcp_off=record.mcp_off if self.mcp_off is None else self.mcp_off,
            mcp_loaded=record.mcp_loaded if self.mcp_loaded is None else self.mcp_loaded,
            todos=record.todos if self.todos is None else self.todos,
            archived=record.archived if self.archived is None else self.archived,
            deleted=record.deleted if self.deleted is None else self.deleted,
            pinned_at=record.pinned_at if self.pinned is None else at * self.pinned,
            tracking=record.tracking if self.tracking is None else self.tracking,
        )

    def _set_title(self, record: ConversationRecord) -> ConversationRecord:
        if self.title is not None:
            return replace(record, title=self.title, title_by=TitleBy.USER)
        if self.suggested_title and record.title_by is TitleBy.FIRST_MESSAGE:
            return replace(record, title=self.suggested_title, title_by=TitleBy.MODEL)
        return record


class StorageError(Exception):
    """The database cannot do this; the message is one sentence for the user and names the fix."""


class ImportRefused(StorageError):
    """Raised for a document that is no export, or has impossible content; the message is a sentence."""


class DatabaseBusy(StorageError):
    """Another process keeps the database to itself; it may let go of it soon."""


class NoConversation(StorageError):
    """Raised when no conversation has this id."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"There is no conversation {conversation_id}. `phoenix conversations list` shows all.")


class OwnedElsewhere(Exception):
    """Another process owns the conversation."""

    def __init__(self, conversation_id: str, pid: int) -> None:
        super().__init__(f"Process {pid} has this conversation open.")
        self.conversation_id = conversation_id
        self.pid = pid


class IndexProgress(Struct, frozen=True):
    """Messages from before the search index that are in it, of how many."""

    done: int
    total: int


PATIENCE: Final = 600.0
"""Seconds that a change or a read waits."""
QUITTING: Final = 1.0
"""Seconds from the moment in which Phoenix ends."""
FIRM: Final = 2.0
"""Seconds after an abandoned wait in which no other begins, so that its dependent work ends, too."""
TOLD_AFTER: Final = 1.5
"""Seconds of a wait before it is reported."""


class DatabaseWaits:
    """The waits of one store. Its own threads call `go_on` and `over`; a listener is called in them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._since: dict[int, float] = {}
        self._listeners: list[Callable[[float], None]] = []
        self._told = False
        self._refuses_until = 0.0
        self._ends = 0.0
        """Monotonic time at which all waits end since Phoenix exits; 0 before that."""
        self.patience = PATIENCE

    @property
    def seconds(self) -> float:
        """Seconds of the longest wait; 0 when none is long enough to be reported."""
        with self._lock:
            return self._longest()

    def listen(self, listener: Callable[[float], None]) -> Callable[[], None]:
        """Call `listener` repeatedly with the seconds passed, then with 0; the result ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def go_on(self) -> bool:
        """True if this thread, which was refused the database, is to try again."""
        with self._lock:
            now = time.monotonic()
            since = self._since.setdefault(get_ident(), now)
            goes_on = now - since < self.patience and now >= self._refuses_until and not 0 < self._ends <= now
            seconds = self._longest()
            self._told = self._told or bool(seconds)
        if goes_on and seconds:
            self._tell(seconds)
        return goes_on

    def over(self) -> None:
        """End the wait of this thread."""
        with self._lock:
            waited = self._since.pop(get_ident(), None) is not None
            last = waited and not self._since and self._told
            self._told = self._told and not last
        if last:
            self._tell(0.0)

    def give_up(self) -> bool:
        """End every wait now; False when none was reported."""
        with self._lock:
            waits = bool(self._longest())
            if waits:
                self._refuses_until = time.monotonic() + FIRM
        return waits

    def hurry(self) -> None:
        """Phoenix ends: wait a moment longer, then for nothing."""
        with self._lock:
            self._ends = self._ends or time.monotonic() + QUITTING

    def _longest(self) -> float:
        waited = time.monotonic() - min(self._since.values(), default=time.monotonic())
        return waited if waited >= TOLD_AFTER else 0.0

    def _tell(self, seconds: float) -> None:
        for listener in tuple(self._listeners):
            listener(seconds)


QUEUED: Final = "queued"
"""Status of a sub-agent that has not begun: there is no run yet, and `record.id` is empty."""
UNDER_WAY: Final = frozenset({QUEUED, "running"})


class RunOverview(Struct, frozen=True):
    """One run, with the conversation it belongs to."""

    record: RunRecord
    conversation_id: str
    title: str
    """Title of the conversation; of a sub-agent its task."""
    parent_id: str = ""
    """The conversation that a sub-agent works for."""
    error_code: str = ""
    owner_pid: int | None = None
    """The living process that has the conversation."""
    output: str = ""
    """Beginning of the newest answer."""
    agent: str = ""
    """Profile that ran; empty for the general one."""
    cwd: str = ""
    model: str = ""

    @property
    def under_way(self) -> bool:
        """True while it has not ended."""
        return self.record.status in UNDER_WAY


class CancelRequest(Struct, frozen=True):
    """A request of another process; without a run it is for a sub-agent that has not begun."""

    conversation_id: str
    run_id: str


USER: Final = "user"
"""Sender of messages that the user wrote."""


class Traces(Protocol):
    """The traces of runs (SPEC CLAW-80). Every method may raise StorageError."""

    async def of_run(self, run_id: str) -> Trace | None:
        """The tree of a run, its sub-agents included; None where there is no such run."""
        ...

    async def of_conversation(self, conversation_id: str, limit: int = 200) -> Sequence[TraceSummary]:
        """The newest runs of a conversation, newest first."""
        ...

    async def run_named(self, reference: str) -> str:
        """The one run whose id is `reference` or begins with it (eight characters); empty for none or several."""
        ...

    async def content(self, span: TraceSpan) -> SpanContent:
        """Stored input and output of a span of a trace."""
        ...


class Ids(Protocol):
    """Fresh identifiers."""

    def new(self) -> str:
        """A UUID4 as text."""
        ...
