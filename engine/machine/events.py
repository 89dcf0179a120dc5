"""Events of a conversation. Ids and facts arrive inside; the machine generates neither."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from engine.machine.effects import Strategy
from engine.machine.messages import Block, LastMessage, NewMessage, StopReason, ToolCall, ToolResult, Usage
from engine.machine.states import AgentOutcome, AgentTask, StopCause
from engine.machine.views import CompactionDraft, CompactionFacts
from tools.displays import TodoList

# From the user


class UserMessage(Struct, frozen=True):
    """The user sent a message that passed the guard and is not empty."""

    message: NewMessage
    last: LastMessage
    run_id: str
    max_iterations: int
    supervisor: bool = False
    compact_due: bool = False
    """The window is past the threshold: older messages are summarized before the first call (SPEC DEC-12)."""


class UserCancelled(Struct, frozen=True):
    """Esc. `message_id` names the tool-result message that may have to be written."""

    message_id: str
    elapsed: int = 0
    """Whole seconds since the run began, for the notice."""
    by: StopCause = StopCause.USER
    written: str = ""
    """Text that the current model call had written when the limit was reached."""


class RetryAsked(Struct, frozen=True):
    """Resume an interrupted turn, or try again after an error."""

    last: LastMessage
    run_id: str
    max_iterations: int


class CompactAsked(Struct, frozen=True):
    """Request of the user to summarize older messages now; `focus` names the most important subjects."""

    focus: str = ""
    before: int = 0
    """The seq of the first message that stays; 0: the newest ones stay."""


class Verdict(StrEnum):
    """The user's answer to an approval. Rules are saved outside the machine."""

    ALLOW = "allow"
    DENY = "deny"


class PlanAnswer(Struct, frozen=True):
    """The user's answer to a plan, other than a plain no."""

    plan: str = ""
    """The accepted plan."""
    edited: bool = False
    """True when the user changed it: then its result repeats it."""
    mode: str = ""
    """Permission mode from now on, as in `PermissionMode`; empty: it stays."""
    remarks: str = ""
    """Wishes of the user for another plan; nothing is accepted."""
    fresh: CompactionDraft | None = None
    """The view from now on, without the messages before the plan."""
    answer_id: str = ""
    """Names the message that ends the run with the plan as its answer; empty: the run goes on."""
    at: int = 0
    """Number of stored messages."""


class ApprovalAnswered(Struct, frozen=True):
    """The user answered the question of `call_id`; `reason` goes to the model with a deny."""

    call_id: str
    verdict: Verdict
    message_id: str
    reason: str = ""
    note: str = ""
    """The quiet row that keeps the decision in the transcript."""
    plan: PlanAnswer | None = None
    """The answer to a plan, which settles its call; None for every other question, and for a no."""
    told: str = ""
    """The answer to questions of `ask_user`, which settles its call: after a no as an error; empty for approvals."""


class UserShell(Struct, frozen=True):
    """`!command`: the user runs a command in the conversation's directory."""

    message_id: str
    call: ToolCall
    run_id: str
    send_to_model: bool
    last: LastMessage
    command: str = ""
    """Command exactly as the user wrote it."""


# From the executor: each carries the generation of the effect it answers.


class LlmReplied(Struct, frozen=True):
    """A whole reply arrived. `calls` are its tool uses; `truncated_call` says the last one was cut off."""

    gen: int
    message_id: str
    blocks: tuple[Block, ...]
    stop: StopReason
    usage: Usage
    model: str
    last: LastMessage
    duration_ms: int = 0
    truncated_call: bool = False
    silent: bool = False
    """True when the model has nothing to say (SPEC CLAW-13)."""
    answer: tuple[Block, ...] | None = None
    """The whole reply as it is stored, continued parts included; None: these parts and `blocks` as they are."""
    context_tokens: int = 0
    estimated: bool = False
    """True when the server counted no tokens, and `usage` is an estimate."""
    cost_usd: float | None = None
    """Cost of the reply; None where the price is unknown."""
    compact_above: int = 0
    """Compact before the next call when `context_tokens` reaches this; 0 never."""
    pruned: CompactionDraft | None = None
    """The view with old tool results shortened, when enough of them have come together (SPEC CLAW-21)."""
    answer_id: str = ""
    """Names the message with which the machine itself answers a sub-agent: a nudge, or the receipt of a result."""
    asks_hooks: bool = False
    """True where hooks decide if the run may end with this reply."""


class LlmFailed(Struct, frozen=True):
    """A model call failed. `message` is written for the user."""

    gen: int
    kind: str
    message: str
    retryable: bool
    retry_after: float = 0.0
    context_overflow: bool = False
    message_id: str = ""
    """Names the message that `written` may become."""
    written: str = ""
    """Text on the screen when the call failed."""
    status: int = 0
    """HTTP status of the server's refusal; 0 where there was none."""


class StopDecided(Struct, frozen=True):
    """Hooks decided about the end of an answer: the message with which the run goes on, or None."""

    gen: int
    message: NewMessage | None = None
    note: str = ""
    """The quiet row below the answer."""


class RetryDue(Struct, frozen=True):
    """The wait before the next attempt is over."""

    gen: int


class ApprovalNeeded(Struct, frozen=True):
    """Request of the policy for the user's answer before `call_id` runs."""

    gen: int
    call_id: str
    reason: str


class ApprovalLapsed(Struct, frozen=True):
    """Change of mode or sandbox while the question of `call_id` was open: the call is decided again, without it."""

    gen: int
    call_id: str
    note: str = ""
    """The quiet row about the new decision."""


class ToolFinished(Struct, frozen=True):
    """A tool ended by itself. `stop_run`: the loop guard saw no progress."""

    gen: int
    result: ToolResult
    message_id: str
    stop_run: bool = False
    note: str = ""
    """The quiet row below its call."""
    stop_reason: str = ""
    """Sentence for the user where a hook stops the run; empty where the loop guard does."""
    stop_code: str = "hook_stopped"
    """Error code of the run where a hook stops it."""
    todos: TodoList | None = None
    """The todo list from now on; None: it stays as it is."""


class StoppedOutput(Struct, frozen=True):
    """Output of a stopped command, with a last line about the stop."""

    text: str
    """Result of a line that the user typed; a model reads nothing of its own stopped call (SPEC DEC-24)."""
    display_json: str
    """The encoded `tools.contract.Display` for the screen, whoever started the command."""
    truncated: bool = False
    note: str = ""
    """The quiet row below its call: it looks like an injection."""


class ToolAborted(Struct, frozen=True):
    """The cancelled tool and all its processes have ended."""

    gen: int
    call_id: str
    message_id: str
    ended_processes: int = 0
    survivors: tuple[int, ...] = ()
    job: str = ""
    """The background job as which its command runs on: the user had let it go right before."""
    output: StoppedOutput | None = None
    """None: no command had begun."""
    named: tuple[str, ...] = ()
    """The first of the processes in words."""


class CancelDeadlinePassed(Struct, frozen=True):
    """100 ms after Esc something has still not confirmed its end."""

    gen: int
    message_id: str
    output: StoppedOutput | None = None
    """Output up to Esc; None: no command had begun."""


class StragglersEnded(Struct, frozen=True):
    """Processes that outlived the cancel deadline exited, or cannot be killed. No generation: the run is over."""

    ended: int
    survivors: tuple[int, ...] = ()


class AgentsStarted(Struct, frozen=True):
    """spawn_agents was valid and its agents exist."""

    gen: int
    call_id: str
    agents: tuple[AgentTask, ...]


class AgentFinished(Struct, frozen=True):
    """A sub-agent reached a terminal state, or its deadline."""

    gen: int
    outcome: AgentOutcome
    message_id: str


class AgentDropped(Struct, frozen=True):
    """A sub-agent that was still waiting to start will not; `kind` and `error` as in `Failed`."""

    kind: str
    error: str


class CompactionEnded(Struct, frozen=True):
    """A compaction is over: its draft, or the facts of an attempt that changed nothing."""

    gen: int
    outcome: CompactionDraft | CompactionFacts


class OlderSummarized(Struct, frozen=True):
    """Older messages were summarized in the background; None when another summary has been made meanwhile."""

    draft: CompactionDraft | None


class RouteDecided(Struct, frozen=True):
    """The supervisor chose; an empty `spawn` means the main model answers alone."""

    gen: int
    message_id: str
    spawn: ToolCall | None = None
    strategy: Strategy = Strategy.SINGLE
    decision_json: str = "{}"
    """Decision for the record of the run."""
    note: str = ""
    """The quiet row about the decision."""
    approved: bool = False
    """True where the user said yes to the start; otherwise the policy decides about it."""


class AgentBegun(Struct, frozen=True):
    """A sub-agent leaves the queue; the messages in its inbox are its task."""

    run_id: str
    max_iterations: int
    results: NewMessage | None = None
    """Results of the earlier agents of a sequence."""


class AgentRecalled(Struct, frozen=True):
    """A finished sub-agent receives a new instruction: it queues again, as before its first run."""


class InboxArrived(Struct, frozen=True):
    """A result arrived in the inbox; `wakes` when an idle conversation may start a run for it."""

    wakes: bool
    last: LastMessage
    """Decides whether it opens a turn, as for a message of the user (SPEC UNI-06, UNI-10)."""
    run_id: str
    max_iterations: int


UserEvent: TypeAlias = UserMessage | UserCancelled | RetryAsked | CompactAsked | ApprovalAnswered | UserShell
ExecutorEvent: TypeAlias = (
    LlmReplied
    | LlmFailed
    | RetryDue
    | StopDecided
    | ApprovalNeeded
    | ApprovalLapsed
    | ToolFinished
    | ToolAborted
    | CancelDeadlinePassed
    | AgentsStarted
    | AgentFinished
    | CompactionEnded
    | RouteDecided
)
AgentEvent: TypeAlias = AgentBegun | AgentDropped | AgentRecalled
Event: TypeAlias = UserEvent | ExecutorEvent | InboxArrived | OlderSummarized | AgentEvent | StragglersEnded
