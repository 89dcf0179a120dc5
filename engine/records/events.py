"""Events of runs as they are stored: one ordered stream for all conversations (SPEC SDK-20)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class EventKind(StrEnum):
    """Canonical names of stored events; pieces of text are none (SPEC SDK-04)."""

    TASK_STARTED = "task:started"
    TASK_PROGRESS = "task:progress"
    """Another stage of a run: thinking, tool_exec, compacting or routing."""
    TASK_TOOL_CALL = "task:tool_call"
    """A model asks for a tool; the call waits for its turn."""
    TASK_TOOL_START = "task:tool_start"
    """A call begins to run."""
    TASK_TOOL_RESULT = "task:tool_result"
    TASK_SUBAGENT_START = "task:subagent_start"
    TASK_SUBAGENT_STOP = "task:subagent_stop"
    TASK_COMPLETED = "task:completed"
    TASK_FAILED = "task:failed"
    TASK_CANCELLED = "task:cancelled"
    RUN_RETRYING = "run.retrying"
    BLOCK_REPLY = "block.reply"
    """Text of a reply that also calls tools (SPEC CLAW-10)."""
    STATE_CHANGED = "state.changed"
    MESSAGE_PERSISTED = "message.persisted"
    MESSAGE_UPDATED = "message.updated"
    CONTEXT_USAGE = "context.usage"
    TRACKED_TASK_CHANGED = "tracked_task.changed"
    INJECTION_DETECTED = "security.injection_detected"


class StoredEvent(Struct, frozen=True):
    """One event of the stream; ids are empty where there is none."""

    seq: int
    """Rises with each event of the database, and is never used again."""
    id: str
    type: str
    """A value of `EventKind`, or one that a newer Phoenix wrote."""
    at: float
    """Wall clock, seconds since the epoch."""
    conversation_id: str
    message_id: str
    run_id: str
    agent_id: str
    """The sub-agent's conversation."""
    payload_json: str
    """JSON object."""


class StandingRun(Struct, frozen=True):
    """A conversation in a snapshot of the stream; `run_id` is empty while none is under way."""

    conversation_id: str
    state: str
    run_id: str


class EventSnapshot(Struct, frozen=True):
    """State of conversations as of the event `seq`: every later event is newer than this."""

    seq: int
    conversations: tuple[StandingRun, ...]
