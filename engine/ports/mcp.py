"""Servers of the Model Context Protocol: their definitions, and what front ends see and do with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from engine.records import ConversationRecord
from tools.call_values import SandboxMode
from tools.contract import Enforcement, ToolOutput
from tools.known_secrets import SecretFields
from tools.mcp_host.protocol import OAuth


class PromptField(Struct, frozen=True):
    """An argument of a prompt; both texts are cleaned lines."""

    name: str
    description: str = ""
    required: bool = False


class ServerPrompt(Struct, frozen=True):
    """A prompt of a server; texts are cleaned lines, `prompt` is the exact name there."""

    command: str
    """Name behind the slash: `mcp__SERVER__PROMPT`."""
    server: str
    prompt: str
    description: str = ""
    fields: tuple[PromptField, ...] = ()

    @property
    def hint(self) -> str:
        """Arguments to type, in order; optional ones in brackets."""
        return " ".join(one.name.upper() if one.required else f"[{one.name.upper()}]" for one in self.fields)


class ServerResource(Struct, frozen=True):
    """A resource of a server, or a template of addresses, whose `{parts}` the user fills in."""

    uri: str
    name: str = ""
    description: str = ""
    is_template: bool = False


class ServerTextError(Exception):
    """A text that a server does not give; the message is a sentence for the user."""


class ServerTexts(Protocol):
    """Prompts and resources of the servers of conversations."""

    def prompts(self, record: ConversationRecord) -> Sequence[ServerPrompt]:
        """Prompts of a conversation as they are known, sorted; the same object while nothing has changed."""
        ...

    async def look(self, record: ConversationRecord) -> None:
        """Look at the definitions, and begin to connect to servers that were never connected."""
        ...

    async def prompt(self, record: ConversationRecord, command: str) -> ServerPrompt | None:
        """The prompt that a command calls, connecting where it is not known; None where there is none.

        Raises:
            ServerTextError: its server cannot be reached.
        """
        ...

    async def render(self, record: ConversationRecord, prompt: ServerPrompt, values: Mapping[str, str]) -> ToolOutput:
        """The text of a prompt with its arguments.

        Raises:
            ServerTextError: the server does not give it.
        """
        ...

    async def values(
        self, record: ConversationRecord, prompt: ServerPrompt, field: str, value: str, others: Mapping[str, str]
    ) -> Sequence[str]:
        """Values that complete `value`, as a connected server knows them; none within its bound otherwise."""
        ...

    def names(self, record: ConversationRecord) -> Sequence[str]:
        """Names of the servers of a conversation at the last look."""
        ...

    def resource_servers(self, record: ConversationRecord) -> Sequence[str]:
        """Names of the servers that have resources, as far as that is known."""
        ...

    async def resources(self, record: ConversationRecord, server: str) -> Sequence[ServerResource]:
        """Resources and templates of a server.

        Raises:
            ServerTextError: it does not list them.
        """
        ...

    async def read(self, record: ConversationRecord, server: str, uri: str) -> ToolOutput:
        """The content of a resource.

        Raises:
            ServerTextError: the server does not give it.
        """
        ...


ServerTransport: TypeAlias = Literal["stdio", "http", "sse"]


class ServerOrigin(StrEnum):
    """Author of a definition; what a project defines gets no secrets of the user."""

    FLAG = "flag"
    PROJECT = "project"
    USER = "user"


class SandboxReason(StrEnum):
    """Reason of the sandbox that a server runs in, or of none."""

    CONVERSATION = "as conversations here"
    DEFINITION = "by its definition"
    CHOICE = "by your choice"
    SYSTEM = "since this system can enforce none"
    FILES_ONLY = "weakened: this system guards files alone"


class ServerDefinition(SecretFields, Struct, frozen=True, kw_only=True):
    """One server, its variables filled in."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset({
        "command",
        "url",
        "headers",
        "environment",
        "oauth",
        "headers_helper",
    })

    name: str
    origin: ServerOrigin
    source: str
    """File, as shown; empty for a definition on the command line."""
    transport: ServerTransport = "stdio"
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str = ""
    """Folder it runs in; empty: the root of the project."""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    headers_helper: tuple[str, ...] = ()
    """Program that prints further headers as a JSON object; empty without one."""
    oauth: OAuth | None = None
    """Settings for signing in; None: the usual ones."""
    era: str = "auto"
    """Era of the protocol: `auto` (the newest), `legacy` (the handshake, in which it may ask), or a newer version."""
    timeout_ms: int = 0
    """Time limit of a call, total and idle; 0: the usual ones."""
    is_enabled: bool = True
    is_required: bool = False
    """True: a run without a screen fails when it cannot connect."""
    sandbox: SandboxMode | None = None
    """Sandbox of its own; None: that of the conversation."""
    has_chosen_sandbox: bool = False
    """True where the sandbox is the user's choice in place of that of the definition."""
    samples: bool = False
    """True: it may ask for answers of a model, each after a yes of the user."""
    trusts_hints: bool = False
    """True: a tool that says it only reads runs as one that reads; never of a project, whose word it would be."""
    tools: tuple[str, ...] = ()
    """Patterns of its tools that are offered, `!` in front leaves out; empty: all."""
    always_load: bool = False
    shown: str = ""
    """Command or address as it is written, variables not filled in."""
    digest: str = ""
    """SHA-256 of the definition as it is written, with its place."""
    identity: str = ""
    """SHA-256 of the definition with its variables filled in."""
    trouble: str = ""
    """Reason why it cannot be used, as a sentence; empty where it can."""
    secrets: tuple[str, ...] = ()
    """Secret variables that it names and may not have yet: a definition of a project needs a yes for them."""
    is_off: bool = False
    """True where the user switched it off for good."""


class FolderServers(Struct, frozen=True):
    """Servers of one folder, sorted by name."""

    root: Path
    servers: tuple[ServerDefinition, ...] = ()
    notices: tuple[str, ...] = ()
    """Sentences about files and entries that are left out."""
    trusted: bool = False
    """True where the user trusts the folder: their own servers start in it, too."""


class ServerDefinitions(Protocol):
    """Definitions of the servers of a folder."""

    def is_quick(self, folder: Path) -> bool:
        """True where the next look reads no file, so that it may be made on the event loop."""
        ...

    def look(self, folder: Path) -> FolderServers:
        """Read the files as they are now; belongs in a thread. Never raises."""
        ...

    def switch(self, folder: Path, name: str, *, on: bool) -> None:
        """Switch a server off for good, or on again; belongs in a thread. Raises Unchosen."""
        ...

    def choose_sandbox(self, folder: Path, name: str, mode: SandboxMode | None) -> None:
        """Run a server in another sandbox than its definition says, None: in that; as `switch`. Raises Unchosen."""
        ...

    def allow_secrets(self, folder: Path, name: str) -> None:
        """Let a project's server have the secrets that it names; belongs in a thread. Raises Unchosen."""
        ...


def confinement(
    definition: ServerDefinition, conversation: SandboxMode, enforcement: Enforcement
) -> tuple[SandboxMode, SandboxReason]:
    """The sandbox in which the program of a server runs, and why."""
    mode, reason = conversation, SandboxReason.CONVERSATION
    if definition.sandbox is not None:
        mode = definition.sandbox
        reason = SandboxReason.CHOICE if definition.has_chosen_sandbox else SandboxReason.DEFINITION
    if mode is SandboxMode.OFF or enforcement is Enforcement.FULL:
        return mode, reason
    if enforcement is Enforcement.NONE:
        return SandboxMode.OFF, SandboxReason.SYSTEM
    return mode, SandboxReason.FILES_ONLY


class Unchosen(Exception):
    """A choice about a server that cannot be kept; the message is a sentence for the user."""


class ServerState(StrEnum):
    """State of a server as the user sees it."""

    CONNECTED = "connected"
    CONNECTING = "connecting"
    WAITING = "not started"
    """Not used so far."""
    NEEDS_AUTH = "needs sign-in"
    FAILED = "failed"
    OFF = "off"


class ServerView(Struct, frozen=True):
    """One server of a conversation, for a list and its details."""

    name: str
    state: ServerState
    text: str = ""
    """Cause of the state."""
    source: str = ""
    origin: ServerOrigin = ServerOrigin.USER
    transport: str = "stdio"
    shown: str = ""
    """Command or address as it is written."""
    tools: tuple[str, ...] = ()
    """Names of the tools that are offered, as the model calls them."""
    left_out: tuple[str, ...] = ()
    """Tools that are not offered, each with the reason."""
    prompts: tuple[str, ...] = ()
    """Prompts as they are typed."""
    instructions: str = ""
    tokens: int = 0
    """Tokens of its schemas and instructions in a request, estimated; tools that are named only cost none."""
    deferred: int = 0
    """Tools that are named only."""
    pid: int = 0
    last_ms: int = -1
    """Milliseconds of its last call; -1: none yet."""
    log: tuple[str, ...] = ()
    """Newest lines of its log."""
    is_required: bool = False
    samples: bool = False
    """True where it may ask for answers of a model."""
    is_on: bool = True
    """False where it is switched off in this conversation."""
    secrets: tuple[str, ...] = ()
    """Secret variables that it waits for a yes to have."""
    is_off: bool = False
    """True where it is off for good."""
    sandbox: SandboxMode | None = None
    """Sandbox that it runs in; None for a server over HTTP, and for one that is not used."""
    sandbox_reason: SandboxReason = SandboxReason.CONVERSATION
    has_network: bool = True
    """False where its program has none."""
    kept: Path | None = None
    """Folder of what it has written below the home folder in a sandbox; None without one."""
    folder: str = ""
    """Folder in which its program starts; empty where it has none."""


class SignInAddress(Struct, frozen=True):
    """Address at which the user signs in to a server; it is what it looks like."""

    url: str
    host: str
    """Host of the authorization server, with its port."""
    callback: str = ""
    """Address on this machine to which the browser comes back."""


class SignIns(Protocol):
    """Signing in to servers over HTTP."""

    async def begin(self, record: ConversationRecord, name: str) -> SignInAddress | str:
        """Begin a sign-in, or give a sentence why there is none; `views` shows when it has succeeded."""
        ...

    async def paste(self, record: ConversationRecord, name: str, url: str) -> str:
        """Take the address that the browser was sent to; a sentence where it is not the right one."""
        ...

    async def forget(self, record: ConversationRecord, name: str) -> str:
        """Delete the tokens of a server and end its connection; a sentence where there are none to delete."""
        ...


class LastingChoices(Protocol):
    """Choices of the user about servers that last."""

    async def switch(self, record: ConversationRecord, name: str, *, on: bool) -> None:
        """Switch a server off for good, or on again. Raises Unchosen."""
        ...

    async def choose_sandbox(self, record: ConversationRecord, name: str, mode: SandboxMode | None) -> None:
        """Run a server in another sandbox than its definition says, None: in that. Raises Unchosen."""
        ...

    async def allow_secrets(self, record: ConversationRecord, name: str) -> None:
        """Let a project's server have the secrets that it names. Raises Unchosen."""
        ...
