"""Interface of the store: moves in, rows out."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.views import ContextView
from engine.ports.moves import RecordCompaction, RecordEvent
from engine.records import (
    ConversationRecord,
    PermissionMode,
    TitleBy,
)
from engine.records.runs import ModelCall, TurnNote
from engine.run_options import Effort
from tools.contract import SandboxMode
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


class IndexProgress(Struct, frozen=True):
    """Messages from before the search index that are in it, of how many."""

    done: int
    total: int
