"""Effects of a step. Saves are committed in one transaction before any act starts."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from engine.machine.messages import Block, NewMessage, ToolCall, ToolResult, ToolStatus, Usage
from engine.machine.views import CompactionDraft, CompactionFacts
from tools.displays import TodoList

# Saves


class SaveMessage(Struct, frozen=True):
    """Append a message; `new_turn` opens a turn for it (SPEC UNI-06)."""

    message: NewMessage
    new_turn: bool = False
    usage: Usage | None = None
    model: str = ""
    duration_ms: int = 0
    cost_usd: float | None = None
    """Cost of the reply; None where its price is unknown."""


class SaveToolCalls(Struct, frozen=True):
    """Record the calls of an assistant message as queued."""

    message_id: str
    calls: tuple[ToolCall, ...]


class MarkToolCall(Struct, frozen=True):
    """Move a call to `running` or `awaiting_approval`; committed before it starts, so never run twice."""

    call_id: str
    status: ToolStatus


class SaveToolResult(Struct, frozen=True):
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


class Strategy(StrEnum):
    """Strategy of an answer; the column `runs.strategy` (SPEC SDK-10)."""

    SINGLE = "single"
    """The main model alone."""
    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"
    """One agent after the other, each with the results before it."""
    DELEGATE = "delegate"
    """One specialist."""


class SaveRoute(Struct, frozen=True):
    """Record the supervisor's decision; `decision_json` is the column `runs.routing_json`."""

    run_id: str
    strategy: Strategy
    decision_json: str


class StartRun(Struct, frozen=True):
    """Open a run row; `trigger_message_id` is empty for a retry."""

    run_id: str
    trigger_message_id: str = ""


class FinishRun(Struct, frozen=True):
    """Close the run row."""

    run_id: str
    status: RunStatus
    iterations: int
    error: str = ""
    error_code: str = ""
    recoverable: bool = False


class DrainInbox(Struct, frozen=True):
    """Turn everything in the inbox into messages (SPEC UNI-08); a new turn where `new_turn`."""

    new_turn: bool = False


class SaveNotice(Struct, frozen=True):
    """Append a quiet row for the user (role system, origin notice); no model ever reads it."""

    text: str


class SaveContext(Struct, frozen=True):
    """Record how full the window is after a reply."""

    tokens: int
    estimated: bool
    usage: Usage
    """Usage of the reply, as its provider counted it."""


class SaveView(Struct, frozen=True):
    """Record the view made by a compaction: later requests use it."""

    draft: CompactionDraft


class SaveCompaction(Struct, frozen=True):
    """Record an attempt to make the context shorter, when and why."""

    facts: CompactionFacts


class SaveTodos(Struct, frozen=True):
    """Replace the todo list: the column `todos_json`."""

    todos: TodoList


class SavePlan(Struct, frozen=True):
    """Keep an accepted plan, the column `plan_text`, and work in another permission mode from now on."""

    plan: str
    mode: str = ""
    """Permission mode as in `PermissionMode`; empty: it stays."""
    at: int = 0
    """Number of stored messages at that time: a view that begins later does not show the plan."""


Save: TypeAlias = (
    SaveMessage
    | SaveNotice
    | SaveContext
    | SaveView
    | SaveCompaction
    | SaveToolCalls
    | MarkToolCall
    | SaveToolResult
    | SaveTodos
    | SavePlan
    | StartRun
    | SaveRoute
    | FinishRun
    | DrainInbox
)

# Acts


class RequestLlm(Struct, frozen=True):
    """Ask the model; `partial` is replayed and continued when not empty."""

    gen: int
    run_id: str
    iteration: int
    max_iterations: int
    attempt: int = 0
    partial: tuple[Block, ...] = ()
    truncated_call: bool = False
    """The reply being continued ended inside a tool call, which was not run."""
    only_submit: bool = False
    """True for a sub-agent's last call, which may only submit."""


class AbortLlm(Struct, frozen=True):
    """Close the connection; also ends a routing or compacting request."""


class ScheduleRetry(Struct, frozen=True):
    """Send RetryDue after `seconds`."""

    gen: int
    seconds: float
    attempt: int
    cause: str


class CancelTimer(Struct, frozen=True):
    """Forget the pending retry."""


class ExecTool(Struct, frozen=True):
    """Run a call; unless `approved`, the permission policy decides first."""

    gen: int
    call: ToolCall
    approved: bool = False


class KillTool(Struct, frozen=True):
    """Stop the running call and its whole process tree."""

    gen: int
    call_id: str


class StartCancelDeadline(Struct, frozen=True):
    """Send CancelDeadlinePassed after `seconds`."""

    gen: int
    seconds: float


class AskApproval(Struct, frozen=True):
    """Show the question of this call."""

    call: ToolCall
    reason: str


class CancelAgents(Struct, frozen=True):
    """Stop these sub-agents."""

    agent_ids: tuple[str, ...]


class Compact(Struct, frozen=True):
    """Summarize older messages; answers with CompactionEnded."""

    gen: int
    manual: bool
    focus: str = ""
    """Subjects that the summary must keep, in the user's words."""
    before: int = 0
    """The seq of the first message that stays; 0: the newest ones stay."""
    full: bool = False
    """True when the window has overflowed: without a summary the conversation cannot continue."""


class RouteRequest(Struct, frozen=True):
    """Ask the supervisor for a decision; comes back as RouteDecided."""

    gen: int
    run_id: str


class AskStopHooks(Struct, frozen=True):
    """Ask hooks if the run may end with this answer; comes back as StopDecided."""

    gen: int
    text: str


class AfterRun(Struct, frozen=True):
    """A run ended well: turn summary, maintenance and task tracking may work in the background."""

    run_id: str


class Notice(Struct, frozen=True):
    """Show the user a passing notice; a permanent one is a SaveNotice."""

    text: str


class Refuse(Struct, frozen=True):
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
    | AskStopHooks
    | AfterRun
    | Notice
    | Refuse
)
Effect: TypeAlias = Save | Act
