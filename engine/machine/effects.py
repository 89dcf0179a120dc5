"""What a step wants done. Saves are committed in one transaction before any act starts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from engine.machine.messages import Block, NewMessage, ToolCall, ToolResult, ToolStatus, Usage

# Saves


@dataclass(frozen=True, slots=True)
class SaveMessage:
    """Append a message; `new_turn` opens a turn for it (SPEC UNI-06)."""

    message: NewMessage
    new_turn: bool = False
    usage: Usage | None = None
    model: str = ""
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class SaveToolCalls:
    """Record the calls of an assistant message as queued."""

    message_id: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class MarkToolCall:
    """Move a call to `running` or `awaiting_approval`; committed before it starts, so never run twice."""

    call_id: str
    status: ToolStatus


@dataclass(frozen=True, slots=True)
class SaveToolResult:
    """Record how a call ended."""

    result: ToolResult


class RunStatus(StrEnum):
    """The column `runs.status`."""

    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class StartRun:
    """Open a run row; `trigger_message_id` is empty for a retry."""

    run_id: str
    trigger_message_id: str = ""


@dataclass(frozen=True, slots=True)
class FinishRun:
    """Close the run row."""

    run_id: str
    status: RunStatus
    iterations: int
    error: str = ""
    error_code: str = ""
    recoverable: bool = False


@dataclass(frozen=True, slots=True)
class DrainInbox:
    """Turn everything in the inbox into messages (SPEC UNI-08); a new turn where `new_turn`."""

    new_turn: bool = False


@dataclass(frozen=True, slots=True)
class SaveNotice:
    """Append a quiet row for the eye (role system, origin notice); no model ever reads it."""

    text: str


Save: TypeAlias = (
    SaveMessage | SaveNotice | SaveToolCalls | MarkToolCall | SaveToolResult | StartRun | FinishRun | DrainInbox
)

# Acts


@dataclass(frozen=True, slots=True)
class RequestLlm:
    """Ask the model; `partial` is replayed and continued when not empty."""

    gen: int
    run_id: str
    iteration: int
    max_iterations: int
    attempt: int = 0
    partial: tuple[Block, ...] = ()
    truncated_call: bool = False
    """The reply being continued ended inside a tool call, which was not run."""


@dataclass(frozen=True, slots=True)
class AbortLlm:
    """Close the connection; also ends a routing or compacting request."""


@dataclass(frozen=True, slots=True)
class ScheduleRetry:
    """Send RetryDue after `seconds`."""

    gen: int
    seconds: float
    attempt: int
    cause: str


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Forget the pending retry."""


@dataclass(frozen=True, slots=True)
class ExecTool:
    """Run a call; unless `approved`, the permission policy is asked first."""

    gen: int
    call: ToolCall
    approved: bool = False


@dataclass(frozen=True, slots=True)
class KillTool:
    """Stop the running call and its whole process tree."""

    gen: int
    call_id: str


@dataclass(frozen=True, slots=True)
class StartCancelDeadline:
    """Send CancelDeadlinePassed after `seconds`."""

    gen: int
    seconds: float


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Show the question of this call."""

    call: ToolCall
    reason: str


@dataclass(frozen=True, slots=True)
class CancelAgents:
    """Stop these sub-agents."""

    agent_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compact:
    """Summarize older messages; answers with CompactionEnded."""

    gen: int
    manual: bool


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """Ask the supervisor who answers; comes back as RouteDecided."""

    gen: int
    run_id: str


@dataclass(frozen=True, slots=True)
class AfterRun:
    """A run ended well: turn summary, maintenance and task tracking may work in the background."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Tell the user something in passing; what must stay is a SaveNotice."""

    text: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The request changes nothing, for this reason; the text goes back to the composer."""

    reason: str


Act: TypeAlias = (
    RequestLlm
    | AbortLlm
    | ScheduleRetry
    | CancelTimer
    | ExecTool
    | KillTool
    | StartCancelDeadline
    | AskApproval
    | CancelAgents
    | Compact
    | RouteRequest
    | AfterRun
    | Notice
    | Refuse
)
Effect: TypeAlias = Save | Act
