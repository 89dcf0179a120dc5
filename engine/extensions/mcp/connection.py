"""One server while it is used: its start, its lists, its calls, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from engine.extensions.mcp.credentials_file import ServerAccess, TokenStore
from engine.extensions.mcp.helper_process import HelpedServer, HelperProcess, RequestFailed, ServerEvent
from engine.extensions.mcp.offering import ServerCatalogue, with_tools
from engine.extensions.mcp.server_asks import AskingServer
from engine.extensions.mcp.server_start import (
    HelpedHeaders,
    error_line,
    find_named_places,
    project_variables,
    start_command,
    stderr_lines,
)
from engine.ports.mcp import SandboxReason, ServerDefinition, ServerState
from tools.clean import clean_line
from tools.contract import JsonObject, KeptPlaces, Report, Sandbox, SandboxedStartError, SandboxMode
from tools.mcp_host.protocol import (
    AnyRequest,
    AuthUrl,
    CallProgress,
    CallTool,
    Connect,
    Connected,
    Content,
    Disconnect,
    Failure,
    Item,
    Items,
    LeftOut,
    ListItems,
    Log,
    NewCredentials,
    Read,
    Root,
    ServerStatus,
    TextPart,
)
from tools.mcp_tool import ServerGone, progress_line
from tools.services import ServiceEndedError
from tools.shell_output import reason_words

if TYPE_CHECKING:
    from tools.process.service import DuplexService

MOST_STARTS: Final = 3
IN_SECONDS: Final = 60.0
"""Starts of a stdio server in this time; a further one is refused."""
CHANGED: Final = "its definition, or a file of the project that it starts, has changed; /trust shows it"
WAY_OUT: Final = "/mcp, or sandbox = 'off' in your definition, runs it without"
"""Way out of a failure that the sandbox of a server explains."""
ELSEWHERE: Final = "it starts in a folder of its own: the project is not trusted; /trust, or its cwd, changes that"
_STATES: Final = {
    "connecting": ServerState.CONNECTING,
    "reconnecting": ServerState.CONNECTING,
    "connected": ServerState.CONNECTED,
    "needs_auth": ServerState.NEEDS_AUTH,
    "failed": ServerState.FAILED,
    "ended": ServerState.FAILED,
}
T = TypeVar("T")


class McpLimits(Struct, frozen=True):
    """Time limits of connections and calls, and the size of results."""

    connect_ms: int = 30_000
    call_ms: int = 600_000
    idle_ms: int = 120_000
    text_bytes: int = 100_000
    """Bytes of text in a result; more goes to a file."""


class ServerConnection(AskingServer):
    """Connects to a server when it is needed, and again after it ended."""

    def __init__(
        self,
        key: str,
        definition: ServerDefinition,
        root: Path,
        sandbox: Sandbox,
        helpers: HelperProcess,
        limits: McpLimits,
        tokens: TokenStore,
        may_start: Callable[[ServerConnection], Awaitable[bool]],
        keep_lists: Callable[[ServerConnection], None],
    ) -> None:
        """`may_start` looks right before a start: False where the definition is not usable as it was any more."""
        super().__init__(definition)
        self.key, self.root = key, root
        self.folder = root
        """Folder whose definitions it is one of."""
        self.kept: Path | None = None
        """Folder of what it writes below the home folder in a sandbox."""
        self.start_in: Path | None = None
        """Neutral folder in which it starts; None: the project, or the one that its definition names."""
        self.sandbox_reason = SandboxReason.CONVERSATION
        self.state, self.text = ServerState.WAITING, ""
        self.catalogue: ServerCatalogue | None = None
        """Lists of this connection, or of an earlier one."""
        self.left_out: list[LeftOut] = []
        self.users: set[str] = set()
        """Conversations that have it."""
        self.completes = False
        """True where it completes arguments of prompts."""
        self.last_ms = -1
        self.ending: asyncio.TimerHandle | None = None
        self._sandbox, self.helpers, self.limits = sandbox, helpers, limits
        self._may_start, self._keep_lists = may_start, keep_lists
        self._service: DuplexService | None = None
        self.headers = HelpedHeaders(root, sandbox)
        """Headers of a server over HTTP, those of a helper too."""
        self.access = ServerAccess(tokens, definition, root, self.note)
        """Tokens of the server, and the sign-in that begins."""
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._connecting: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[Any]] = set()
        self._forget = helpers.add(key, HelpedServer(self, self.take, self.take_loss))

    @property
    def pid(self) -> int:
        """Process id of a stdio server; 0 without one."""
        return self._service.pid if self._service is not None else 0

    @property
    def is_confined(self) -> bool:
        """True where it runs in a sandbox."""
        return self._sandbox.mode is not SandboxMode.OFF

    @property
    def sandbox(self) -> SandboxMode | None:
        """Sandbox that it runs in; None for a server over HTTP."""
        return self._sandbox.mode if self.definition.transport == "stdio" else None

    @property
    def has_network(self) -> bool:
        """False where its sandbox has no network; hosts are no limit of a server."""
        return self._sandbox.network

    def start(self) -> asyncio.Task[None]:
        """Connect, or return the attempt that is being made; the task never raises."""
        if self._connecting is None or self._connecting.done():
            self.state, self.text = ServerState.CONNECTING, ""
            self._connecting = asyncio.create_task(self._connect())
        return self._connecting

    async def ready(self) -> None:
        """Connect where that is needed, and wait for it.

        Raises:
            ServerGone: it cannot be reached.
        """
        if self.state is not ServerState.CONNECTED:
            await asyncio.shield(self.start())
        if self.state is not ServerState.CONNECTED:
            raise ServerGone(f"MCP server '{self.name}' is not connected: {self.text or 'no answer'}.")

    async def call(self, tool: str, args: JsonObject, report: Report) -> Content:
        """Call a tool; implements `tools.mcp_tool.ServerCaller`."""
        given, limits = self.definition.timeout_ms, self.limits
        request = CallTool(
            id=0,
            server=self.key,
            tool=tool,
            args=args,
            timeout_ms=given or limits.call_ms,
            idle_ms=given or limits.idle_ms,
            text_limit=limits.text_bytes,
        )

        def progress(event: CallProgress) -> None:
            report(progress_line(event.done, event.total, event.text))

        began = time.monotonic()
        try:
            content = await self.ask(request, Content, progress)
        finally:
            self.last_ms = round((time.monotonic() - began) * 1000)
        return await self._with_refusal(content) if content.is_error else content

    async def _with_refusal(self, content: Content) -> Content:
        """A failed result, with a line below it where the sandbox of the server was the reason."""
        text = "\n".join(part.text for part in content.parts if isinstance(part, TextPart))
        if self._service is None or not (refused := await self._service.refusals(text)):
            return content
        return replace(content, parts=[*content.parts, TextPart(text=f"[{reason_words(refused, WAY_OUT)[2:]}]")])

    async def resources(self) -> Sequence[Item]:
        """Resources and templates; implements `tools.mcp_tool.ResourceServer`."""
        found = await self.ask(ListItems(id=0, server=self.key, what="resources"), Items)
        templates = await self.ask(ListItems(id=0, server=self.key, what="templates"), Items)
        return (*found.items, *templates.items)

    async def read(self, uri: str) -> Content:
        """Content of a resource."""
        return await self.ask(Read(id=0, server=self.key, uri=uri, text_limit=self.limits.text_bytes), Content)

    async def ask(
        self, request: AnyRequest, kind: type[T], progress: Callable[[CallProgress], None] | None = None
    ) -> T:
        """The answer to a request about this server, connecting first.

        Raises:
            ServerGone: there is none; the sentence is for a model or the user.
        """
        await self.ready()
        try:
            link = await self.helpers.link()
            return await link.ask(request, kind, progress=progress)
        except RequestFailed as error:
            if error.failure.kind == "gone" and self.state is ServerState.CONNECTED:
                self.state, self.text = ServerState.FAILED, "it ended"  # its status may come behind the answer
            raise ServerGone(self.sentence(error.failure)) from error

    def sentence(self, failure: Failure) -> str:
        """A failed request as a sentence for a model or the user."""
        message = failure.message.rstrip(".")
        if message.startswith(f"MCP server '{clean_line(self.name)}'") and failure.kind != "gone":
            return f"{message}."
        if failure.kind == "gone":
            cause = message.removeprefix(f"MCP server '{clean_line(self.name)}' ended: ")
            return f"MCP server '{self.name}' ended: {cause}. It is started again on the next call."
        return f"MCP server '{self.name}': {message}."

    async def _connect(self) -> None:
        try:
            self._count_start()
            await self._end_service(0)
            link = await self.helpers.link()
            await self.access.load()
            await self._check_helper()
            await self.headers.load(self.helpers.services, self.definition)
            descriptors = await self._open_service() if self.definition.transport == "stdio" else ()
            connected = await link.ask(self._request(), Connected, descriptors=descriptors)
        except RequestFailed as error:
            is_auth = error.failure.kind == "needs_auth"
            await self._fail(error.failure.message, ServerState.NEEDS_AUTH if is_auth else ServerState.FAILED)
        except (OSError, ServiceEndedError) as error:
            reason = error.strerror if isinstance(error, OSError) else ""
            refused = error.refused if isinstance(error, SandboxedStartError) else ""
            await self._fail(f"it cannot be started: {reason or error}", refused=refused)
        else:
            self.state = ServerState.CONNECTED
            self.completes = "completions" in connected.has
            catalogue = replace(self.catalogue or ServerCatalogue(), instructions=connected.instructions)
            catalogue = replace(catalogue, has_resources="resources" in connected.has)
            if "prompts" not in connected.has:
                catalogue = replace(catalogue, prompts=[])
            self.catalogue = catalogue if "tools" in connected.has else replace(catalogue, tools=[])
            self._keep_lists(self)

    def _count_start(self) -> None:
        now = asyncio.get_running_loop().time()
        if self.definition.transport == "stdio":
            if len(self._starts) == MOST_STARTS and now - self._starts[0] < IN_SECONDS:
                raise OSError(0, f"it ended {MOST_STARTS} times within {IN_SECONDS:.0f} s; /mcp starts it again")
            self._starts.append(now)

    def forgive(self) -> None:
        """Forget earlier starts: the user asks for another."""
        self._starts.clear()
        self.helpers.forgive()

    async def _open_service(self) -> tuple[int, int]:
        """Start the server; its stdout and stdin, for the helper."""
        if not await self._may_start(self):
            raise OSError(0, CHANGED)
        definition = self.definition
        command = replace(
            start_command(definition, definition.command, self.root, self.start_in),
            environment={**project_variables(self.root), **definition.environment},
            sandbox=self._sandbox,
        )
        if self.is_confined and self.kept is not None:
            named = await asyncio.to_thread(find_named_places, definition)
            command = replace(command, readable=named.folders, kept=KeptPlaces(self.kept, named.programs))
        self._service = await self.helpers.services.open(command)
        for note in self._service.notes:
            self.note(note)
        stdin, stdout = self._service.take()
        return stdout, stdin

    async def _check_helper(self) -> None:
        if self.definition.headers_helper and not await self._may_start(self):
            raise OSError(0, CHANGED)

    def _request(self) -> Connect:
        definition = self.definition
        return Connect(
            id=0,
            server=self.key,
            name=clean_line(definition.name),
            transport=definition.transport,
            url=definition.url,
            headers=dict(self.headers.found),
            roots=[Root(self.root.as_uri(), self.root.name)],
            oauth=definition.oauth,
            credentials=self.access.stored,
            elicitation=self.helpers.asks.can_ask,
            sampling=self.helpers.asks.can_sample and definition.samples,
            timeout_ms=self.limits.connect_ms,
            era=definition.era,
        )

    async def _fail(self, why: str, state: ServerState = ServerState.FAILED, refused: str = "") -> None:
        words = error_line(self._service.stderr) if self._service is not None else ""
        if self._service is not None:
            refused = await self._service.refusals()
        why = clean_line(why).rstrip(".")
        for said in (f"MCP server '{clean_line(self.name)}' ", "is not connected: ", "ended: "):
            why = why.removeprefix(said)  # the name is beside it wherever it is shown
        if self.start_in is not None and self.definition.transport == "stdio":
            why = f"{why} ({ELSEWHERE})"
        text = f"{why}: {words}" if words and words not in why else why
        self.state, self.text = state, text + reason_words(refused, WAY_OUT)
        await self._end_service(0)

    def take(self, event: ServerEvent) -> None:
        """Take an event of the helper."""
        match event:
            case ServerStatus():
                self._status(event)
            case Items():
                self._items(event)
            case Log(level=level, text=text):
                self.log.append(f"{level}: {text}")
            case AuthUrl():
                self.access.take(event)
            case NewCredentials(content=content):
                self._later(self.access.store(content))

    def _status(self, event: ServerStatus) -> None:
        connecting = self._connecting is not None and not self._connecting.done()
        if connecting or event.state not in _STATES:
            return  # the answer to `connect` says it
        if self.access.signing and not self._signs_in(event):
            return
        self.state, self.text = _STATES[event.state], clean_line(event.text)
        if event.state == "needs_auth" and self.headers.may_have_expired:
            self.start()
        if event.state == "ended":
            self.text = f"it ended: {self.text.rstrip('.')}" if self.text else "it ended"
            self._later(self._end_service(0))

    def _signs_in(self, event: ServerStatus) -> bool:
        """Take a status of a sign-in; True where it ends without one. Then the lists come with another connection."""
        if event.state == "connecting":
            return False
        self.access.signing = False
        if event.state == "connected":
            self.start()
            return False
        self.access.take(event.text or "it could not be reached")
        return True

    def _items(self, event: Items) -> None:
        catalogue = self.catalogue or ServerCatalogue()
        if event.what == "tools":
            self.catalogue, self.left_out = with_tools(catalogue, event.items), event.left_out
        elif event.what == "prompts":
            self.catalogue = replace(catalogue, prompts=event.items)
        else:
            return
        if self.state is ServerState.CONNECTED:
            self._keep_lists(self)

    def take_loss(self, why: str) -> None:
        """Take the end of the helper; the server is started again when it is needed."""
        if self.state is not ServerState.WAITING:
            self.state, self.text = ServerState.FAILED, why
        self._later(self._end_service(0))

    async def log_lines(self) -> list[str]:
        """The newest lines of its log and of its stderr."""
        lines = list(self.log)
        link = self.helpers.running
        if link is not None and self.state is ServerState.CONNECTED:
            with contextlib.suppress(RequestFailed):
                lines = (await link.ask(ListItems(id=0, server=self.key, what="log"), Items)).lines or lines
        if self._service is not None:
            lines += stderr_lines(self._service.stderr)
        return lines

    async def end(self, grace: float = 2.0) -> None:
        """End the server: its input closes, then its whole tree is killed."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait({self._connecting})
        link = self.helpers.running
        if link is not None and self.state is not ServerState.WAITING:
            try:
                async with asyncio.timeout(grace + 1):
                    await link.ask(Disconnect(id=0, server=self.key), object)
            except (RequestFailed, TimeoutError):
                pass
        await self._end_service(grace)
        self.state, self.text = ServerState.WAITING, ""

    def forget(self) -> None:
        """Take no more events."""
        self._forget()

    async def _end_service(self, grace: float) -> None:
        service, self._service = self._service, None
        if service is not None:
            await service.end(grace)
            self.log.extend(stderr_lines(service.stderr))

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
