"""Tasks that the task agent found in a conversation, as rows of the task board (SPEC ACX-06)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class TaskStatus(StrEnum):
    """Progress of a tracked task."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


class TrackedTask(Struct, frozen=True):
    """One task of the board, or the planning section; times are wall clock."""

    id: str
    conversation_id: str
    order: int
    """Place on the board, from 1 on without gaps; 0 is the planning section."""
    status: TaskStatus
    description: str
    """Words of the user; empty for the planning section."""
    progresses: tuple[str, ...] = ()
    """Milestones, oldest first."""
    preferences: tuple[str, ...] = ()
    """Preferences of the user in the third person, oldest first."""
    is_planning: bool = False
    created_at: float = 0.0
    updated_at: float = 0.0
    message_seqs: tuple[int, ...] = ()
    """Seqs of its messages, ascending; empty in a page (SPEC ACX-18)."""


class TrackingStatus(Struct, frozen=True):
    """Numbers of messages of one conversation by what tracking did with them (SPEC ACX-19); notices are in none."""

    success: int = 0
    """On the board, or seen and not worth a task."""
    running: int = 0
    """Taken by the current pass."""
    pending: int = 0
    """Waiting for a pass."""
    failed: int = 0
    """Left by a pass that failed; `flush` tries them again."""
    disabled: int = 0
    """Stored while tracking was off."""
    untracked: int = 0
    """Older than tracking."""
    enabled: bool = False
    """True while new messages are tracked."""
    problem: str = ""
    """Reason why messages wait or failed, in one sentence; empty without one."""


class TaskBoardView(Struct, frozen=True):
    """The board of one conversation."""

    tasks: tuple[TrackedTask, ...] = ()
    """Tasks in their order."""
    planning: TrackedTask | None = None
    """Messages and preferences that belong to no task; None until there are some."""
    status: TrackingStatus = TrackingStatus()


class TaskPage(Struct, frozen=True):
    """A part of the tasks of a conversation, without the planning section (SPEC ACX-17)."""

    tasks: tuple[TrackedTask, ...]
    cursor: str = ""
    """Cursor of the next page; empty after the last one."""
