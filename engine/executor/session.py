"""The live facts of one conversation, shared by its loop and its effects. Only the loop writes `state`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from engine.context.compaction import FEWEST
from engine.context.estimate import Calibration
from engine.executor.engine_settings import EngineSettings
from engine.executor.model_limits import Governor, SpendingCaps
from engine.executor.requests import Inbox, InboxEntry, Priority, RunFacts, TimeLimit
from engine.executor.session_parts import BackgroundWork, CallLog, HookFacts, Questions, Window
from engine.machine.effects import Save
from engine.machine.events import Event
from engine.machine.messages import UNANSWERED, LastMessage, Role, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from engine.machine.states import State, StopCause
from engine.machine.views import ContextView
from engine.memory.memory import Memory
from engine.permissions.rules import Rule, RuleBook
from engine.permissions.unreadable import DeniedFiles
from engine.ports import Clock, Ids, Providers, Write
from engine.ports.extensions import ExtensionSource, HookRunner, Invocables
from engine.ports.mcp import ServerTexts
from engine.ports.profiles import Profile, Profiles
from engine.ports.services import Closable, EditChecker
from engine.records import ConversationRecord, StoredMessage, ToolCallRecord
from engine.rewind.rewind import Rewinding
from engine.updates import AgentView, ContextChanged, Publisher
from tools.bash import JobBoard
from tools.contract import Access, Enforcement, ImageReader, SelfStarting, Tool
from tools.terminal.values import ShellTerminal
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.store.agents import AgentStore
    from engine.store.inbox import QueueStore
    from engine.store.library import Library
    from engine.store.runs import RunStore
    from engine.store.statistics import StatisticsStore
    from engine.store.store import Store
    from engine.store.task_store import TaskStore


def classify_message(message: StoredMessage, before: LastMessage) -> LastMessage:
    """Kind of the last message that a model would see; notices change nothing."""
    match message.role:
        case Role.SYSTEM:
            return before
        case Role.ASSISTANT:
            asks = any(isinstance(block, ToolUseBlock) for block in message.blocks)
            return LastMessage.CUT if message.cut else LastMessage.TOOL_USE if asks else LastMessage.ANSWER
        case Role.USER:
            answers = any(isinstance(block, ToolResultBlock) for block in message.blocks)
            return LastMessage.TOOL_RESULT if answers else LastMessage.USER


def is_shell(message: StoredMessage) -> bool:
    """True for the row of a command of the user."""
    return message.role is Role.SYSTEM and any(isinstance(block, ToolUseBlock) for block in message.blocks)


def tells_of_shell(message: StoredMessage, run_id: str | None) -> bool:
    """True if it contains the output of the user's command for the model (SPEC STM-01)."""
    if message.role is not Role.USER or message.run_id != run_id or len(message.blocks) != 1:
        return False
    block = message.blocks[0]
    return isinstance(block, TextBlock) and block.text.startswith("$ ")


class SandboxProbe(Protocol):
    """Knows what this system can enforce, and looks after the folders that commands ran in."""

    async def enforcement(self) -> Enforcement:
        """Level of sandbox enforcement; the first call starts a program."""
        ...

    async def trouble(self, folder: Path) -> str:
        """Reason why a program outside the sandbox should not start in `folder` now, as a clause; empty for none."""
        ...

    async def sift_changes(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[SelfStarting, ...]:
        """The self-starting files among `changes` that are not as the user's own history has them; others are kept."""
        ...

    async def keep_changes(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[str, ...]:
        """Take changed files for the user's own; returns a clause for each that was changed again since."""
        ...

    async def take_back(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[str, ...]:
        """Restore changed files as they were; what a command wrote is kept elsewhere.

        Returns sentences: where that is, and which files could not be restored.
        """
        ...


class NoSandbox:
    """A system without a sandbox."""

    async def enforcement(self) -> Enforcement:
        """Enforce nothing."""
        return Enforcement.NONE

    async def trouble(self, folder: Path) -> str:
        """Know of no command."""
        return ""

    async def sift_changes(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[SelfStarting, ...]:
        """Leave all of them to the user."""
        return tuple(changes)

    async def keep_changes(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[str, ...]:
        """Keep what is there."""
        return ()

    async def take_back(self, folder: Path, changes: Sequence[SelfStarting]) -> tuple[str, ...]:
        """Restore nothing: nothing is known of the files."""
        return ("The files stay as they are: it is not known how they were before.",)


NO_SANDBOX: Final = NoSandbox()


NEVER = 101
"""A threshold in per cent that no window reaches."""
LONGEST_PARENT = 40
"""Characters of a conversation's title beside the name of its sub-agent."""
LAST_MESSAGES = 8
"""Enough rows to find one that a model can see behind trailing notices."""


class Ports(Struct, frozen=True):
    """Dependencies of the engine from outside."""

    store: Store
    library: Library
    queue: QueueStore
    providers: Providers
    tools: Mapping[str, Tool]
    jobs: JobBoard
    images: ImageReader
    rules: RuleBook
    clock: Clock
    ids: Ids
    rewinding: Rewinding | None = None
    memory: Memory | None = None
    """Notes; None: there are none, and no tools for them."""
    agents: AgentStore | None = None
    """Store of sub-agents; together with profiles it enables them."""
    profiles: Profiles | None = None
    tasks: TaskStore | None = None
    """Store of the task board; None: there is none."""
    runs: RunStore | None = None
    """Runs by id, which another process may ask to cancel."""
    statistics: StatisticsStore | None = None
    """Sums over all conversations, which the caps on spending need; None: no caps."""
    extensions: tuple[ExtensionSource, ...] = ()
    """Sources of tools and prompt texts from elsewhere."""
    hooks: tuple[HookRunner, ...] = ()
    """Sources of hooks: files, and a host."""
    invocables: Invocables | None = None
    """Skills and command files; None: there are none."""
    server_texts: ServerTexts | None = None
    """Prompts and resources of MCP servers; None: there are no servers."""
    probe: SandboxProbe = NO_SANDBOX
    """Says how far this system can enforce a sandbox."""
    trace_export: Closable | None = None
    """Export of traces, which ends before the store."""
    edit_checks: EditChecker | None = None
    """Language servers that check edited files; None: there are none."""


class Deliveries(Struct, frozen=True):
    """Queued messages that moves store in the running turn."""

    writes: Callable[[Sequence[Save], str], tuple[Write, ...]]
    """Returns the writes of the move of a run that makes these saves."""
    note_stored: Callable[[Sequence[Write], Sequence[StoredMessage]], None]
    """Takes the outcome of that move."""


class AgentStopper(Protocol):
    """Owner of the sub-agents of a conversation."""

    def stop(self, agent_ids: Iterable[str], by: StopCause = StopCause.USER) -> None:
        """Stop these."""
        ...

    def stop_all(self, parent_id: str, by: StopCause = StopCause.USER) -> None:
        """Stop every one of a conversation."""
        ...

    def reconsider(self, parent_id: str) -> None:
        """Decide the open questions of a conversation's sub-agents again: its limits are theirs."""
        ...

    def views(self, parent_id: str) -> tuple[AgentView, ...]:
        """Views of the sub-agents."""
        ...

    def results(self, parent_id: str) -> int:
        """Number of results that its model has not read yet."""
        ...


class MessageRange(Struct, frozen=True):
    """A range of stored messages with their tool calls."""

    messages: tuple[StoredMessage, ...]
    tool_calls: tuple[ToolCallRecord, ...]


class MoveContext(Struct, eq=False):
    """Events to come, and facts about the moves that take them."""

    inbox: Inbox = field(default_factory=Inbox)
    limit: TimeLimit = field(default_factory=TimeLimit)
    steering: Deliveries | None = None
    """Queued messages for the running turn; set with the queue."""
    broken: bool = False
    """True when the last move could not be stored: the next one begins with its repair."""
    state_since: float = 0.0
    """Monotonic time of the last change of state."""


class Grants(Struct, eq=False):
    """Permissions that hold while the conversation is open."""

    rules: dict[Rule, float] = field(default_factory=dict[Rule, float])
    """Allowed for this conversation only, and since when (Unix time)."""
    rule_access: dict[Rule, Access] = field(default_factory=dict[Rule, Access])
    """Access beyond the sandbox that a rule was given for."""
    denied_files: DeniedFiles = field(default_factory=DeniedFiles)
    """Files that rules deny to read."""


class Equipment(Struct, eq=False):
    """Tools and terminal of a conversation, and the agents above and below it."""

    tools: Mapping[str, Tool]
    """Phoenix's own tools of its model; `equipment.tools_of` adds those of extensions."""
    profile: Profile | None = None
    """Profile of the sub-agent; None for the user's own conversation."""
    sub_agents: AgentStopper | None = None
    above: Session | None = None
    """The conversation whose sub-agent this one is, while it works."""
    shell: ShellTerminal | None = None
    """Terminal of the user's shell lines, and the folder of the next one; None: no screen shows them."""


class ModelUse(Struct, eq=False):
    """Pace, cost and log of its model calls; all but the last two are the same for all conversations."""

    governor: Governor
    calibration: Calibration = field(default_factory=Calibration)
    """Real tokens for each estimated one, by model."""
    spending: SpendingCaps | None = None
    """Caps on the cost of a day and of a project; None: there are none."""
    calls: CallLog = field(default_factory=CallLog)
    refused_small: set[str] = field(default_factory=set[str])
    """Small models of the catalogue that their service does not have."""


class Session(Struct, eq=False):
    """One conversation while it is open here."""

    record: ConversationRecord
    """The stored facts; `set_record` alone assigns them."""
    state: State
    """The machine's state, as last committed; `MoveLoop.enter` alone assigns it."""
    ports: Ports
    settings: EngineSettings
    publisher: Publisher
    equipment: Equipment
    model_use: ModelUse
    read_only: str = ""
    """Sentence to show when another process owns the conversation; else empty."""
    moves: MoveContext = field(default_factory=MoveContext)
    run: RunFacts = field(default_factory=RunFacts)
    window: Window = field(default_factory=Window)
    questions: Questions = field(default_factory=Questions)
    grants: Grants = field(default_factory=Grants)
    background: BackgroundWork = field(default_factory=BackgroundWork)
    hooks: HookFacts = field(default_factory=HookFacts)

    @property
    def rewinding(self) -> Rewinding | None:
        """Service that keeps the files of its turns; those of a sub-agent belong to its parent's turn."""
        return self.ports.rewinding if self.record.agent is None else None

    @property
    def asker(self) -> str:
        """Author of its questions: the title, and the parent's title for a sub-agent."""
        title = self.record.title
        if self.equipment.above is None:
            return title
        return (
            f"{title} (sub-agent of {one_line(self.equipment.above.record.title, LONGEST_PARENT) or 'a conversation'})"
        )

    def post(self, build: Callable[[], Event], writes: tuple[Write, ...] = ()) -> None:
        """Put an event of the executor into the inbox, with writes for its move."""
        self.moves.inbox.put(Priority.OUTCOME, InboxEntry(build, writes=writes))

    def set_record(self, record: ConversationRecord) -> None:
        """Assign the stored facts, which no other place does."""
        self.record = record

    def change_record(self, **fields: Any) -> None:
        """Replace fields of the record as it is now: a copy made before a wait would undo changes of others."""
        self.set_record(replace(self.record, **fields))

    def set_view(self, view: ContextView, tokens: int) -> None:
        """Send another view of the messages from now on, with `tokens` in the window, estimated."""
        self.change_record(
            summary=view.summary,
            context_start_seq=view.start_seq,
            omitted=view.omitted,
            earlier_views=view.earlier,
            context_tokens=tokens,
            context_estimated=True,
        )

    def remember(self, messages: tuple[StoredMessage, ...]) -> None:
        """Take new messages: the turn rule needs the newest one (SPEC DEC-25), the run all of them."""
        for message in messages:
            if is_shell(message):
                self.window.shell_run = message.run_id
            elif tells_of_shell(message, self.window.shell_run):
                self.window.last = LastMessage.USER if self.resumable else LastMessage.SHELL
            else:
                self.window.last = classify_message(message, self.window.last)
        self.window.add(messages)

    async def read_history(self, limit: int, last_seq: int | None = None) -> MessageRange:
        """Read the newest `limit` messages up to a seq, ascending."""
        messages = await self.ports.store.messages(self.record.id, last_seq=last_seq, limit=limit)
        calls = await self.ports.store.tool_calls(self.record.id, [message.id for message in messages])
        return MessageRange(tuple(messages), tuple(calls))

    async def read_last(self) -> None:
        """Read the kind of the newest message: the turn rule needs it (SPEC DEC-25)."""
        history = await self.read_history(LAST_MESSAGES)
        self.window.last, self.window.shell_run = LastMessage.NONE, None
        self.remember(history.messages)

    async def rows(self) -> list[StoredMessage]:
        """Rows of a request; kept, so that neither a late step nor the next message waits for a read."""
        kept = self.window
        kept.stop_timer()
        while kept.rows is None:
            count, first = self.record.message_count, max(1, self.record.context_start_seq)
            found = await self.ports.store.messages(self.record.id, first_seq=first)
            if count == self.record.message_count:  # otherwise a row was saved that the read may have missed
                kept.rows = found
        return kept.rows

    @property
    def compact_above(self) -> int:
        """Tokens from which older messages are summarized before the next call (SPEC DEC-12); 0 never, or not yet."""
        percent = self.record.compact_percent or self.settings.compact_percent
        return self.record.context_window * percent // 100 if self.has_grown and percent <= 100 else 0

    @property
    def has_grown(self) -> bool:
        """True when enough messages are new since the last attempt to make the context shorter."""
        return self.record.message_count - self.record.compacted_at >= FEWEST

    @property
    def compact_due(self) -> bool:
        """True when the window is too full for the next message."""
        return 0 < self.compact_above <= self.record.context_tokens

    @property
    def resumable(self) -> bool:
        """True when the last message waits for an answer: "Resume interrupted turn" (SPEC STM-10)."""
        return self.window.last in UNANSWERED

    def context_of(self, usage: Usage, *, counted: bool = True) -> int:
        """Tokens in the window after a reply (SPEC T-CTX).

        A reply that the provider did not count keeps the last value that it counted; the next such reply, or one of a
        provider that never counts, has the estimate.
        """
        record = self.record
        if not counted and record.context_tokens and not record.context_estimated:
            return record.context_tokens
        return usage.context_tokens or record.context_tokens

    def tell_context(self) -> None:
        """Send subscribers the fill level of the window."""
        record, spent = self.record, self.record.spent
        self.publisher.publish(
            ContextChanged(
                record.context_tokens, record.context_window, record.context_estimated, spent.cost_usd, spent.tokens
            )
        )
