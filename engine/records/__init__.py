"""Rows of the store as values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from engine.machine.messages import Block, Origin, Role, ToolStatus, Usage
from engine.machine.states import AgentOutcome, State
from engine.machine.views import CompactionFacts, ContextView, EarlierView, Omission
from engine.records.runs import Totals
from engine.run_options import Effort
from engine.run_options import PermissionMode as PermissionMode
from engine.search import Speaker
from tools.clean import reveal_name
from tools.contract import SandboxMode
from tools.displays import TodoList

COMMAND_TITLE: Final = "! "
"""Prefix of a command that serves as title; no message begins with it, since `!` runs the rest."""


class TitleBy(StrEnum):
    """Sources of a conversation's title."""

    FIRST_MESSAGE = ""
    """First message; also the value while there is none."""
    MODEL = "model"
    USER = "user"
    """Never replaced by anybody else."""


class SpawnMode(StrEnum):
    """Delivery of a sub-agent's result to its parent (SPEC DEC-04)."""

    FAN_IN = "fan_in"
    """The parent waits; the results come together."""
    BACKGROUND = "background"
    """The parent continues; a completion message comes later."""


class RunPriority(StrEnum):
    """Priority among sub-agents that wait to start (SPEC SDK-10)."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    CRITICAL = "critical"


class AgentFacts(Struct, frozen=True):
    """Facts of a sub-agent, set once when it is created (SPEC BED-009)."""

    parent_id: str
    mode: SpawnMode
    call_id: str
    """The call of the parent that made it."""
    ordinal: int
    """Position among the tasks of that call, from 1."""
    task: str
    max_turns: int = 20
    """Model calls of one run, without the turn of grace (SPEC DEC-11)."""
    timeout: float = 300.0
    """Seconds that one run may take (SPEC DEC-16)."""
    priority: RunPriority = RunPriority.NORMAL
    context: str = ""
    """The parent's transcript up to the call, for the system prompt (SPEC UNI-22)."""


class NewConversation(Struct, frozen=True):
    """A conversation to be created. `cwd` is validated and resolved by the engine before this exists."""

    id: str
    cwd: Path
    model: str
    title: str = ""
    permission_mode: PermissionMode = PermissionMode.ASK
    profile: str = ""
    system_prompt: str = ""
    """Replaces the built prompt when not empty."""
    append_system_prompt: str = ""
    agent: AgentFacts | None = None
    """Set for a sub-agent."""
    prompt: str = ""
    """Task of a sub-agent: it waits in its inbox until it begins."""
    supervisor: bool = False
    sandbox: SandboxMode = SandboxMode.WORKSPACE
    sandbox_required: bool = False
    scripted: bool = False
    """True when a script began it (`phoenix -p`): the visible lists leave it out."""
    effort: Effort = Effort.DEFAULT


class StoredCompaction(Struct, frozen=True):
    """One attempt to make the context of a conversation shorter."""

    at: float
    """Unix time."""
    facts: CompactionFacts


class ConversationRecord(Struct, frozen=True):
    """One conversation, whole."""

    id: str
    title: str
    cwd: Path
    model: str
    profile: str
    permission_mode: PermissionMode
    system_prompt: str
    append_system_prompt: str
    context_window: int
    """0 while unknown."""
    context_tokens: int
    context_estimated: bool
    totals: Totals
    draft: str
    scroll_seq: int
    context_start_seq: int
    summary: str
    archived: bool
    deleted: bool
    created_at: float
    updated_at: float
    message_count: int
    """Number of the newest message (`messages.seq`): prompts, replies and results of tools; 0 without any."""
    owner_pid: int | None
    """Pid of the owning process, None without one."""
    title_by: TitleBy = TitleBy.FIRST_MESSAGE
    pinned_at: float = 0.0
    """0: not pinned."""
    last_status: str = ""
    """Status of the newest run, as in `runs.status`; empty before the first one."""
    omitted: tuple[Omission, ...] = ()
    earlier_views: tuple[EarlierView, ...] = ()
    compact_percent: int = 0
    """Fill level in per cent from which older messages are summarized; 0: the default, above 100: never."""
    compacted_at: int = 0
    """Number of messages at the last attempt to compact: the next automatic one waits for more."""
    last_usage: Usage | None = None
    """Usage of the newest reply, as the provider counted it."""
    agent: AgentFacts | None = None
    """Facts of a sub-agent; the user cannot write to it."""
    agents_totals: Totals = Totals()
    """Usage of its sub-agents, in addition to its own `totals`."""
    supervisor: bool = False
    """True if a supervisor decides who answers each message (SPEC DEC-17)."""
    sandbox: SandboxMode = SandboxMode.WORKSPACE
    """Limits of its calls, however it is opened."""
    sandbox_required: bool = False
    """True where the user or a setting chose the sandbox: then a system that cannot enforce it asks in every mode."""
    effort: Effort = Effort.DEFAULT
    """Effort of its model, from the next run on."""
    mcp_off: tuple[str, ...] = ()
    """MCP servers that are switched off in it."""
    mcp_loaded: tuple[str, ...] = ()
    """MCP tools that its model has loaded."""
    tracking: bool | None = None
    """The user's choice whether its tasks are tracked; None: the setting decides."""
    todos: TodoList = TodoList()
    plan: str = ""
    """The plan that was accepted last, as Markdown."""
    plan_at: int = 0
    """Number of stored messages when it was accepted."""

    @property
    def spent(self) -> Totals:
        """Usage including all of its sub-agents."""
        return self.totals.plus(self.agents_totals)

    @property
    def view(self) -> ContextView:
        """View of its messages for a model."""
        return ContextView(self.summary, self.context_start_seq, self.omitted, self.earlier_views)


class StoredConversation(ConversationRecord, frozen=True, kw_only=True):
    """A row of conversations: the record, and the state that was committed last."""

    state: State

    @property
    def record(self) -> ConversationRecord:
        """The row without its state, which the loop of an open conversation holds alone."""
        return ConversationRecord(*(getattr(self, name) for name in ConversationRecord.__struct_fields__))


class AgentRow(Struct, frozen=True):
    """A sub-agent as stored in the database."""

    id: str
    facts: AgentFacts
    profile: str
    model: str
    state: State
    outcome: AgentOutcome | None
    """Outcome; None while it has not ended."""
    totals: Totals
    iterations: int
    """Model calls of its newest run, which its limit is about."""
    tool_iterations: int
    """Replies of its that called a tool (SPEC T-CMP)."""
    turns: int
    started_at: float
    """Start of its newest run; 0 before the first."""
    ended_at: float
    """End of its newest run; 0 while it runs."""


class ConversationSummary(Struct, frozen=True):
    """One row of the list."""

    id: str
    title: str
    cwd: Path
    model: str
    state_name: str
    context_tokens: int
    context_window: int
    totals: Totals
    """Totals including those of its sub-agents."""
    archived: bool
    unread: bool
    updated_at: float
    message_count: int
    """Number of the newest message (`messages.seq`): prompts, replies and results of tools; 0 without any."""
    owner_pid: int | None
    pinned_at: float = 0.0
    """0: not pinned."""
    last_status: str = ""
    """Status of the newest run, as in `runs.status`; empty before the first one."""
    has_draft: bool = False
    put_away_at: float = 0.0
    """Time at which it was archived or moved to the trash; 0 in the list itself."""
    scripted: bool = False
    """True when a script began it and the user has neither opened nor named it since."""
    slug: str = ""
    """Title in letters that are easy to type; unique, and empty until it has a title."""
    progress: str = ""
    """Done and all items of its todo list, as in `3/7`; empty without open ones."""


class ConversationQuery(Struct, frozen=True):
    """Filter of the conversations to list, newest first."""

    cwd: Path | None = None
    archived: bool = False
    deleted: bool = False
    title_contains: str = ""
    scripted: bool = True
    """True to include those of scripts."""
    limit: int = 200
    offset: int = 0


NEWEST: Final = 1 << 40
"""A seq above all others: the messages before it are the newest."""


class StoredMessage(Struct, frozen=True):
    """A message as stored in the database; `seq` is dense per conversation, from 1."""

    id: str
    seq: int
    turn_number: int
    message_number: int
    role: Role
    origin: Origin
    blocks: tuple[Block, ...]
    created_at: float
    silent: bool = False
    run_id: str = ""
    model: str = ""
    usage: Usage | None = None
    duration_ms: int = 0
    cut: str = ""
    """Reason why the reply is incomplete, see `NewMessage.cut`."""
    suspected: tuple[str, ...] = ()
    """Patterns of an injection, see `NewMessage.suspected`."""


class ToolCallRecord(Struct, frozen=True):
    """A tool call as stored in the database."""

    tool_use_id: str
    message_id: str
    ordinal: int
    name: str
    input_json: str
    status: ToolStatus
    output_text: str = ""
    display_json: str = ""
    duration_ms: int = 0


class Attachment(Struct, frozen=True):
    """A stored image; `path` is the file named by its SHA-256."""

    id: str
    path: Path
    media_type: str
    width: int
    height: int
    bytes: int
    original_width: int
    original_height: int
    original_bytes: int


class Delivery(StrEnum):
    """Time of sending a queued message; the column `queued_messages.delivery`."""

    IDLE = "idle"
    """Sent as the conversation comes to rest."""
    TOOL = "tool"
    """Sent with the next tool results of the running turn, or at rest if none come."""


class QueuedMessage(Struct, frozen=True):
    """A message of the user that is sent, or a shell line that is run, when the conversation is idle."""

    id: str
    text: str
    image_ids: tuple[str, ...] = ()
    is_shell: bool = False
    """True when the text is a command behind `!` or `!!`."""
    delivery: Delivery = Delivery.IDLE


class SideExchange(Struct, frozen=True):
    """A question beside a conversation, and its answer."""

    question: str
    answer: str


class SearchHit(Struct, frozen=True):
    """A message or a tool call that matches a search."""

    conversation_id: str
    title: str
    cwd: Path
    seq: int
    """Seq of the message; for a tool call of the calling one."""
    speaker: Speaker
    snippet: str
    """One line of the text around the best place."""
    created_at: float
    call_id: str = ""
    """The tool call, empty for a message."""
    archived: bool = False
    left_behind: bool = False
    """True in a branch that a rewind left: `/branches` shows it, the list does not."""


class SearchAnswer(Struct, frozen=True):
    """Results of a search so far, the best first."""

    hits: tuple[SearchHit, ...]
    next: int | None = None
    """Start of the next search; None when everything was searched."""
    reached: float = 0.0
    """The time of the oldest text that was looked at; 0 when everything was."""
    unindexed: float = 0.0
    """The share of older messages that are not indexed yet."""


class FoundText(Struct, frozen=True):
    """A message or tool call of one conversation that contains a text."""

    seq: int
    call_id: str
    """The tool call, empty for the message itself."""
    count: int
    """Number of occurrences."""


class Recovery(Struct, frozen=True):
    """Result of recovering one conversation (SPEC STM-10)."""

    conversation_id: str
    interrupted_calls: tuple[str, ...] = ()
    interrupted_run: bool = False
    kept_error: str = ""
    messages_added: int = 0
    processes: tuple[tuple[int, int], ...] = field(default_factory=tuple)
    """(pid, start ticks) of tool processes that may still live and must be killed if still ours."""

    @property
    def changed(self) -> bool:
        """True when recovery changed something; a second start would find less to do."""
        return bool(self.interrupted_calls or self.interrupted_run or self.kept_error or self.messages_added)


class ForkPlace(Struct, frozen=True):
    """Working directory of a copy, other than that of its source."""

    cwd: Path
    note: str = ""
    """Paragraph for the model about it, behind the appended system prompt."""


NOTE: Final = (
    "This conversation is a copy that continues in the working directory {folder}. The messages before it are about"
    " {source}, so look at files again before you rely on them."
)


def build_fork_place(source: Path, folder: Path) -> ForkPlace:
    """Place of a copy in another folder, with the paragraph that tells its model about it."""
    return ForkPlace(folder, NOTE.format(folder=reveal_name(folder), source=reveal_name(source)))


ID: Final = "unstored"


def build_unstored_record(cwd: Path, sandbox: SandboxMode, *, required: bool) -> ConversationRecord:
    """The record of a new conversation in `cwd`; it has one id per folder, which no stored one has."""
    return ConversationRecord(
        id=f"{ID}:{cwd}",
        title="",
        cwd=cwd,
        model="",
        profile="",
        permission_mode=PermissionMode.ASK,
        system_prompt="",
        append_system_prompt="",
        context_window=0,
        context_tokens=0,
        context_estimated=False,
        totals=Totals(),
        draft="",
        scroll_seq=0,
        context_start_seq=1,
        summary="",
        archived=False,
        deleted=False,
        created_at=0.0,
        updated_at=0.0,
        message_count=0,
        owner_pid=None,
        sandbox=sandbox,
        sandbox_required=required,
    )
