"""Requests to a conversation from outside, its receipts and its inbox (SPEC STM-00), and the facts of its run."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field

from engine.executor.loop_guard import LoopGuard
from engine.machine.events import Event
from engine.permissions.rules import Rule
from engine.ports import ProviderError, StorageError, Write
from engine.ports.extensions import PromptFile
from engine.run_caps import RunCaps as RunCaps
from engine.run_options import Effort, PermissionMode
from tools.call_values import SandboxMode
from tools.displays import TodoList

if TYPE_CHECKING:
    from engine.machine.states import State
    from engine.records import ConversationSummary
    from tools.contract import JsonObject
    from tools.displays import Answers


class Accepted(Struct, frozen=True):
    """A request was taken; `message_id` is empty where it stores no message."""

    message_id: str = ""


class Refused(Struct, frozen=True):
    """A request changed nothing, for this reason."""

    reason: str
    is_cap: bool = False
    """True where a cap on spending is used up."""
    is_busy: bool = False
    """True where another program keeps the database to itself, so that a later try may succeed."""


class NeedsYes(Refused, frozen=True):
    """A call of a skill or command that the user must agree to; sent again with `RunCaps.agreed` it goes on."""

    key: str = ""
    """Identity of the lines and rules below."""
    lines: tuple[str, ...] = ()
    """Shell lines that it would run."""
    rules: tuple[str, ...] = ()
    """Rules that would count until its run ends."""


Receipt: TypeAlias = Accepted | Refused


class ApprovalChoice(StrEnum):
    """The answers to an approval (CONTRACT 6)."""

    ONCE = "once"
    CONVERSATION = "conversation"
    ALWAYS = "always"
    """Allowed in this project, in every conversation."""
    EVERYWHERE = "everywhere"
    """Allowed in every project."""
    DENY = "deny"


class PlanChoice(StrEnum):
    """The answers to a plan."""

    ACCEPT_EDITS = "accept-edits"
    """Carry it out; edits run without a question."""
    ASK = "ask"
    """Carry it out, and ask before each change."""
    FRESH = "fresh"
    """Carry it out with nothing but the plan in the context; edits run without a question."""
    REVISE = "revise"
    """Make another plan, by the remarks of the answer."""
    LEAVE = "leave"
    """No; plan mode stays."""
    DELIVER = "deliver"
    """End the run with the plan as its answer: there is no user to approve it."""


class ApprovalAnswer(Struct, frozen=True):
    """The user's answer; `rule` replaces the suggested one where one is kept."""

    choice: ApprovalChoice
    reason: str = ""
    """Reason of a no; for a plan the remarks on it."""
    rule: str = ""
    plan_choice: PlanChoice | None = None
    """The answer to a plan; None: a yes asks before each change, a no with a reason asks for another plan."""
    plan: str = ""
    """The plan as the user changed it; empty: as it is."""
    is_left: bool = False
    """True for a no that only puts the question away: an MCP server reads that the user cancelled."""
    answers: Answers = ()
    """Answers to questions of `ask_user`: chosen labels or own words of each, in order."""
    input: JsonObject | None = None
    """Input of the call in place of the model's, with a yes; None: as it was shown."""


def shell_line(text: str) -> tuple[str, bool]:
    """The command of a line that begins with `!`, and whether the model reads its output: not with two of them."""
    return text.strip().lstrip("!").strip(), not text.strip().startswith("!!")


class EngineError(Exception):
    """Raised for an impossible request; the message is one sentence that names the fix."""


class MemoryShort(EngineError):
    """Raised when nothing new may begin for lack of memory."""


ENGINE_ERRORS: Final = (EngineError, StorageError, ProviderError)
"""Errors of the engine's requests; the message of each is one sentence for the user."""


class ConversationOptions(Struct, frozen=True):
    """Options of a new conversation."""

    cwd: Path
    model: str
    title: str = ""
    permission_mode: PermissionMode = PermissionMode.ASK
    profile: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""
    supervisor: bool = False
    """True when a supervisor decides who answers each message."""
    sandbox: SandboxMode = SandboxMode.WORKSPACE
    sandbox_required: bool = False
    """True where it was chosen; False for the default."""
    scripted: bool = False
    """True when a script begins it, for itself: the list leaves it out until a person opens or names it."""
    effort: Effort = Effort.DEFAULT
    id: str = ""
    """Chosen by the caller (SPEC SDK-01); empty: made here."""


class Activity(Struct, frozen=True):
    """Change in a conversation that is open here."""

    summary: ConversationSummary
    state: State
    needs_you: bool
    writing: bool = False
    """True while the answer, or a tool call, arrives."""
    agents: int = 0
    """Sub-agents that work, or wait to."""
    agents_asking: int = 0
    """Number of its sub-agents with an open question."""


class Proposal(Struct, frozen=True):
    """A summary that waits for the user; nothing is changed yet."""

    summary: str
    """Text as the model would read it; from outside."""
    summarized: int
    """Number of messages it would replace."""
    kept: int
    """Messages that stay as they are."""
    sizes: str
    """Tokens before and after, and the cost."""
    problem: str = ""
    """Reason why the last decision could not be carried out; else empty."""


class TakeSummary(Struct, frozen=True):
    """Put this in the place of the older messages: the summary as it was proposed, or changed."""

    text: str


class SummarizeAgain(Struct, frozen=True):
    """Make another one; `hint` names the most important subjects."""

    hint: str


class DropSummary(Struct, frozen=True):
    """Leave everything as it is."""


SummaryDecision: TypeAlias = TakeSummary | SummarizeAgain | DropSummary
Review: TypeAlias = Callable[[Proposal], Awaitable[SummaryDecision]]
"""Callback that shows a summary and returns the user's decision, without a time limit."""


UNWANTED: Final = Refused("nobody waits for this any more")
"""The answer to an entry that was not wanted when its turn came."""


class Priority(IntEnum):
    """Order of service."""

    CANCEL = 0
    USER = 1
    OUTCOME = 2


class InboxEntry(Struct, eq=False):
    """An event to come: built when its turn comes, so that the facts in it are those of that moment."""

    build: Callable[[], Event]
    message_id: str = ""
    caps: RunCaps = field(default_factory=RunCaps)
    receipt: asyncio.Future[Receipt] | None = None
    writes: tuple[Write, ...] = ()
    """Writes for the same transaction, if the machine accepts the event, even one without other changes."""
    wanted: Callable[[], Awaitable[bool]] | None = None
    """Condition evaluated when its turn comes, while no other move can be made; None: always wanted. May raise
    StorageError.
    """

    def settle(self, receipt: Receipt) -> None:
        """Complete the receipt, if the sender still waits."""
        if self.receipt is not None and not self.receipt.done():
            self.receipt.set_result(receipt)


class Inbox(Struct, eq=False):
    """A priority queue; within a priority, first come, first served."""

    _heap: list[tuple[Priority, int, InboxEntry]] = field(default_factory=list[tuple[Priority, int, InboxEntry]])
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: str = ""

    def put(self, priority: Priority, entry: InboxEntry) -> None:
        """Add one; never waits. Once it is closed, the entry is refused."""
        if self._closed:
            entry.settle(Refused(self._closed))
            return
        heapq.heappush(self._heap, (priority, next(self._order), entry))
        self._arrived.set()

    @property
    def waiting(self) -> bool:
        """True while an entry waits."""
        return bool(self._heap)

    @property
    def stops(self) -> bool:
        """True while a stop of the user is unserved."""
        return bool(self._heap) and self._heap[0][0] is Priority.CANCEL

    async def take(self) -> InboxEntry:
        """The next one by priority."""
        while not self._heap:
            self._arrived.clear()
            await self._arrived.wait()
        return heapq.heappop(self._heap)[2]

    def refuse_all(self, reason: str) -> None:
        """Settle everything that waits, and whatever comes later: the conversation closes."""
        self._closed = reason
        while self._heap:
            heapq.heappop(self._heap)[2].settle(Refused(reason))


class TodoTold(Struct, eq=False):
    """The list as the model of the current run knows it."""

    known: TodoList | None = None
    """List at the newest request; None before the first one."""
    since: int = 0
    """Model call after which the list is this one, or was called to mind."""
    reminders: int = 0
    note: str = ""
    noted: int = 0
    """The newest reminder, and the model call it was given to: a repeated call gets the same."""


class RunFacts(Struct, eq=False):
    """Facts about the current run besides its state."""

    started: float = 0.0
    """Monotonic."""
    caps: RunCaps = field(default_factory=RunCaps)
    cost_usd: float | None = 0.0
    agents_cost_usd: float | None = 0.0
    """Cost of sub-agents, while the run is the newest one."""
    told_of_budget: bool = False
    told_of_caps: bool = False
    samples: int = 0
    """Sampling requests of MCP servers that the user was asked about."""
    loop_guard: LoopGuard = field(default_factory=LoopGuard)
    files_note: str | None = None
    """Note for the model about files that were rewound before it; None until the first request."""
    effort: Effort | None = None
    """Effort of the first request: another one in the middle would make the cached messages worthless."""
    prompt_files: tuple[PromptFile, ...] | None = None
    """AGENTS.md and similar files as the first request found them (SPEC UNI-30)."""
    folder_files: dict[Path, int] = field(default_factory=dict[Path, int])
    """Instruction files of folders that a result of this run has, with the number of stored messages at that time."""
    stop_hooks: int = 0
    """Times that hooks let it go on behind an answer."""
    heard_of_end: bool = False
    """True once they agreed to its end."""
    agent_calls: dict[str, float] = field(default_factory=dict[str, float])
    """Calls that started sub-agents, of whose results hooks have not heard, and when they began (monotonic)."""
    batch: str = ""
    """Message with the results that hooks have heard of last."""
    batch_note: str = ""
    """Text of hooks about these results, for the request that brings them."""
    todos: TodoTold = field(default_factory=TodoTold)
    rules: tuple[Rule, ...] = ()
    """Rules of skills and commands that the user agreed to for this run."""


class TimeLimit(Struct, eq=False):
    """Time limit of the current run, without the time that its user takes for an answer; none between runs."""

    _inbox: Inbox | None = None
    _entry: InboxEntry | None = None
    """Entry for the inbox when the time is up."""
    _timer: asyncio.TimerHandle | None = None
    _left: float | None = None
    """Seconds left while it is paused."""

    def begin(self, seconds: float, inbox: Inbox, entry: InboxEntry) -> None:
        """A run begins that may take so long; 0: any time."""
        self.end()
        self._left, self._inbox, self._entry = seconds or None, inbox, entry
        self.go_on()

    def pause(self) -> None:
        """Pause while the user is asked."""
        if self._timer is not None:
            self._left = max(self._timer.when() - asyncio.get_running_loop().time(), 0.0)
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """The answer is there; nothing changes where the time runs, or the run is over."""
        if self._left is not None:
            self._timer = asyncio.get_running_loop().call_later(self._left, self.expire)
            self._left = None

    def expire(self) -> None:
        """Put the entry of the run into its inbox: the time is up."""
        if self._inbox is not None and self._entry is not None:
            self._inbox.put(Priority.OUTCOME, self._entry)

    def end(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._left = None

    @property
    def left(self) -> float | None:
        """Seconds left while it is paused; None while it runs, or without a limit."""
        return self._left

    @property
    def runs(self) -> bool:
        """True while its time runs."""
        return self._timer is not None
