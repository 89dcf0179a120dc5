"""The ten states of a conversation (SPEC STM-00). Each carries only what is true in it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from engine.machine.messages import Block, ToolCall, ToolResult


class StopCause(StrEnum):
    """Origin of a cancel."""

    USER = "user"
    """Esc, in the process that has the conversation."""
    OUTSIDE = "outside"
    """A request of another process (SPEC SDK-11)."""
    TIME_LIMIT = "time_limit"
    ENDING = "ending"
    """Phoenix ends: by a signal, with its terminal or client, or while it worked. No one stopped the run, so it reads
    as after a crash and can be resumed (SPEC STM-10).
    """


RETRIES = 3
"""Retries after the first call (SPEC DEC-10). Tests write the number out: those of `test_reply_rules.py`,
`test_broken_streams.py` and `test_headless.py`, and the scene `retrying`.
"""
CONTINUATIONS = 3
"""Replies that may be continued after an output limit (SPEC STM-02)."""


class AgentRun(Struct, frozen=True):
    """Progress of a sub-agent's run towards a submission (SPEC STM-09)."""

    nudged: bool = False
    """True once it ended without a submission and was asked to submit."""
    in_grace: bool = False
    """True once its model calls are used up: the current one may only submit."""


class Run(Struct, frozen=True):
    """One activation from idle to idle: `id` is the task_id of events and of the database."""

    id: str
    max_iterations: int
    iteration: int = 1
    """Model calls of this run, counted from 1 (SPEC UNI-03)."""
    compaction_failed: bool = field(default=False, name="compacted")
    """True once a compaction of this run changed nothing: it is not tried again (SPEC CLAW-30)."""
    overflowed: bool = False
    """True once a request was too long; a second one before any reply is an error (SPEC STM-02)."""
    compact_due: bool = False
    """True if the last reply filled the window past the threshold (SPEC DEC-12)."""
    room: int = 0
    """Tokens of tool results from which a compaction is due after them; 0 none is."""
    agent: AgentRun | None = None
    """Set in a sub-agent's run: it ends in `Completed` or `Failed`, never in `Idle` or `Errored`."""

    @property
    def in_grace(self) -> bool:
        """True when only a submission may follow."""
        return self.agent is not None and self.agent.in_grace

    def next_iteration(self) -> Run:
        """The run one model call later."""
        return replace(self, iteration=self.iteration + 1)


class Requesting(Struct, frozen=True, tag="requesting"):
    """A model call is under way."""


class RetryWait(Struct, frozen=True, tag="retry_wait"):
    """The last call failed; the next one waits `seconds`."""

    seconds: float
    cause: str


class Routing(Struct, frozen=True, tag="routing"):
    """Phase in which the supervisor decides."""


class CompactingContext(Struct, frozen=True, tag="compacting"):
    """Older messages are being summarized before the next call."""


class Ending(Struct, frozen=True, tag="ending"):
    """The answer is stored; hooks decide if the run may end with it."""

    result: str = ""
    """Result that a sub-agent has handed in."""


Phase: TypeAlias = Requesting | RetryWait | Routing | CompactingContext | Ending


class BrokenText(Struct, frozen=True):
    """Text that a model call had written when it failed: kept until a retry succeeds, stored when none does."""

    text: str
    cause: str
    """Reason of the interruption, in a sentence for the user."""
    message_id: str
    """Names the message that it may become."""


class Idle(Struct, frozen=True, tag="idle"):
    """State without a run; a message starts one."""

    gen: int


class AwaitingLlm(Struct, frozen=True, tag="awaiting_llm"):
    """State with a model call, running or about to be repeated."""

    gen: int
    run: Run
    phase: Phase
    attempt: int = 0
    """Retries spent on this call, 0 to 3."""
    continuations: int = 0
    partial: tuple[Block, ...] = ()
    """Finished blocks of replies that hit the output limit and are being continued."""
    broken: BrokenText | None = None
    """The longest text among the attempts that failed."""


class ToolOrigin(StrEnum):
    """Origin of the tool calls: the model or the user."""

    MODEL = "model"
    USER = "user"


class ToolRound(Struct, frozen=True):
    """The calls of one reply: done, running, waiting. Together they are always all of them."""

    message_id: str
    """The assistant message that asked, or the user's shell notice."""
    current: ToolCall
    queue: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    origin: ToolOrigin = ToolOrigin.MODEL
    send_to_model: bool = False
    """True when the model will read a user's shell command."""
    opens_turn: bool = False
    """True when a user's shell command that the model reads begins a turn."""
    command: str = ""
    """A user's shell command, as the user wrote it."""


class ToolExecuting(Struct, frozen=True, tag="tool_executing"):
    """State in which tools run one at a time, in the order of the model's calls."""

    gen: int
    run: Run
    round: ToolRound


class AwaitingApproval(Struct, frozen=True, tag="awaiting_approval"):
    """The current call waits for the user's yes or no."""

    gen: int
    run: Run
    round: ToolRound
    reason: str
    """Reason of the question, in words: the permission mode, a path outside the folder."""


class AgentStatus(StrEnum):
    """The column `conversations.result_status`."""

    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"


class AgentTask(Struct, frozen=True):
    """One sub-agent of a spawn call, and its task."""

    id: str
    task: str


class AgentOutcome(Struct, frozen=True):
    """Outcome of one sub-agent."""

    agent_id: str
    status: AgentStatus
    text: str = ""
    """Result, or the text it had written when it failed."""
    reason: str = ""
    """Reason of a failure; empty for a success."""
    turns: int = 0
    """Model replies of its last run, and how long that took."""
    seconds: float = 0.0


class AwaitingSubagents(Struct, frozen=True, tag="awaiting_subagents"):
    """Sub-agents work; every one of them is pending or has an outcome (SPEC I7)."""

    gen: int
    run: Run
    round: ToolRound
    agents: tuple[AgentTask, ...]
    """Tasks in the order of the call."""
    outcomes: tuple[AgentOutcome, ...] = ()

    @property
    def pending(self) -> tuple[str, ...]:
        """The ids of those that have not ended."""
        return list_unfinished(self.agents, self.outcomes)


class Cancelling(Struct, frozen=True, tag="cancelling"):
    """A tool or sub-agents are being stopped; at most 100 ms (SPEC STM-06)."""

    gen: int
    run: Run
    round: ToolRound
    elapsed: int = 0
    """Whole seconds the run had taken when the user stopped it."""
    timed_out: bool = False
    agents: tuple[AgentTask, ...] = ()
    """All tasks of a spawn call."""
    outcomes: tuple[AgentOutcome, ...] = ()
    outside: bool = False
    """Another process asked for it."""
    ending: bool = False
    """Phoenix ends."""

    @property
    def pending(self) -> tuple[str, ...]:
        """The ids of the sub-agents that have not ended."""
        return list_unfinished(self.agents, self.outcomes)

    @property
    def by(self) -> StopCause:
        """The cause, kept as flags: stored states of earlier versions have the first."""
        if self.timed_out:
            return StopCause.TIME_LIMIT
        if self.ending:
            return StopCause.ENDING
        return StopCause.OUTSIDE if self.outside else StopCause.USER


class Compacting(Struct, frozen=True, tag="compacting"):
    """State with a requested summary of older messages."""

    gen: int


class Errored(Struct, frozen=True, tag="error"):
    """A run failed; the user can retry or send a message."""

    gen: int
    kind: str
    message: str
    retryable: bool
    run_id: str
    status: int = 0
    """HTTP status of the server's refusal; 0 where there was none."""


class Completed(Struct, frozen=True, tag="completed"):
    """A sub-agent handed in its result."""

    gen: int
    result: str


class Failed(Struct, frozen=True, tag="failed"):
    """A sub-agent ended without a result."""

    gen: int
    kind: str
    error: str
    partial: str = ""


State: TypeAlias = (
    Idle
    | AwaitingLlm
    | ToolExecuting
    | AwaitingApproval
    | AwaitingSubagents
    | Cancelling
    | Compacting
    | Errored
    | Completed
    | Failed
)

STATE_NAMES: Final[Mapping[type[State], str]] = {
    kind: str(kind.__struct_config__.tag)
    for kind in (
        Idle,
        AwaitingLlm,
        ToolExecuting,
        AwaitingApproval,
        AwaitingSubagents,
        Cancelling,
        Compacting,
        Errored,
        Completed,
        Failed,
    )
}
"""The names of the column `conversations.state`."""


def list_unfinished(agents: tuple[AgentTask, ...], outcomes: tuple[AgentOutcome, ...]) -> tuple[str, ...]:
    """The ids of the sub-agents without an outcome, in order."""
    ended = {outcome.agent_id for outcome in outcomes}
    return tuple(agent.id for agent in agents if agent.id not in ended)


BUSY: Final = (AwaitingLlm, ToolExecuting, AwaitingApproval, AwaitingSubagents, Cancelling, Compacting)
"""States of a conversation at work."""


def is_busy(state: State) -> bool:
    """True while a run or a manual compaction is in progress."""
    return isinstance(state, BUSY)


def run_of(state: State) -> Run | None:
    """The run under way, or None between runs."""
    match state:
        case AwaitingLlm() | ToolExecuting() | AwaitingApproval() | AwaitingSubagents() | Cancelling():
            return state.run
        case Idle() | Compacting() | Errored() | Completed() | Failed():
            return None
        case _:
            assert_never(state)


def round_of(state: State) -> ToolRound | None:
    """The tool round under way, or None."""
    match state:
        case ToolExecuting() | AwaitingApproval() | AwaitingSubagents() | Cancelling():
            return state.round
        case Idle() | AwaitingLlm() | Compacting() | Errored() | Completed() | Failed():
            return None
        case _:
            assert_never(state)
