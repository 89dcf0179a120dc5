"""The terms that a tool and its caller share: values and Protocols, no package but msgspec."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, field
from msgspec.structs import force_setattr

from tools.call_values import AgentEnd as AgentEnd
from tools.call_values import SandboxMode as SandboxMode
from tools.clean import reveal_line
from tools.displays import AgentsDisplay as AgentsDisplay
from tools.displays import AskedQuestion, TodoItem
from tools.displays import DiffDisplay as DiffDisplay
from tools.displays import Display as Display
from tools.displays import HostUse as HostUse
from tools.displays import ImageDisplay as ImageDisplay
from tools.displays import PlainDisplay as PlainDisplay
from tools.displays import TerminalDisplay as TerminalDisplay
from tools.images.contract import ImageReader as ImageReader
from tools.images.contract import ImageRejected as ImageRejected
from tools.images.contract import PreparedImage as PreparedImage
from tools.terminal.values import ShellTerminal, TerminalFacts, TerminalRows
from tools.web.contract import WebModel

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"


class ToolClass(StrEnum):
    """Class of a tool: what it may do (CONTRACT 6)."""

    READ = "read"
    EDIT = "edit"
    RUN = "run"
    SPAWN = "spawn"
    NET = "net"
    """Reads from the web: what it asks for can carry data out."""


class Access(StrEnum):
    """Access a call needs beyond its sandbox."""

    CONFINED = "confined"
    """No access beyond the sandbox: reads, and writes only where the sandbox permits."""
    NETWORK = "network"
    """The network, with the file system confined as before."""
    OUTSIDE = "outside"
    """Access without a sandbox: other folders, daemons, keys."""


ACCESS_RANK: Final = {access: rank for rank, access in enumerate(Access)}
"""Order of the access levels; each includes the ones before it."""


class PathOrder(StrEnum):
    """Use of folders of `PATH` that agents or a repository can write (`tools/process/programs.py`)."""

    LEFT_OUT = "left out"
    """Used for what Phoenix starts by itself: the user's hooks and servers, the desktop."""
    LAST = "last"
    """Used for a command that leaves the sandbox of its conversation: programs of the system come first."""
    AS_GIVEN = "as given"
    """Used for commands in a sandbox, and those of a conversation without one, which run as in the user's own shell."""


class Sandbox(Struct, frozen=True):
    """Limits of one call; the same value holds for commands and for file tools."""

    mode: SandboxMode = SandboxMode.OFF
    network: bool = True
    required: bool = True
    """False: where the system can enforce none, run without one. True: refuse to run."""
    path: PathOrder | None = None
    """Order of `PATH`; None: as given in a sandbox, and left out without one."""
    unreadable: tuple[Path, ...] = ()
    """Files that rules deny to read, beside keys."""
    unseen: bool = False
    """True for a program without a sandbox that the user let start whatever earlier commands may have left, or that
    has no business in any workspace.
    """
    hosts: tuple[str, ...] | None = None
    """Hosts of this very yes where `network` is False, beside those that settings and rules allow; None: no host."""


class Enforcement(StrEnum):
    """Part of a `Sandbox` that the system can enforce: all, only where files are written, or nothing."""

    FULL = "full"
    FILES = "files"
    NONE = "none"


UNCONFINED = Sandbox()
LEAVING = Sandbox(path=PathOrder.LAST)
"""Limits of a command that leaves the sandbox of its conversation."""
AS_IN_A_SHELL = Sandbox(path=PathOrder.AS_GIVEN)
"""Limits of a command in a conversation without a sandbox."""
HELPER_SANDBOX = Sandbox(SandboxMode.READ_ONLY, network=False, required=False)
"""Limits of programs that Phoenix starts for itself in a folder it does not trust: git, ripgrep, the image decoder."""


class ToolSpec(Struct, frozen=True):
    """Description of a tool for a model."""

    name: str
    description: str
    input_schema: JsonObject
    tool_class: ToolClass


class ToolInputError(ValueError):
    """Raised for invalid arguments; the message is written for the model."""


class StartedAgent(Struct, frozen=True):
    """A sub-agent that a call started."""

    id: str
    task: str


class SelfStarting(Struct, frozen=True):
    """A file that starts by itself (`tools.files.self_starting`), as a command created, changed or removed it."""

    path: str
    """Relative to the working directory."""
    kind: str
    """`created`, `changed` or `removed`."""
    hashes: tuple[str, ...] = ()
    """Names that git would give its content; empty where it is gone, a link or too large."""
    restorable: bool = True
    """False where its content from before is not known."""
    mark: str = ""
    """Names the content that it was reported with; an answer is about no other."""


class ToolOutput(Struct, frozen=True):
    """Result of a finished tool: `text` and `images` go to the model, `display` to the screen."""

    text: str
    is_error: bool = False
    display: Display | None = None
    images: tuple[PreparedImage, ...] = ()
    truncated: bool = False
    agents: tuple[StartedAgent, ...] = ()
    """Sub-agents started by the call; if there are any, the result is their outcome once all have ended, and not this
    text.
    """
    task: JsonObject | None = None
    """Task for a sub-agent, as an item of spawn_agents: its outcome is the result."""
    todos: tuple[TodoItem, ...] | None = None
    """The todo list from now on, to be stored with this result; None: it stays as it is."""
    self_starting: tuple[SelfStarting, ...] = ()
    """Self-starting files that the call changed, and which the user has not seen."""
    folder: str | None = None
    """Folder of the user's next shell line; empty: the conversation's, None: it stays as it is."""


class ProgramFact(Struct, frozen=True):
    """A program that a command line names, as it would be found for a run outside of a sandbox."""

    name: str
    path: str
    """Absolute path."""
    stamp: str
    """Real path, device, inode, size and change time: another program, or another content, has another stamp."""
    is_agents: bool = False
    """True where agents or a repository can write the file, or the interpreter that it names."""
    other: str = ""
    """A program of this name on the other side: the one of the working directory that was passed over, or the one
    outside that is shadowed.
    """


class ToolRequest(Struct, frozen=True):
    """Description of a call before it runs."""

    summary: str
    """One line for the tool row: the command itself, the path, the pattern; revealed, whatever it was made of."""
    paths: tuple[Path, ...] = ()
    """Every file or folder it names, resolved through symbolic links."""
    preview: Display | None = None
    """The whole command or the whole diff, for an approval."""
    command: str = ""
    """Exact text for a shell: permission rules match it, never the cleaned summary."""
    access: Access = Access.CONFINED
    """Access it needs beyond the sandbox, as declared by the model or known of the program."""
    access_reason: str = ""
    """Reason for `access`, as one clause for the question."""
    known_access: Access = Access.CONFINED
    """The part of `access` that is known of the program, whatever the model declares."""
    why: str = ""
    """The model's own words for it, one cleaned line."""
    hosts: tuple[str, ...] = ()
    """Hosts that it would reach, as `host` or `host:port`, where they are known before."""
    any_host: bool = False
    """True where the network by host is not enough: a program that cannot use a proxy, or a host of this machine."""
    trouble: str = ""
    """Reason why the call cannot run; the text may quote files, so only a call with read access receives it."""
    mode: str = ""
    """Most permissive mode that profiles give the sub-agents of the call; empty when none sets one."""
    reads_only: bool = False
    """True where every sub-agent of the call only reads."""
    host: str = ""
    """Host that a web tool asks, as its URL names it; rules such as `web_fetch(domain:example.com)` match it."""
    server: str = ""
    """Mark of the definition of an MCP server, without which a kept rule would hold for another program."""
    url: str = ""
    """Address that a web tool asks."""
    is_new_url: bool = False
    """True where neither the user nor an earlier page named `url`: it could carry data out, so every mode asks."""
    asks_always: str = ""
    """Reason why each call asks, as one clause, whatever rules and modes that allow say; empty: it need not."""
    plan: str = ""
    """A plan that the call hands to the user, as Markdown: in plan mode it asks, whatever its class."""
    questions: tuple[AskedQuestion, ...] = ()
    """Questions that the call asks the user: their answers are its result, whatever its class and the mode."""
    lines: tuple[str, ...] = ()
    """Shell lines that the call runs, each of which is decided about like a call of bash."""
    preapproves: tuple[str, ...] = ()
    """Rules that count for the rest of the run, once the user has agreed to them."""
    forks: bool = False
    """True where the result is a task for a sub-agent, which is decided about like a call of spawn_agents."""
    loads: str = ""
    """First line of the text that the call loads; a conversation that has it needs no second one."""
    programs: tuple[ProgramFact, ...] = ()
    """Programs of a command that may run outside of a sandbox: a yes is for these files."""

    def __post_init__(self) -> None:
        """Reveal the summary here, so that no row, question, job, log or list can show another one than runs."""
        force_setattr(self, "summary", reveal_line(self.summary))

    @property
    def changes_nothing(self) -> bool:
        """True for an edit whose file has its content already; if the file changes before it runs, it is refused."""
        change = self.preview
        return isinstance(change, DiffDisplay) and not (change.created or change.added or change.removed or change.diff)


class OutputChunk(Struct, frozen=True):
    """Further output, as cleaned text."""

    text: str


class ProcessStarted(Struct, frozen=True):
    """The command is alive; `started` is its start time in clock ticks since boot."""

    pid: int
    started: int


class ProcessesEnded(Struct, frozen=True):
    """A stopped command took these with it; `survivors` are pids not yet dead."""

    count: int
    survivors: tuple[int, ...] = ()
    named: tuple[str, ...] = ()
    """The first of them in words: name, pid and ports."""


class HostVerdict(Struct, frozen=True):
    """The decision about a host that a command wants to reach."""

    allowed: bool
    why: str = ""
    """Reason of a no, as the program reads it."""


HostGate: TypeAlias = Callable[[str, int], Awaitable[HostVerdict]]
"""Decides about a host and a port while the command waits."""


class Captured(Struct, frozen=True):
    """The first and last part of an output, and how many bytes lay between."""

    head: bytes
    tail: bytes = b""
    dropped: int = 0
    spill: Path | None = None
    notes: tuple[str, ...] = ()
    """Sentences of Phoenix on what the command left behind."""
    refused: str = ""
    """Clauses on what the sandbox refused to a program that failed, as of `tools.shell_output`."""
    changed: tuple[SelfStarting, ...] = ()
    """Self-starting files that the command changed."""
    lines: int = 0
    """Lines of the whole output, what was dropped included."""
    terminal: TerminalFacts | None = None
    """None: it had no terminal. Else head and tail are clean text."""
    hosts: tuple[HostUse, ...] = ()
    """Hosts that it reached or was refused."""


class OutputSoFar(Struct, frozen=True):
    """Output of a command that is being stopped, up to now; its end reports all of it once more."""

    captured: Captured
    folder: str = ""
    """Folder in which a line of the user runs, where it is not the conversation's."""


class ProgramEnded(Struct, frozen=True):
    """A command is over, and its result follows once it is known what it left in the folder."""

    captured: Captured
    exit_code: int | None
    """Exit code; None where a signal ended it."""
    seconds: float


Progress: TypeAlias = OutputChunk | TerminalRows | ProcessStarted | ProcessesEnded | OutputSoFar | ProgramEnded
Report: TypeAlias = Callable[[Progress], None]


class ToolContext(Struct, frozen=True):
    """Place and reporting functions of one call."""

    conversation_id: str
    call_id: str
    working_dir: Path
    outside_allowed: bool
    """True when the user, or the permission mode, let this call leave `working_dir`."""
    report: Report
    actor: str = ""
    """Author of a file as shown to others: "sub-agent 'find tests'"; empty for a conversation of the user."""
    sandbox: Sandbox = UNCONFINED
    """Limits this call runs under."""
    admitted: tuple[Path, ...] | None = None
    """Resolved paths that the decision about this call was made for; it opens no others. None: not checked."""
    kept_out: tuple[Path, ...] = ()
    """Keys and Phoenix's own files, which a walk through a folder passes over."""
    readable: tuple[Path, ...] = ()
    """Further folders whose files a reading tool may open."""
    line_sandboxes: tuple[Sandbox, ...] = ()
    """Limits of each shell line of the request."""
    web: WebModel | None = None
    """Models that search and read for a web tool; None: there are none."""
    shell: ShellTerminal | None = None
    """Terminal for a line of the user; None: a pipe."""
    gate: HostGate | None = None
    """Decides about hosts that a command reaches."""


class Tool(Protocol):
    """Interface of a tool."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, JSON schema and class."""
        ...

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Describe the call `args` without changing anything.

        Raises:
            ToolInputError: the arguments are invalid.
        """
        ...

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Do it. Failure is a value with `is_error`; cancellation stops all it started."""
        ...


@runtime_checkable
class Foreseeing(Protocol):
    """Tools that can detect, before a question about a call, that it would fail."""

    async def foresee(self, args: JsonObject, context: ToolContext) -> None:
        """Look whether the call could be made, changing nothing.

        Raises:
            ToolInputError: it could not; the text says why.
        """
        ...


# Processes. Only `tools.process` starts them; all other modules get these Protocols.


class KeptPlaces(Struct, frozen=True):
    """Places that a server keeps from one start to the next in a sandbox."""

    folder: Path
    """Folder of this server alone, absolute; made with the first start."""
    programs: tuple[Path, ...] = ()
    """Folders of its program and of files that its definition names: it sees them, and keeps its own changes."""


class Command(Struct, frozen=True):
    """A program to run under supervision; stdin is /dev/null unless `stdin` is given."""

    argv: tuple[str, ...]
    working_dir: Path
    timeout: float | None = None
    """Seconds; None means no limit."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to the scrubbed environment."""
    stdin: bytes | None = None
    keep_head: int = 64 * 1024
    keep_tail: int = 64 * 1024
    """Bytes of output kept at either end; bytes between them are counted and dropped."""
    spill: Path | None = None
    """File for the whole output once it exceeds head and tail."""
    sandbox: Sandbox = UNCONFINED
    """Limits of this command; the caller decides, there is no other default."""
    terminal: bool = False
    """True for a program in a terminal of its own: it may use colours and move the cursor."""
    readable: tuple[Path, ...] = ()
    """Folders that it may read in a sandbox too, wherever they are."""
    start_in: Path | None = None
    """Folder that it starts in; None: `working_dir`, which in any case is the one that its sandbox is about."""
    kept: KeptPlaces | None = None
    """Places that it keeps, where it is a server."""
    gate: HostGate | None = None
    """Decides about hosts where `sandbox.hosts` is given; None: all are refused."""


class Finished(Struct, frozen=True):
    """A command that ended, by itself or at its time limit."""

    exit_code: int | None
    """Exit code; None when a signal ended it, see `signal`."""
    signal: int | None
    captured: Captured
    duration: float
    timed_out: bool = False
    leftovers: tuple[str, ...] = ()
    """Names of processes it left behind; they are dead by now."""
    survivors: tuple[int, ...] = ()
    """Pids that would not die (uninterruptible sleep)."""


class SandboxedStartError(OSError):
    """Raised for a program that cannot be started, perhaps because of its sandbox."""

    refused: str = ""
    """Clauses of `tools.shell_output`; empty where the sandbox was not the reason."""


class ProcessRunner(Protocol):
    """Runs one command at a time per call; cancelling the call kills the whole tree."""

    async def run(self, command: Command, report: Report | None = None) -> Finished:
        """Run to the end. On cancellation the tree is dead before this returns.

        Raises:
            OSError: the program cannot be started.
        """
        ...


class JobInfo(Struct, frozen=True):
    """A background command: listed, readable, killable, gone with its conversation."""

    id: str
    conversation_id: str
    command: str
    running: bool
    exit_code: int | None
    elapsed: float
    sandbox: Sandbox = UNCONFINED

    def __post_init__(self) -> None:
        """Reveal the command here, for every list that names it."""
        force_setattr(self, "command", reveal_line(self.command))
