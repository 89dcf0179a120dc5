"""Requests to a conversation from outside, its receipts, and its question about a summary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from engine.run_caps import RunCaps as RunCaps
from engine.run_options import Effort, PermissionMode
from tools.call_values import SandboxMode

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
