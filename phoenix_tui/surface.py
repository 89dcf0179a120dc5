"""What the screens need from outside, as Protocols and the values that cross them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from engine.executor.requests import ConversationOptions, RunCaps
from engine.records import PermissionMode
from tools.contract import Enforcement, SandboxMode

if TYPE_CHECKING:
    from engine.executor.composing import History
    from engine.executor.requests import Activity, ApprovalAnswer, Receipt
    from engine.machine.states import State
    from engine.ports import ConversationChanges, ModelInfo
    from engine.ports.database_waits import DatabaseWaits
    from engine.records import (
        Attachment,
        ConversationQuery,
        ConversationRecord,
        ConversationSummary,
        Recovery,
        StoredMessage,
    )
    from engine.updates import Question, Update
    from phoenix_tui.agents_surface import AgentsSurface
    from phoenix_tui.context_surface import ContextSurface
    from phoenix_tui.jobs_surface import JobsSurface
    from phoenix_tui.library_surface import LibrarySurface
    from phoenix_tui.onboarding_surface import Onboarding
    from phoenix_tui.profile_surface import ProfilesSurface
    from phoenix_tui.queue_surface import QueueSurface
    from phoenix_tui.rewind_surface import RewindSurface
    from phoenix_tui.routing_surface import RoutingSurface
    from phoenix_tui.rules_surface import RulesSurface
    from phoenix_tui.settings_surface import SettingsSurface
    from tools.contract import ProcessRunner

Unsubscribe = Callable[[], None]
NEWEST: Final = 1 << 40
"""A seq above all others: what comes before it are the newest messages."""


class CannotOpen(Exception):
    """The services cannot be opened; the message is one sentence for the user."""


class SideSurface(Protocol):
    """Questions beside a conversation."""

    async def ask(self, question: str) -> str:
        """What its model answers, also while it works. Raises ProviderError, StorageError."""
        ...

    async def suggestion(self) -> str:
        """What the user may well say next; empty: nothing in particular. Raises ProviderError, StorageError."""
        ...


class ConversationParts(Protocol):
    """How one open conversation stands, and the desks that do more with it."""

    @property
    def id(self) -> str:
        """Its identifier."""
        ...

    @property
    def record(self) -> ConversationRecord:
        """Title, folder, model, mode and totals."""
        ...

    @property
    def state(self) -> State:
        """What it does now."""
        ...

    @property
    def read_only(self) -> str:
        """Not empty when another process owns it: the sentence to show."""
        ...

    @property
    def question(self) -> Question | None:
        """The open question, if there is one."""
        ...

    @property
    def queue(self) -> QueueSurface:
        """Messages that wait until it rests."""
        ...

    @property
    def context(self) -> ContextSurface:
        """What fills its window."""
        ...

    @property
    def jobs(self) -> JobsSurface:
        """Its background commands."""
        ...

    @property
    def side(self) -> SideSurface:
        """Questions beside it."""
        ...

    @property
    def routing(self) -> RoutingSurface:
        """Who answers, while that can be overruled."""
        ...


class ConversationSurface(ConversationParts, Protocol):
    """One open conversation, as the screens use it (ARCHITECTURE.md section 4)."""

    async def subscribe(self, listener: Callable[[Update], None]) -> Unsubscribe:
        """Tell `listener` how things stand, then everything that happens."""
        ...

    async def say(self, text: str, image_ids: Sequence[str] = (), caps: RunCaps | None = None) -> Receipt:
        """Send a message."""
        ...

    async def attach(self, data: bytes) -> Attachment:
        """Store an image. Raises ImageRejected."""
        ...

    def cancel(self) -> None:
        """Stop the run; returns at once."""
        ...

    async def interrupt_and_say(self, text: str, image_ids: Sequence[str] = (), caps: RunCaps | None = None) -> Receipt:
        """Stop the run, then send a message."""
        ...

    async def answer(self, call_id: str, answer: ApprovalAnswer) -> Receipt:
        """Answer the open question."""
        ...

    async def retry(self, caps: RunCaps | None = None) -> Receipt:
        """Resume an interrupted turn, or try again after an error."""
        ...

    async def shell(self, command: str, send_to_model: bool) -> Receipt:
        """Run the user's own command in the conversation's folder."""
        ...

    async def change(self, changes: ConversationChanges) -> None:
        """Change draft, title, model or mode."""
        ...

    async def history(self, before_seq: int, limit: int) -> History:
        """Older messages with their tool calls."""
        ...

    def warm(self) -> None:
        """Open the model's connection ahead of the first request."""
        ...


class ShelfSurface(Protocol):
    """What is done to conversations without opening them (`engine.conversation_bulk`)."""

    async def change(self, ids: Iterable[str], changes: ConversationChanges) -> Sequence[str]:
        """Change many; gives those that another process has."""
        ...

    async def newest(self, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        """The newest messages, ascending."""
        ...

    async def purge(self, ids: Iterable[str]) -> Sequence[str]:
        """Remove for good; gives those that another process has."""
        ...


class EngineSurface(Protocol):
    """All conversations, as the screens use them (ARCHITECTURE.md section 4)."""

    @property
    def rules(self) -> RulesSurface:
        """What may run without asking."""
        ...

    @property
    def waits(self) -> DatabaseWaits:
        """Waits for a database that another program keeps busy."""
        ...

    @property
    def sub_agents(self) -> AgentsSurface | None:
        """Sub-agents; None where there is nothing to keep them in."""
        ...

    @property
    def bulk(self) -> ShelfSurface:
        """Many conversations at once, a look inside, the trash."""
        ...

    async def create(self, options: ConversationOptions) -> ConversationSurface:
        """Create a conversation. Raises EngineError."""
        ...

    async def open(self, conversation_id: str) -> ConversationSurface:
        """Open a conversation; read-only when another process owns it. Raises EngineError."""
        ...

    async def list(self, query: ConversationQuery | None = None) -> Sequence[ConversationSummary]:
        """The list, newest first."""
        ...

    async def attachments(self, ids: Sequence[str]) -> Sequence[Attachment]:
        """Stored images by id; those that are gone are left out."""
        ...

    async def find(self, reference: str, *, partly: bool = False) -> Sequence[ConversationSummary]:
        """Those with this id, id prefix or title."""
        ...

    async def fork(self, conversation_id: str, up_to_seq: int | None = None) -> ConversationSurface:
        """Continue in a copy. Raises EngineError."""
        ...

    async def change(self, conversation_id: str, changes: ConversationChanges) -> None:
        """Change a conversation that need not be open. Raises EngineError."""
        ...

    def watch(self, watcher: Callable[[Activity], None]) -> Unsubscribe:
        """Tell `watcher` of list-level changes of every live conversation."""
        ...

    def live(self) -> Sequence[ConversationSurface]:
        """Those held open by this process."""
        ...

    async def forget(self, conversation_id: str) -> None:
        """Close one conversation; what runs in it is stopped."""
        ...

    async def stop_all(self) -> None:
        """Stop every run."""
        ...

    async def close(self) -> None:
        """Stop everything and close the store."""
        ...


async def fully_enforced() -> Enforcement:
    """Say that every sandbox holds."""
    return Enforcement.FULL


class Services(Struct, frozen=True):
    """Everything behind the screens, opened after the first frame."""

    engine: EngineSurface
    library: LibrarySurface
    onboarding: Onboarding
    runner: ProcessRunner
    models: Callable[[], Awaitable[Sequence[ModelInfo]]]
    """The models on offer now."""
    doctor: Callable[[], Awaitable[str]]
    """What works on this machine and what does not, as text."""
    settings: SettingsSurface
    profiles: ProfilesSurface
    rewinding: RewindSurface | None = None
    recoveries: Sequence[Recovery] = ()
    """What boot recovery found."""
    warning: str = ""
    """What the user must know from the start: nothing is kept, a fallback is in use."""
    kept: bool = True
    """Whether what is said outlasts this session."""
    enforcement: Callable[[], Awaitable[Enforcement]] = fully_enforced
    """How far this system can enforce a sandbox; the first call starts a program."""


class Launch(Struct, frozen=True):
    """What the command line asked for."""

    cwd: Path
    state_folder: Path
    """Where the prompt history lives."""
    config_file: Path
    keymap_file: Path
    model: str = "demo/guide"
    permission_mode: PermissionMode = PermissionMode.ASK
    title: str = ""
    profile: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""
    supervisor: bool = False
    """Whether a supervisor decides who answers in new conversations."""
    sandbox: SandboxMode = SandboxMode.WORKSPACE
    sandbox_required: bool = False
    """True where the sandbox of new conversations was chosen; False for the default."""
    conversation_id: str = ""
    """Open this one instead of a new one."""
    reopened: bool = False
    """That one stood on the screen when Phoenix crashed; where it is gone, a new one will do."""
    pick: bool = False
    """Start with the list of conversations to resume."""
    prompt: str = ""
    """Sent as the first message."""
    images: tuple[Path, ...] = ()
    caps: RunCaps = field(default_factory=RunCaps)
    """Limits of runs in conversations without a profile; `caps.caps_for` knows those of the others."""
    image_display: str = "auto"
    """How images are shown: auto, kitty, sixel, blocks or off."""
    theme: str = ""
    """Empty: by the terminal's background."""
    light_terminal: bool = False
    """What the terminal said of its background last time."""
    themes_folder: Path | None = None
    """Where the user's own themes are."""
    notifications: str = "auto"
    terminal_title: bool = True
    mouse: bool = True
    vim: bool = False
    """Whether the composer has vim's keys."""
    suggestions: bool = False
    """Whether a model proposes the next message."""
    plain: bool = False
    """ASCII glyphs, for screen readers and terminals without UTF-8."""

    def options(self, model: str, mode: PermissionMode, sandbox: SandboxMode | None = None) -> ConversationOptions:
        """What a conversation begun now is made with; `sandbox` where one was chosen for it."""
        return ConversationOptions(
            cwd=self.cwd,
            model=model,
            title=self.title,
            permission_mode=mode,
            profile=self.profile,
            system_prompt=self.system_prompt,
            append_system_prompt=self.append_system_prompt,
            supervisor=self.supervisor,
            sandbox=sandbox or self.sandbox,
            sandbox_required=self.sandbox_required or sandbox is not None,
        )
