"""Interfaces of the engine for front ends: conversations, rules, rewinding, notes, statistics, task boards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from engine.executor.requests import ConversationOptions
from engine.machine.states import StopCause
from engine.records.runs import Statistics, StatisticsQuery

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi, Unsubscribe
    from engine.executor.requests import Activity
    from engine.machine.states import State
    from engine.ports import ConversationChanges
    from engine.ports.files import BranchRow, FileChange
    from engine.ports.storage import DatabaseWaits, Traces
    from engine.records import (
        Attachment,
        ConversationQuery,
        ConversationRecord,
        ConversationSummary,
        ForkPlace,
        FoundText,
        SearchAnswer,
        SideExchange,
        StoredMessage,
    )
    from engine.records.runs import CallSum, RunRecord, TurnSummary
    from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus
    from engine.rewind.rewind import Changed, Done, Preview, RewindList, RewindScope
    from engine.rule_store import RuleStore
    from engine.search import SearchQuery
    from engine.updates import AgentView
    from tools.contract import DiffDisplay, JsonObject


NEWEST: Final = 1 << 40
"""A seq above all others: the messages before it are the newest."""


class AgentsApi(Protocol):
    """The sub-agents of every conversation that is open here."""

    def views(self, parent_id: str) -> Sequence[AgentView]:
        """Views of a conversation's sub-agents, oldest first, including ended ones."""
        ...

    def results(self, parent_id: str) -> int:
        """Number of their results that the conversation's model has not read yet."""
        ...

    def stop(self, agent_ids: Iterable[str], by: StopCause = StopCause.USER) -> None:
        """Stop these; their text so far stays."""
        ...

    async def hint(self, agent_id: str, text: str) -> None:
        """Send a message to one: it reads it before its next model call, or resumes with it. Raises EngineError."""
        ...


class LibraryApi(Protocol):
    """Operations on whole conversations (`engine/store/library.py`)."""

    @property
    def traces(self) -> Traces:
        """The traces of their runs."""
        ...

    async def has_changed_externally(self) -> bool:
        """True when another process has written since the last call. Raises StorageError."""
        ...

    async def search(
        self, query: SearchQuery, *, limit: int = 300, below: int | None = None, seconds: float = 0.12
    ) -> SearchAnswer:
        """The newest `limit` matches, the best first; `below` is the `next` of the answer before."""
        ...

    async def find(self, conversation_id: str, text: str) -> Sequence[FoundText]:
        """Find `text` in one conversation, in its order."""
        ...

    async def turns(self, conversation_id: str) -> Sequence[TurnSummary]:
        """Every prompt and its effects, oldest first."""
        ...

    async def runs(self, conversation_id: str, limit: int) -> Sequence[RunRecord]:
        """The newest runs, newest first."""
        ...

    async def calls(self, conversation_id: str) -> Sequence[CallSum]:
        """Usage and cost of its model calls, by their purpose; without those of its sub-agents."""
        ...

    async def export(self, conversation_id: str) -> JsonObject:
        """Export a conversation as JSON."""
        ...


class RewindApi(Protocol):
    """Going back in a conversation (`engine.rewind`). Raises CannotRewind, FilesError, StorageError."""

    def why_not(self, state: State) -> str:
        """Reason why no rewind is possible now; empty when it is."""
        ...

    async def points(self, record: ConversationRecord) -> RewindList:
        """Points to go back to, newest first."""
        ...

    async def read_changes(self, record: ConversationRecord) -> Changed:
        """Changes of the conversation to its folder until now."""
        ...

    async def preview(self, record: ConversationRecord, seq: int) -> Preview:
        """Preview of the file changes when rewinding to before the prompt `seq`."""
        ...

    async def preview_undo(self, record: ConversationRecord) -> Preview:
        """Preview of the file changes when undoing the last rewind."""
        ...

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """One change in full; None where it is no text."""
        ...

    async def rewind(
        self, record: ConversationRecord, state: State, seq: int, scope: RewindScope, overwrite: Collection[bytes] = ()
    ) -> Done:
        """Rewind; files changed by others stay, except for those in `overwrite`."""
        ...

    async def undo(self, record: ConversationRecord, state: State, overwrite: Collection[bytes] = ()) -> Done:
        """Take the last rewind back."""
        ...

    async def switch(self, record: ConversationRecord, state: State, to: str) -> Done:
        """Show another branch in place of this one."""
        ...

    async def branches(self, record: ConversationRecord) -> Sequence[BranchRow]:
        """Every conversation that shares messages with this one."""
        ...

    async def finish(self, record: ConversationRecord, *, take_back: bool = False) -> Done:
        """Complete operations that a crash cut off."""
        ...


class BulkApi(Protocol):
    """Operations on conversations without opening them (`engine.engine`)."""

    async def change(self, ids: Iterable[str], changes: ConversationChanges) -> Sequence[str]:
        """Change many; returns those that another process has."""
        ...

    async def newest(self, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        """The newest messages, ascending."""
        ...

    async def purge(self, ids: Iterable[str]) -> Sequence[str]:
        """Remove for good; returns those that another process has."""
        ...


class EngineApi(Protocol):
    """All conversations, as the screens use them (docs/engine.md)."""

    @property
    def rules(self) -> RuleStore:
        """Rules that allow calls without a question."""
        ...

    @property
    def waits(self) -> DatabaseWaits:
        """Waits for a database that another program keeps busy."""
        ...

    @property
    def sub_agents(self) -> AgentsApi | None:
        """Sub-agents; None where there is nothing to keep them in."""
        ...

    @property
    def tasks(self) -> TasksApi:
        """Task boards of all conversations."""
        ...

    @property
    def bulk(self) -> BulkApi:
        """Operations on many conversations at once, previews, the trash."""
        ...

    async def create(self, options: ConversationOptions) -> ConversationApi:
        """Create a conversation. Raises EngineError."""
        ...

    async def open(self, conversation_id: str) -> ConversationApi:
        """Open a conversation; read-only when another process owns it. Raises EngineError."""
        ...

    async def list(self, query: ConversationQuery | None = None) -> Sequence[ConversationSummary]:
        """The list, newest first."""
        ...

    async def attachments(self, ids: Sequence[str]) -> Sequence[Attachment]:
        """Stored images by id; those that are gone are left out."""
        ...

    async def find(self, reference: str, *, partly: bool = False) -> Sequence[ConversationSummary]:
        """Conversations with this id, id prefix or title."""
        ...

    async def fork(
        self,
        conversation_id: str,
        up_to_seq: int | None = None,
        beside: Sequence[SideExchange] = (),
        place: ForkPlace | None = None,
    ) -> ConversationApi:
        """Continue in a copy, which ends with the questions `beside` and their answers. Raises EngineError.

        It works in the folder of its source, or in that of `place`.
        """
        ...

    async def change(self, conversation_id: str, changes: ConversationChanges) -> None:
        """Change a conversation that need not be open. Raises EngineError."""
        ...

    def watch(self, watcher: Callable[[Activity], None]) -> Unsubscribe:
        """Call `watcher` for list-level changes of every live conversation."""
        ...

    def live(self) -> Sequence[ConversationApi]:
        """Conversations held open by this process."""
        ...

    async def forget(self, conversation_id: str) -> None:
        """Close one conversation; its run is stopped."""
        ...

    async def stop_all(self) -> None:
        """Stop every run."""
        ...

    async def close(self, reason: str = "") -> None:
        """Stop everything and close the store; `reason` is what hooks hear of it, such as prompt_input_exit."""
        ...


class StatisticsApi(Protocol):
    """Sums of model calls and tool calls (`engine/store/statistics.py`)."""

    async def read(self, query: StatisticsQuery) -> Statistics:
        """Sums of all conversations, also archived ones and those in the trash. Raises StorageError."""
        ...


class TasksApi(Protocol):
    """The boards of all conversations; a conversation need not be open except for `flush`.

    Each change of a board that is open here is published as `engine.updates.TasksChanged`.
    """

    async def board(self, conversation_id: str) -> TaskBoardView:
        """The whole board with the messages of each task; an empty one for an unknown conversation."""
        ...

    async def page(
        self, conversation_id: str, cursor: str = "", limit: int = 20, *, newest_first: bool = False
    ) -> TaskPage:
        """Tasks by time of creation without their messages, 1 to 200 a page; `cursor` is that of the page before."""
        ...

    async def edit(
        self, conversation_id: str, task_id: str, status: TaskStatus | None = None, description: str | None = None
    ) -> TrackedTask:
        """Change status or text of a task for the user; None leaves it as it is."""
        ...

    async def remove(self, conversation_id: str, task_id: str) -> None:
        """Remove a task; its messages stay, without one, and the tasks behind it move up."""
        ...

    async def put_back(self, conversation_id: str) -> TrackedTask:
        """Put the task back that was removed last in this process, with its place, texts and messages."""
        ...

    async def flush(self, conversation_id: str) -> TrackingStatus:
        """Process waiting and failed messages of an open conversation now; waits up to a minute for another pass."""
        ...

    async def set_tracking(self, conversation_id: str, on: bool) -> TrackingStatus:
        """Switch tracking of one conversation on or off, whatever the setting says; off leaves waiting messages out."""
        ...

    async def find_untasked(self, conversation_id: str) -> tuple[int, ...]:
        """Seqs of the messages that belong to no task, ascending; notices are left out."""
        ...
