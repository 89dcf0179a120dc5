"""Interface of the store for the task board, with the values that cross it (SPEC ACX-06 to ACX-19)."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from engine.records import StoredMessage
from engine.records.tracked_tasks import TaskStatus, TrackedTask


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
