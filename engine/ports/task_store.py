"""Interface of the store for the task board, with the values that cross it (SPEC ACX-06 to ACX-19)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from msgspec import Struct

from engine.records import StoredMessage
from engine.records.runs import ModelCall
from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus


class TaskRefused(Exception):
    """A change of the board that is not possible; the message is a sentence for the model, or the user."""


class MessageTracking(StrEnum):
    """Progress of a message through tracking, as `messages.task_process_status` has it (SPEC ACX-04)."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    DISABLED = "disabled"


class InsertTask(Struct, frozen=True):
    """Insert a pending task behind the order `after`; 0 is the front."""

    after: int
    description: str


class UpdateTask(Struct, frozen=True):
    """Change status or description of the task at `order`; None leaves it as it is."""

    order: int
    status: TaskStatus | None = None
    description: str | None = None


class AppendMessages(Struct, frozen=True):
    """Link messages, by seq, to the task at `order`; it runs from then on. None adds no milestone or preference."""

    order: int
    seqs: tuple[int, ...]
    progress: str | None = None
    preference: str | None = None


class AppendToPlanning(Struct, frozen=True):
    """Link messages, by seq, to the planning section."""

    seqs: tuple[int, ...]


class AddProgress(Struct, frozen=True):
    """Add a milestone to the task at `order`."""

    order: int
    progress: str


class AddPreference(Struct, frozen=True):
    """Add a preference of the user to the planning section."""

    preference: str


BoardChange: TypeAlias = InsertTask | UpdateTask | AppendMessages | AppendToPlanning | AddProgress | AddPreference


class TakenMessages(Struct, frozen=True):
    """The messages of one pass, and a few before them that are shown for context."""

    messages: tuple[StoredMessage, ...] = ()
    previous: tuple[StoredMessage, ...] = ()

    @property
    def seqs(self) -> tuple[int, ...]:
        """Seqs of the messages of the pass."""
        return tuple(message.seq for message in self.messages)


class AppliedChanges(Struct, frozen=True):
    """Result of the changes of one reply."""

    texts: tuple[str, ...] = ()
    """Effect of each change, for the model."""
    tasks: tuple[TrackedTask, ...] = ()
    """The tasks as they are now, the planning section first, without their messages."""


class TaskStore(Protocol):
    """The boards of all conversations. Every method may raise StorageError.

    A change at the time `at` (seconds since the epoch) is one transaction, with the events of the tasks and messages
    that it changes.
    """

    async def board(self, conversation_id: str) -> TaskBoardView:
        """The whole board; its status does not know the effect of the setting."""
        ...

    async def page(self, conversation_id: str, cursor: str, limit: int, *, newest_first: bool) -> TaskPage:
        """Tasks by creation. Raises TaskRefused for a cursor or a limit that cannot be."""
        ...

    async def status(self, conversation_id: str) -> TrackingStatus:
        """Counts of its messages, and the stored reason why some wait or failed."""
        ...

    async def untasked(self, conversation_id: str) -> tuple[int, ...]:
        """Seqs of messages without a task."""
        ...

    async def chosen(self, conversation_id: str) -> bool | None:
        """The user's choice for a conversation; None where the setting decides."""
        ...

    async def edit(
        self, conversation_id: str, task_id: str, status: TaskStatus | None, description: str | None, at: float
    ) -> TrackedTask:
        """Change a task for the user. Raises TaskRefused, OwnedElsewhere."""
        ...

    async def remove(self, conversation_id: str, task_id: str, at: float) -> TrackedTask:
        """Remove a task, close the gap, and return it with its messages. Raises TaskRefused, OwnedElsewhere."""
        ...

    async def put_back(self, conversation_id: str, removed: TrackedTask, at: float) -> TrackedTask:
        """Put a removed task back as it was, at its place, with those of its messages that have no other task now.

        Raises:
            TaskRefused: the board is full, or it is the planning section.
            OwnedElsewhere: another process has the conversation.
        """
        ...

    async def pending(self, conversation_id: str) -> tuple[int, ...]:
        """Seqs of messages that wait, ascending."""
        ...

    async def take(self, conversation_id: str, limit: int, at: float) -> TakenMessages:
        """Mark up to `limit` of the oldest waiting messages as running; nothing else of this conversation is.

        Messages that a failed write left running wait again first: passes of a conversation never overlap.
        """
        ...

    async def apply(
        self,
        conversation_id: str,
        seqs: Sequence[int],
        changes: Sequence[BoardChange],
        calls: Sequence[ModelCall],
        at: float,
        *,
        ends: bool = False,
    ) -> AppliedChanges:
        """Carry out the changes of one reply in one transaction, or none of them (SPEC ACX-14).

        `seqs` are the messages of the pass. Those that a change linked have succeeded, and with `ends` all of them, so
        that no crash lets one be processed twice.

        Raises:
            TaskRefused: one change is not possible; nothing was written, the calls neither.
        """
        ...

    async def settle(
        self,
        conversation_id: str,
        to: MessageTracking,
        at: float,
        calls: Sequence[ModelCall] = (),
        *,
        of: MessageTracking = MessageTracking.RUNNING,
        problem: str | None = None,
    ) -> None:
        """Change the progress of all its messages with the progress `of`, and record ended calls.

        `problem` is the reason in one sentence, which the status has until the next pass; None leaves it as it is.
        """
        ...

    async def spent_tokens(self, conversation_id: str, since: float) -> int:
        """Tokens of its tracking calls that began after a time."""
        ...
