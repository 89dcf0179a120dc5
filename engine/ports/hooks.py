"""Hooks: programs of the user or a project, or callbacks of a host, that are asked when something happens."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct, field

from engine.records import ConversationRecord
from tools.contract import UNCONFINED, JsonObject, JsonValue, Sandbox


class HookEvent(StrEnum):
    """Occasion of a hook, by the name that hook files use."""

    SESSION_START = "SessionStart"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    PRE_TOOL_USE = "PreToolUse"
    PERMISSION_REQUEST = "PermissionRequest"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    POST_TOOL_BATCH = "PostToolBatch"
    STOP = "Stop"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    NOTIFICATION = "Notification"
    INSTRUCTIONS_LOADED = "InstructionsLoaded"
    SESSION_END = "SessionEnd"


class HookPermission(StrEnum):
    """Decision of a hook about a call, the strongest first."""

    DENY = "deny"
    DEFER = "defer"
    ASK = "ask"
    ALLOW = "allow"


class HookOutcome(StrEnum):
    """End of one run of a hook."""

    SUCCESS = "success"
    BLOCKED = "blocked"
    FAILED = "error"
    """Failure without an opinion: the action goes on."""
    TIMED_OUT = "timeout"
    """No opinion: too late, not started, or its files are not those that were trusted."""


class HookVerdict(Struct, frozen=True):
    """Opinion of one hook, as far as it gave one."""

    blocks: bool = False
    reason: str = ""
    """Reason of a block or a permission, for the model or the user."""
    permission: HookPermission | None = None
    updated_input: JsonObject | None = None
    """Input that replaces the whole input of the call, under foreign names and fields."""
    context: str = ""
    """Text for the model."""
    updated_output: JsonValue = None
    """Result in place of the tool's own; None: it stays."""
    stops: bool = False
    """The run ends; `stop_reason` is for the user."""
    stop_reason: str = ""
    message: str = ""
    """Text for the user alone."""
    is_quiet: bool = False
    """True when its output is not shown."""
    title: str = ""
    """Title for the conversation."""
    warning: str = ""
    """Sentence about an output that could not be used."""


NO_VERDICT: Final = HookVerdict()


class HookReply(Struct, frozen=True):
    """One hook that ran."""

    event: HookEvent
    name: str
    """Short name, such as that of its script."""
    command: str
    """The whole command; for a callback, its name."""
    outcome: HookOutcome
    verdict: HookVerdict = NO_VERDICT
    seconds: float = 0.0
    exit_code: int | None = None
    stdin: str = ""
    stdout: str = ""
    stderr: str = ""
    """Beginnings of its input and output."""
    is_users: bool = True
    """False for a hook of the project: it cannot let a call leave the sandbox."""
    goes_on: bool = False
    """True where a hook without an opinion does not hold a call up (`on_failure` is `continue`)."""
    id: str = ""


class RuleTest(Protocol):
    """Tells if a permission rule is about the call of a hook."""

    def matches(self, rule: str) -> bool:
        """True if it is."""
        ...


class HookObserver(Protocol):
    """Follows hooks while they run."""

    def hook_started(self, hook_id: str, event: HookEvent, name: str, status: str = "") -> None:
        """One has begun; `status` is the text that its file has it shown with."""
        ...

    def hook_ended(self, hook_id: str, reply: HookReply | None) -> None:
        """One has ended; None where it was stopped."""
        ...


class HookRequest(Struct, frozen=True):
    """An occasion that hooks are asked about."""

    event: HookEvent
    record: ConversationRecord
    subjects: tuple[str, ...] = ()
    """Names that matchers are held against: those of a tool, a source, a trigger, a type."""
    fields: JsonObject = field(default_factory=dict[str, JsonValue])
    """Fields of this event in the input of a hook."""
    prompt_id: str = ""
    """Id of the run."""
    sandbox: Sandbox = UNCONFINED
    """Limits of the project's hooks."""
    rules: RuleTest | None = None
    """None: there is no call, so conditions on one do not hold."""
    seconds: float | None = None
    """Seconds for all hooks together; None: each has its own limit."""


class HookRunner(Protocol):
    """A source of hooks: files, or a host."""

    def wants(self, record: ConversationRecord, event: HookEvent) -> bool:
        """True where there may be hooks for an event; one look-up in memory."""
        ...

    async def prepare(self, record: ConversationRecord) -> None:
        """Get up to date before a message is sent; never raises."""
        ...

    async def run(self, request: HookRequest, observer: HookObserver) -> Sequence[HookReply]:
        """Run all that match, at the same time; replies in the order of their files. Cancelled, all are dead before
        this returns; never raises otherwise.
        """
        ...

    def stop(self, conversation_id: str) -> None:
        """Stop hooks of a conversation that nothing waits for."""
        ...

    async def close(self, conversation_id: str) -> None:
        """Stop them, and wait until they are gone: the conversation closes."""
        ...
