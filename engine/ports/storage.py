"""Interface of the store: moves in, rows out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.views import ContextView
from engine.ports.database_waits import DatabaseWaits
from engine.ports.moves import Committed, Move, RecordCompaction, RecordEvent
from engine.ports.traces import Traces
from engine.records import (
    Attachment,
    ConversationQuery,
    ConversationRecord,
    ConversationSummary,
    ForkPlace,
    FoundText,
    NewConversation,
    PermissionMode,
    Recovery,
    SearchAnswer,
    SideExchange,
    StoredCompaction,
    StoredConversation,
    StoredMessage,
    TitleBy,
    ToolCallRecord,
)
from engine.records.runs import CallSum, ModelCall, RunRecord, TurnDigest, TurnNote, TurnSummary
from engine.run_options import Effort
from engine.search import SearchQuery
from tools.contract import JsonObject, PreparedImage, SandboxMode
from tools.todo_items import TodoList


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

    def applied_to(self, record: ConversationRecord, at: float) -> ConversationRecord:
        """The record as the store has it now; the window of another model is its caller's to know."""
        return replace(
            self._titled(record),
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

    def _titled(self, record: ConversationRecord) -> ConversationRecord:
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


class Store(Protocol):
    """Permanent storage. Every method may raise StorageError."""

    @property
    def waits(self) -> DatabaseWaits:
        """Waits for another program that keeps the database busy, to be shown and ended."""
        ...

    @property
    def warning(self) -> str:
        """Reason and remedy while nothing is kept on disk; empty otherwise (FAULTS 30)."""
        ...

    async def create(self, new: NewConversation, at: float) -> StoredConversation:
        """Create a conversation in state idle, owned by this process."""
        ...

    async def conversation(self, conversation_id: str) -> StoredConversation | None:
        """One conversation, or None."""
        ...

    async def conversations(self, query: ConversationQuery) -> list[ConversationSummary]:
        """The list, newest first."""
        ...

    async def find(self, reference: str, *, partly: bool = False) -> list[ConversationSummary]:
        """Conversations whose id is `reference`, else all whose id starts with it or whose slug or title equals it.

        With `partly`, where there are none, those whose title or slug begins with it, else whose title holds it.
        """
        ...

    async def take(self, conversation_id: str) -> Recovery:
        """Become the owner; conversations of a dead owner are recovered first (SPEC STM-10).

        Raises:
            OwnedElsewhere: a living process has it.
        """
        ...

    async def mend(self, conversation_id: str) -> None:
        """Bring a conversation of this process to rest, whose last move could not be stored, as after a crash."""
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


class IndexProgress(Struct, frozen=True):
    """Messages from before the search index that are in it, of how many."""

    done: int
    total: int


class Library(Protocol):
    """Operations on whole conversations, past and present. Every method may raise StorageError."""

    @property
    def traces(self) -> Traces:
        """The traces of their runs."""
        ...

    async def fork(
        self,
        source_id: str,
        new_id: str,
        at: float,
        up_to_seq: int | None = None,
        beside: Sequence[SideExchange] = (),
        place: ForkPlace | None = None,
    ) -> StoredConversation:
        """Copy a conversation, whole or up to a message, under a new id, owned by this process.

        Questions `beside` it and their answers become its last messages; `place` is another folder for it.
        """
        ...

    async def purge(self, conversation_id: str) -> None:
        """Remove a conversation for good, with its rows and its unshared attachments."""
        ...

    async def expired(self, before: float) -> Sequence[str]:
        """Conversations archived or moved to the trash before a time, in an order in which they may be removed."""
        ...

    async def remove_expired(self, conversation_id: str, before: float) -> bool:
        """Remove one of those for good; False where it is open here, or was taken back meanwhile.

        Raises:
            OwnedElsewhere: a living process has it.
        """
        ...

    async def clear_partial(self) -> None:
        """Remove conversations that a killed process left half copied, half imported or half removed; they are hidden
        before.
        """
        ...

    async def changed_externally(self) -> bool:
        """True when another process has written since the last call; False the first time."""
        ...

    async def change_all(self, ids: Sequence[str], changes: ConversationChanges, at: float) -> list[str]:
        """Change many in one transaction; returns those that another living process has, which stay as they are."""
        ...

    async def search(
        self, query: SearchQuery, *, limit: int = 300, below: int | None = None, seconds: float = 0.12
    ) -> SearchAnswer:
        """The newest `limit` matches, the best first; `below` is the `next` of the answer before."""
        ...

    async def find(self, conversation_id: str, text: str) -> Sequence[FoundText]:
        """Find `text` in one conversation, in its order, ignoring case."""
        ...

    async def index_older(self) -> IndexProgress:
        """Index a slice of the messages older than the search index; complete once `done` is `total`."""
        ...

    async def turns(self, conversation_id: str) -> Sequence[TurnSummary]:
        """Every prompt and its effects, oldest first."""
        ...

    async def newest_turn(self, conversation_id: str) -> TurnDigest | None:
        """Digest of the newest turn; None without turns."""
        ...

    async def runs(self, conversation_id: str, limit: int) -> Sequence[RunRecord]:
        """The newest runs, newest first."""
        ...

    async def compactions(self, conversation_id: str) -> Sequence[StoredCompaction]:
        """The newest attempts to make its context shorter, newest first."""
        ...

    async def taken_call_ids(self, conversation_id: str, ids: Sequence[str]) -> frozenset[str]:
        """Ids of stored calls of a conversation that are among these, or one of them with `_dedup_` behind it."""
        ...

    async def calls(self, conversation_id: str) -> Sequence[CallSum]:
        """Usage and cost of its model calls, by their purpose; without those of its sub-agents."""
        ...

    async def export(self, conversation_id: str) -> JsonObject:
        """Export a conversation as JSON, lossless."""
        ...

    async def import_conversation(self, data: JsonObject, at: float, terms: ImportTerms) -> Imported:
        """Read an export, at rest and on the terms of the importing user; a new id where the old is taken.

        Raises:
            ImportRefused: it is no export, or its parts cannot be; nothing of it stays.
        """
        ...
