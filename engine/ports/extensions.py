"""Interfaces of what extends an agent: tools and prompts from elsewhere, skills, instruction files, and hooks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct, field

from engine.records import ConversationRecord
from engine.run_options import Effort
from tools.contract import UNCONFINED, JsonObject, JsonValue, ProcessRunner, Sandbox, Tool


class ExtensionPrompt(Struct, frozen=True):
    """A text for the static part of the system prompt, bounded and cleaned by its source."""

    name: str
    """Heading."""
    text: str
    origin: str
    """Origin, as `/context` shows it."""
    for_agents: bool = False
    """True when sub-agents are sent it too."""
    tool: str = ""
    """Tool that the text is about: without it the text is left out."""


class ExtensionSource(Protocol):
    """A source that adds tools and prompt texts to conversations."""

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        """Tools of a conversation by name, sorted by it, so that equal sets give equal requests."""
        ...

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        """Texts for its system prompt, in a stable order."""
        ...

    async def prepare(self, record: ConversationRecord) -> None:
        """Get ready for a request of a conversation; waits only within the source's own bound, and never raises."""
        ...

    def close_conversation(self, conversation_id: str) -> None:
        """Let go of what is held for a conversation while it is open in this process."""
        ...


@runtime_checkable
class FolderSource(Protocol):
    """Sources with files of their own that tools may read."""

    def folders(self, record: ConversationRecord) -> Sequence[Path]:
        """Folders that reading tools may use in a conversation, resolved."""
        ...


@runtime_checkable
class ReadListener(Protocol):
    """Sources that offer more once a file of a subfolder was read."""

    def note_read(self, record: ConversationRecord, paths: Sequence[Path]) -> None:
        """Remember resolved paths that a tool has read; reads nothing itself."""
        ...


class InvocableKind(StrEnum):
    """Kind of file."""

    COMMAND = "command"
    """A Markdown file that the user calls as `/name`."""
    SKILL = "skill"
    """A folder with a SKILL.md, which a model may load too."""


class InvocableOrigin(StrEnum):
    """Owner of a file; also the prefix that names it whatever shadows it: `/project:fix`."""

    PROJECT = "project"
    USER = "user"


class Invocable(Struct, frozen=True):
    """One skill or command file, with exactly the content that may be used."""

    name: str
    description: str
    body: str
    """Text below the front matter."""
    kind: InvocableKind
    origin: InvocableOrigin
    path: Path
    """The file."""
    digest: str
    """SHA-256 of all its files together."""
    aliases: tuple[str, ...] = ()
    """Further names that reach it."""
    argument_hint: str = ""
    argument_names: tuple[str, ...] = ()
    """Names of its arguments, in order: `$name` in the body is the one in this place."""
    files: tuple[str, ...] = ()
    """Bundled files of a skill, relative to its folder, sorted."""
    allowed_tools: tuple[str, ...] = ()
    """Rules as the file has them, unchecked."""
    model: str = ""
    effort: Effort = Effort.DEFAULT
    for_models: bool = True
    """False: only the user may call it."""
    for_users: bool = True
    """False: it is no `/name`."""
    forks: bool = False
    """True for a skill that a sub-agent works on."""
    agent: str = ""
    """Profile of that sub-agent."""
    notes: tuple[str, ...] = ()
    """Remarks about the file, as sentences."""

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.path.parent

    @property
    def label(self) -> str:
        """Kind, name and origin: `skill pdf (project)`."""
        return f"{self.kind.value} {self.name} ({self.origin.value})"


class InvocableProblem(Struct, frozen=True):
    """A file that cannot be used; the reason is a sentence, the line counts from 1, 0 for the whole file."""

    path: Path
    kind: InvocableKind
    origin: InvocableOrigin
    line: int
    reason: str


class ShadowedInvocable(Struct, frozen=True):
    """One that another of the same name hides, and the reason as a clause."""

    invocable: Invocable
    reason: str


class WaitingInvocable(Struct, frozen=True):
    """A name of the project that may not be used yet; its file was not read."""

    name: str
    kind: InvocableKind
    path: Path | None = None
    """File of one in a subfolder, which has a question of its own."""


class InvocableCatalogue(Struct, frozen=True):
    """The skills and commands of one folder, as they may be used now; equal files give equal catalogues."""

    skills: tuple[Invocable, ...] = ()
    """Sorted by name, each name once."""
    commands: tuple[Invocable, ...] = ()
    """Sorted by name, each name once."""
    by_call: Mapping[str, Invocable] = field(default_factory=dict[str, Invocable])
    """Skills and commands by what is typed behind the slash, those with a prefix included."""
    shadowed: tuple[ShadowedInvocable, ...] = ()
    problems: tuple[InvocableProblem, ...] = ()
    waiting: tuple[WaitingInvocable, ...] = ()
    """Skills and commands of the project that wait for the user's trust, by name."""
    switched_off: tuple[Invocable, ...] = ()
    """Skills that the user switched off; they are in no other field."""
    used: Mapping[str, float] = field(default_factory=dict[str, float])
    """Unix time of the last use of a skill, by name, when the catalogue was made."""

    def skill(self, name: str) -> Invocable | None:
        """The skill that a model means by a name or an alias."""
        for skill in self.skills:
            if skill.name == name:
                return skill
        return next((skill for skill in self.skills if name in skill.aliases), None)

    def find(self, name: str) -> Invocable | None:
        """The skill or command of `/name`."""
        return self.by_call.get(name)


EMPTY: Final = InvocableCatalogue()


def choose_skills(skills: Sequence[Invocable], names: Collection[str] | None) -> tuple[Invocable, ...]:
    """The skills of these names, each whole or behind a plugin's prefix: `pdf` means `papers:pdf` too. None: all."""
    if names is None:
        return tuple(skills)
    return tuple(one for one in skills if one.name in names or one.name.rpartition(":")[2] in names)


class Invocables(Protocol):
    """The catalogues of the folders that are worked in."""

    @property
    def runner(self) -> ProcessRunner:
        """Runner of the shell lines of bodies."""
        ...

    @property
    def attended(self) -> bool:
        """False where no person can answer a question."""
        ...

    def catalogue(self, folder: Path) -> InvocableCatalogue:
        """The newest catalogue of a folder, from memory."""
        ...

    async def refresh(self, record: ConversationRecord) -> InvocableCatalogue:
        """Look at the files again, in a thread and within a bound; the last catalogue where that takes longer."""
        ...

    def note_use(self, skill: Invocable) -> None:
        """Remember that a skill was used."""
        ...


class PromptFileKind(StrEnum):
    """Use of a file in the prompt; the value names it there."""

    BOOTSTRAP = "BOOTSTRAP.md"
    SOUL = "SOUL.md"
    IDENTITY = "IDENTITY.md"
    USER = "USER.md"
    TOOLS = "TOOLS.md"
    INSTRUCTIONS = "AGENTS.md"


class FileOwner(StrEnum):
    """Owner of a file; the value is the word of hooks."""

    USER = "User"
    PROJECT = "Project"
    LOCAL = "Local"
    """The user's own in a project, which its repository does not have."""


class PromptFile(Struct, frozen=True):
    """Text of one file, already within its budget."""

    kind: PromptFileKind
    path: Path
    text: str
    imported_by: Path | None = None
    """The file that names it as `@path`."""
    owner: FileOwner = FileOwner.PROJECT
    scope: tuple[str, ...] = ()
    """Globs of the files that it is for; empty: those of its folder, or all."""


class InstructionFiles(Protocol):
    """Reader of the files of the user and of trusted folders; nothing of an untrusted folder is read."""

    def of(self, folder: Path, window: int = 0) -> tuple[PromptFile, ...]:
        """Files for the system prompt of a conversation in `folder`; `window`: tokens of its model, 0 while unknown."""
        ...

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """Instruction files of the folders between `folder` and a file or folder below it, the outer ones first, then
        those that name the file by a glob.
        """
        ...


class NoInstructions(Struct, frozen=True):
    """No such files."""

    def of(self, folder: Path, window: int = 0) -> tuple[PromptFile, ...]:
        """None."""
        del folder, window
        return ()

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        """None."""
        del folder, path
        return ()


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
