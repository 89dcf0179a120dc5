"""The MCP servers of all conversations of a process: which exist, what a model is offered, sign-ins, and their end."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from engine.extensions.mcp.connection import McpLimits, ServerConnection
from engine.extensions.mcp.credentials_file import CredentialsFile, TokenStore
from engine.extensions.mcp.helper_process import HelperProcess, RequestFailed
from engine.extensions.mcp.offering import (
    CatalogueCache,
    Choosing,
    GivenServers,
    Offered,
    OfferedTool,
    ServerCatalogue,
    change_words,
    definition_mark,
    instructions,
    is_deferred,
    names_of,
    without_change,
)
from engine.extensions.mcp.server_start import find_data_folder, start_folder
from engine.extensions.mcp.views import HubTexts, KeptOffers, ServerOffer, view_of
from engine.ports.extensions import ExtensionPrompt
from engine.ports.mcp import (
    FolderServers,
    ServerDefinition,
    ServerDefinitions,
    ServerOrigin,
    ServerState,
    ServerView,
    SignInAddress,
    confinement,
)
from engine.records import ConversationRecord
from tools.clean import clean_line
from tools.contract import (
    AS_IN_A_SHELL,
    UNCONFINED,
    Enforcement,
    ImageReader,
    PathOrder,
    Sandbox,
    SandboxMode,
    Tool,
    ToolSpec,
)
from tools.mcp_host.protocol import NOTHING, Auth, AuthUrl, host_of, is_plain_address
from tools.mcp_tool import LIST, READ, ListResources, McpTool, ReadResource, ResourceServer, ServerGone
from tools.process.scratch import remove
from tools.tool_search import NAME as SEARCH
from tools.tool_search import ToolSearch

if TYPE_CHECKING:
    from tools.process.service import SupervisedServices

PATIENCE: Final = 60.0
"""Seconds until the address is known: the authorization server is asked who it is, and knows Phoenix from then on."""
LONGEST_PASTE: Final = 16_000
NOT_NEEDED: Final = "MCP server '{name}' is connected: there is nothing to sign in to."
GONE: Final = "There is no such MCP server in use here; /mcp lists all."
LOCAL: Final = "MCP server '{name}' runs on this machine: there is nothing to sign in to."
NO_ADDRESS: Final = "MCP server '{name}' gave no address to sign in at within {seconds:.0f} s."
BAD_ADDRESS: Final = "MCP server '{name}' names an address that no browser should open."


class HubSignIns(Struct, frozen=True):
    """Implements `engine.ports.mcp.SignIns`."""

    hub: McpHub

    async def begin(self, record: ConversationRecord, name: str) -> SignInAddress | str:
        """Begin a sign-in, or give a sentence why there is none."""
        server = await self._find_server(record, name)
        return await _begin(server) if server is not None else GONE

    async def paste(self, record: ConversationRecord, name: str, url: str) -> str:
        """Take the address that the browser was sent to; a sentence where it is not the right one."""
        server = await self._find_server(record, name)
        if server is None:
            return GONE
        try:
            await _tell(server, Auth(id=0, server=server.key, action="paste", url=url.strip()[:LONGEST_PASTE]))
        except ServerGone as error:
            return str(error)
        return ""

    async def forget(self, record: ConversationRecord, name: str) -> str:
        """Delete the tokens of a server and end its connection; a sentence where there are none to delete."""
        server = await self._find_server(record, name)
        if server is None or server.definition.transport == "stdio":
            return GONE if server is None else LOCAL.format(name=clean_line(server.name))
        with suppress(ServerGone):  # unknown to the helper, where it was never connected
            await _tell(server, Auth(id=0, server=server.key, action="forget"))
        await server.access.store(NOTHING)
        await server.end(0.5)
        return ""

    async def _find_server(self, record: ConversationRecord, name: str) -> ServerConnection | None:
        return next((one for one in await self.hub.look(record) if one.name == name), None)


async def _begin(server: ServerConnection) -> SignInAddress | str:
    name = clean_line(server.name)
    if server.definition.transport == "stdio":
        return LOCAL.format(name=name)
    await asyncio.shield(server.start())
    if server.state is ServerState.CONNECTED:
        return NOT_NEEDED.format(name=name)
    if server.state is not ServerState.NEEDS_AUTH:
        return f"MCP server '{name}' is not connected: {server.text or 'no answer'}."
    found = await _address(server)
    if isinstance(found, str):
        return f"{found.rstrip('.')}."
    if not is_plain_address(found.url):
        return BAD_ADDRESS.format(name=name)
    return SignInAddress(found.url, host_of(found.url), clean_line(found.callback))


async def _address(server: ServerConnection) -> AuthUrl | str:
    coming: asyncio.Future[AuthUrl | str] = asyncio.get_running_loop().create_future()
    server.access.coming, server.access.signing = coming, True
    try:
        async with asyncio.timeout(PATIENCE):
            await _tell(server, Auth(id=0, server=server.key, action="start"))
            return await coming
    except ServerGone as error:
        return str(error)
    except TimeoutError:
        return NO_ADDRESS.format(name=clean_line(server.name), seconds=PATIENCE)
    finally:
        server.access.coming = None


async def _tell(server: ServerConnection, request: Auth) -> None:
    """Send the helper a request about signing in. Raises ServerGone."""
    try:
        await (await server.helpers.link()).ask(request, bool)
    except RequestFailed as error:
        raise ServerGone(server.sentence(error.failure)) from error


Keep: TypeAlias = Callable[[str, tuple[str, ...]], Awaitable[None]]
"""Stores the tools that the model of a conversation has loaded."""
LINGER: Final = 60.0
"""Seconds that a server runs on after its last conversation closed."""


class HubSettings(Struct, frozen=True):
    """Choices that hold for all servers."""

    first_wait: float = 2.0
    """Seconds that the first request of a conversation waits for servers that were never connected."""
    sandbox_network: bool = True
    linger: float = LINGER
    limits: McpLimits = McpLimits()


class HubFolders(Struct, frozen=True):
    """Places of the hub."""

    helper: Path
    """Folder of the helper for large messages and results, 0700."""
    cache: Path
    """File of the lists of servers."""
    outputs: Path
    """Base of the folders of long results."""
    tokens: Path
    """File of the tokens of servers."""
    kept: Path
    """Base of the folders of what servers write below the home folder in a sandbox."""
    neutral: Path
    """Folder of the folders in which the user's servers start where the project is not trusted."""


class _Conversation(Struct, eq=False):
    """Servers of one conversation as they were at its last request."""

    folder: FolderServers
    servers: list[ServerConnection] = field(default_factory=list[ServerConnection])
    loaded: list[str] = field(default_factory=list[str])
    """Tools that its model has loaded since it was opened here, and before."""
    waited: set[str] = field(default_factory=set[str])
    """Servers whose first connection it has waited for."""
    offers: KeptOffers = field(default_factory=KeptOffers)


class McpHub:
    """The servers of conversations; implements `engine.ports.extensions.ExtensionSource`."""

    def __init__(
        self,
        definitions: ServerDefinitions,
        services: SupervisedServices,
        images: ImageReader,
        enforcement: Callable[[], Awaitable[Enforcement]],
        folders: HubFolders,
        settings: HubSettings,
        keep: Keep,
    ) -> None:
        self._definitions, self._images, self._enforcement = definitions, images, enforcement
        self._folders, self._settings, self._keep = folders, settings, keep
        self._helpers = HelperProcess(services, folders.helper)
        self.asks = self._helpers.asks
        """Questions of servers to the user."""
        self._cache = CatalogueCache(folders.cache)
        self.credentials: TokenStore = CredentialsFile(folders.tokens)
        self.choices = Choosing(definitions)
        """Choices about servers that last."""
        self.sign_ins = HubSignIns(self)
        """Signing in to servers."""
        self.texts = HubTexts(self.connections, self.look, images, folders.outputs)
        """Prompts and resources for messages of the user."""
        self._servers: dict[str, ServerConnection] = {}
        self._conversations: dict[str, _Conversation] = {}
        self._given = GivenServers()
        self._numbers = itertools.count(1)
        self._background: set[asyncio.Task[Any]] = set()

    # What a model is offered.

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        """Tools by name; those of servers that were connected before are there before their connection.

        Deferred ones are there once loaded, in the order of loading: what was sent before stays as it was.
        """
        offered = self._list_offers(record)
        deferred = {one.spec.name for one in self._select_deferred(record, offered)}
        loaded = [name for name in self._list_loaded(record) if name in deferred]
        late = deferred.difference(loaded)
        made: dict[str, Tool] = {}
        for server, tools in offered:
            made |= self._tools_of(record, server, [one for one in tools.tools if one.spec.name not in late])
        found = {name: tool for name, tool in made.items() if name not in deferred}
        found |= self._resource_tools([server for server, _ in offered])
        if deferred:
            found[SEARCH] = ToolSearch(partial(self._list_deferred_specs, record), partial(self.load, record))
            found |= {name: made[name] for name in loaded}
        return found

    def _resource_tools(self, servers: Sequence[ServerConnection]) -> Mapping[str, Tool]:
        """Tools that list and read resources, where a server has any."""
        having = tuple(
            ResourceServer(one.name, one.resources, one.read)
            for one in servers
            if one.catalogue is not None and one.catalogue.has_resources
        )
        if not having:
            return {}
        return {LIST: ListResources(having), READ: ReadResource(having, self._images, self._folders.outputs)}

    def _tools_of(
        self, record: ConversationRecord, server: ServerConnection, offered: Sequence[OfferedTool]
    ) -> Mapping[str, Tool]:
        if not offered:
            return {}
        confined = server.definition.transport != "stdio" or server.is_confined
        caller = self.asks.caller(server.key, record.id, server)
        shared = (caller, self._images, self._folders.outputs, confined, definition_mark(server.definition))
        told, lists = partial(self._mark_shown, server), server.catalogue or ServerCatalogue()
        return {
            one.spec.name: McpTool(
                one.spec, server.name, one.tool, *shared, change_words(server.name, lists, one.tool), told
            )
            for one in offered
        }

    def _mark_shown(self, server: ServerConnection, tool: str) -> None:
        """Take that a call has shown what changed in the words of a tool."""
        if server.catalogue is not None:
            server.catalogue = without_change(server.catalogue, tool)
            self._keep_lists(server)

    def _select_deferred(self, record: ConversationRecord, offered: Sequence[ServerOffer]) -> Sequence[OfferedTool]:
        """Tools whose definitions are sent only once they are loaded."""
        found = [one for server, tools in offered if not server.definition.always_load for one in tools.tools]
        return found if is_deferred(found, record.context_window) else ()

    def list_deferred(self, record: ConversationRecord) -> Sequence[OfferedTool]:
        """Tools of a conversation that are deferred, loaded or not."""
        return self._select_deferred(record, self._list_offers(record))

    def _list_deferred_specs(self, record: ConversationRecord) -> Sequence[ToolSpec]:
        return [one.spec for one in self.list_deferred(record)]

    def _list_loaded(self, record: ConversationRecord) -> Sequence[str]:
        known = self._conversations.get(record.id)
        return tuple(dict.fromkeys((*record.mcp_loaded, *(known.loaded if known is not None else ()))))

    async def load(self, record: ConversationRecord, names: Sequence[str]) -> None:
        """Send the definitions of deferred tools from the next request on, also after a restart."""
        known = self._conversations.get(record.id)
        if known is not None:
            known.loaded = [*dict.fromkeys((*self._list_loaded(record), *names))]
            await self._keep(record.id, tuple(known.loaded))

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        """The words of servers about themselves, marked as theirs."""
        servers = self._of(record)
        said = [(one.name, one.catalogue.instructions) for one in servers if one.catalogue is not None]
        return (*instructions(said), *names_of(self.list_deferred(record)))

    def _list_offers(self, record: ConversationRecord) -> Sequence[ServerOffer]:
        known = self._conversations.get(record.id)
        return known.offers.of(known.servers) if known is not None else ()

    def _of(self, record: ConversationRecord) -> list[ServerConnection]:
        known = self._conversations.get(record.id)
        return known.servers if known is not None else []

    def connections(self, record: ConversationRecord) -> Sequence[ServerConnection]:
        """Servers of a conversation as they were at the last look."""
        return tuple(self._of(record))

    async def look(self, record: ConversationRecord) -> Sequence[ServerConnection]:
        """Servers of the definitions as they are now; nothing is started."""
        return tuple((await self._look(record)).servers)

    async def prepare(self, record: ConversationRecord) -> None:
        """Look at the definitions again, start what is new, and wait once for what was never connected."""
        conversation = await self._look(record)
        new = [server for server in conversation.servers if server.state is ServerState.WAITING]
        starting = [server.start() for server in new]
        waits = [
            server.start() if server.state is ServerState.CONNECTING else None
            for server in conversation.servers
            if server.catalogue is None and server.key not in conversation.waited
        ]
        conversation.waited |= {server.key for server in conversation.servers}
        pending = {task for task in waits if task is not None}
        if starting and pending:
            await asyncio.wait(pending, timeout=self._settings.first_wait)

    async def _look(self, record: ConversationRecord) -> _Conversation:
        files, cwd = self._definitions, record.cwd
        folder = files.look(cwd) if files.is_quick(cwd) else await asyncio.to_thread(files.look, cwd)
        folder = self._given.over(folder, record)
        known = self._conversations.get(record.id)
        if known is None:
            known = self._conversations[record.id] = _Conversation(folder)
        known.folder = folder
        usable = [
            one for one in folder.servers if one.is_enabled and not one.trouble and one.name not in record.mcp_off
        ]
        enforcement = await self._enforcement() if usable else Enforcement.NONE
        servers = [await self._connection(one, folder, record, enforcement) for one in usable]
        for gone in [one for one in known.servers if one not in servers]:
            self._leave(gone, record.id)
            if any(gone.definition.identity == one.definition.identity for one in servers):
                self._later(self._retire(gone))  # it starts elsewhere now
        for server in servers:
            server.users.add(record.id)
            if server.ending is not None:
                server.ending.cancel()
                server.ending = None
        known.servers = servers
        return known

    async def _connection(
        self, definition: ServerDefinition, found: FolderServers, record: ConversationRecord, enforcement: Enforcement
    ) -> ServerConnection:
        mode, reason = confinement(definition, record.sandbox, enforcement)
        sandbox, root = self._sandbox(definition, mode), found.root
        neutral = start_folder(definition, found, self._folders.neutral)
        place = (str(root), str(neutral or ""))
        parts = (definition.name, definition.identity, *place, sandbox.mode.value, str(sandbox.network))
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        if (known := self._servers.get(key)) is not None:
            known.definition = definition  # what does not belong to its identity may have changed
            known.sandbox_reason = reason
            return known
        number = f"{key}-{next(self._numbers)}"  # a server that ends beside its successor takes none of its events
        made = ServerConnection(
            number,
            definition,
            root,
            sandbox,
            self._helpers,
            self._settings.limits,
            self.credentials,
            self._may_start,
            self._keep_lists,
        )
        made.folder = record.cwd
        made.kept = find_data_folder(self._folders.kept, definition, root)
        made.start_in = made.headers.start_in = neutral
        made.sandbox_reason = reason
        self._servers[key] = made
        made.catalogue = await asyncio.to_thread(self._cache.get, definition.digest)
        return made

    def _sandbox(self, definition: ServerDefinition, mode: SandboxMode) -> Sandbox:
        """The limits of its program; none over HTTP but for a project's helper."""
        helped = bool(definition.headers_helper) and definition.origin is ServerOrigin.PROJECT
        is_projects = definition.origin is ServerOrigin.PROJECT
        if (definition.transport != "stdio" and not helped) or mode is SandboxMode.OFF:
            return AS_IN_A_SHELL if is_projects else UNCONFINED
        path = None if is_projects else PathOrder.LEFT_OUT
        return Sandbox(mode, network=self._settings.sandbox_network, required=False, path=path)

    async def _may_start(self, server: ServerConnection) -> bool:
        """Look at the definitions right before a start."""
        folder = await asyncio.to_thread(self._definitions.look, server.folder)
        defined = (*folder.servers, *self._given.of(server.users))
        same = (one for one in defined if one.name == server.name and one.is_enabled and not one.trouble)
        return any(one.identity == server.definition.identity for one in same)

    def _keep_lists(self, server: ServerConnection) -> None:
        """Keep the lists of a server for later starts."""
        if server.catalogue is not None:
            self._later(asyncio.to_thread(self._cache.put, server.definition.digest, server.catalogue))

    # When servers end.

    def close_conversation(self, conversation_id: str) -> None:
        """Take the end of a conversation: its servers end a minute later where no other has them."""
        self._given.forget(conversation_id)
        known = self._conversations.pop(conversation_id, None)
        self.texts.forget_conversation(conversation_id)
        for server in known.servers if known is not None else ():
            self._leave(server, conversation_id)

    def _leave(self, server: ServerConnection, conversation_id: str) -> None:
        server.users.discard(conversation_id)
        if not server.users and server.ending is None:
            loop = asyncio.get_running_loop()
            server.ending = loop.call_later(self._settings.linger, lambda: self._later(self._retire(server)))

    async def _retire(self, server: ServerConnection) -> None:
        if server.users:
            return
        self._servers = {key: one for key, one in self._servers.items() if one is not server}
        await server.end()
        server.forget()

    async def close(self) -> None:
        """End all servers and the helper."""
        self._helpers.closed = True
        servers = list(self._servers.values())
        for server in servers:
            if server.ending is not None:
                server.ending.cancel()
        await asyncio.gather(*(server.end(0) for server in servers), return_exceptions=True)
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._helpers.close()

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # For front ends.

    def give(self, conversation_id: str, servers: Sequence[ServerDefinition]) -> None:
        """Take the servers that the client of a conversation brings along, until it closes."""
        self._given.put(conversation_id, servers)

    async def settle(self, record: ConversationRecord, seconds: float) -> None:
        """Start the servers of a conversation and wait for their connections."""
        conversation = await self._look(record)
        tasks = [one.start() for one in conversation.servers if one.state is ServerState.WAITING]
        tasks += [one.start() for one in conversation.servers if one.state is ServerState.CONNECTING]
        if tasks:
            await asyncio.wait(set(tasks), timeout=seconds)

    async def views(self, record: ConversationRecord) -> Sequence[ServerView]:
        """Servers of a conversation, those that are off or wrong too."""
        conversation = await self._look(record)
        offered = {server.name: (server, tools) for server, tools in self._list_offers(record)}
        live = {server.name: server for server in conversation.servers}
        deferred = {one.spec.name for one in self.list_deferred(record)} - set(self._list_loaded(record))
        return tuple(
            view_of(
                one,
                live.get(one.name),
                offered[one.name][1] if one.name in offered else Offered(),
                is_on=one.name not in record.mcp_off,
                deferred=deferred,
            )
            for one in conversation.folder.servers
        )

    async def notices(self, record: ConversationRecord) -> Sequence[str]:
        """Sentences about files and entries that are left out."""
        return (await self._look(record)).folder.notices

    async def details(self, record: ConversationRecord, name: str) -> ServerView | None:
        """One server with its log."""
        view = next((one for one in await self.views(record) if one.name == name), None)
        server = self._find_server(record, name)
        if view is None or server is None:
            return view
        return replace(view, log=tuple(await server.log_lines()))

    async def reconnect(self, record: ConversationRecord, name: str) -> None:
        """End a server and connect again."""
        await self._look(record)
        if (server := self._find_server(record, name)) is not None:
            server.forgive()
            await server.end(0.5)
            await asyncio.shield(server.start())

    async def end(self, record: ConversationRecord, name: str) -> None:
        """End a server now."""
        if (server := self._find_server(record, name)) is not None:
            await server.end()

    async def forget_kept(self, record: ConversationRecord, name: str) -> bool:
        """End a server and remove what it has written below the home folder; False where there is nothing."""
        server = self._find_server(record, name)
        if server is None or server.kept is None or not await asyncio.to_thread(server.kept.is_dir):
            return False
        for one in [one for one in self._servers.values() if one.kept == server.kept]:
            await one.end()
        await asyncio.to_thread(remove, server.kept)
        return True

    def _find_server(self, record: ConversationRecord, name: str) -> ServerConnection | None:
        return next((server for server in self._of(record) if server.name == name), None)
