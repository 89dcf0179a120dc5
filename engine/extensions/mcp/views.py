"""Servers of a conversation: prompts and resources for messages, offers, and views for front ends."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from engine.extensions.mcp.connection import ServerConnection
from engine.extensions.mcp.offering import CHARACTERS_A_TOKEN, Offered, ServerCatalogue, choose_tools, tool_name
from engine.ports.mcp import (
    PromptField,
    ServerDefinition,
    ServerPrompt,
    ServerResource,
    ServerState,
    ServerTextError,
    ServerView,
)
from engine.records import ConversationRecord
from tools.clean import clean_line
from tools.contract import ImageReader, ToolContext, ToolOutput
from tools.mcp_host.protocol import (
    Complete,
    Completions,
    Content,
    ContentPart,
    GetPrompt,
    Item,
    PromptMessage,
    PromptText,
    TextPart,
)
from tools.mcp_tool import ServerGone, output_of
from tools.wording import one_line

LONGEST_MEANING: Final = 200
"""Characters of a description in a row."""
MOST_FIELDS: Final = 20
"""Arguments of a prompt; one that has more is not offered."""
LISTING: Final = 5.0
"""Seconds that a list of resources may take for a completion."""
T = TypeVar("T")


class _Kept(Struct, frozen=True):
    """Prompts and the lists that they were made of."""

    catalogues: tuple[tuple[str, ServerCatalogue | None], ...]
    prompts: tuple[ServerPrompt, ...]


class HubTexts(Struct, eq=False):
    """Implements `engine.ports.mcp.ServerTexts`."""

    connections: Callable[[ConversationRecord], Sequence[ServerConnection]]
    """Returns the servers of the last look."""
    look_at_servers: Callable[[ConversationRecord], Awaitable[Sequence[ServerConnection]]]
    """Returns the servers of the definitions as they are now; starts nothing."""
    images: ImageReader
    outputs: Path
    """Base of the folders of long texts."""
    _kept: dict[str, _Kept] = field(default_factory=dict[str, _Kept])

    def prompts(self, record: ConversationRecord) -> Sequence[ServerPrompt]:
        """Prompts of a conversation as they are known, sorted; the same object while nothing has changed."""
        servers = self.connections(record)
        now = tuple((one.name, one.catalogue) for one in servers)
        kept = self._kept.get(record.id)
        if kept is None or not (
            len(kept.catalogues) == len(now)
            and all(a[0] == b[0] and a[1] is b[1] for a, b in zip(kept.catalogues, now, strict=True))
        ):
            self._kept[record.id] = kept = _Kept(now, _prompts(now))
        return kept.prompts

    def forget_conversation(self, conversation_id: str) -> None:
        """Drop what is kept for a conversation."""
        self._kept.pop(conversation_id, None)

    async def look(self, record: ConversationRecord) -> None:
        """Look at the definitions, and begin to connect to servers that were never connected."""
        for server in await self.look_at_servers(record):
            if server.state is ServerState.WAITING and server.catalogue is None:
                server.start()

    async def prompt(self, record: ConversationRecord, command: str) -> ServerPrompt | None:
        """The prompt that a command calls, connecting where it is not known; None where there is none.

        Raises:
            ServerTextError: its server cannot be reached.
        """
        servers = await self.look_at_servers(record)
        if (found := self._find_prompt(record, command)) is not None:
            return found
        for server in servers:
            if command.startswith(tool_name(server.name, "")) and server.state is not ServerState.CONNECTED:
                await _await_answer(server.ready())
        return self._find_prompt(record, command)

    def _find_prompt(self, record: ConversationRecord, command: str) -> ServerPrompt | None:
        return next((one for one in self.prompts(record) if one.command == command), None)

    async def render(self, record: ConversationRecord, prompt: ServerPrompt, values: Mapping[str, str]) -> ToolOutput:
        """The text of a prompt with its arguments.

        Raises:
            ServerTextError: the server does not give it.
        """
        server = await self._server(record, prompt.server)
        limit = server.limits.text_bytes
        request = GetPrompt(id=0, server=server.key, prompt=prompt.prompt, args=dict(values), text_limit=limit)
        given = await _await_answer(server.ask(request, PromptText))
        return await self._output(record, _content(given), prompt.command)

    async def values(
        self, record: ConversationRecord, prompt: ServerPrompt, field: str, value: str, others: Mapping[str, str]
    ) -> Sequence[str]:
        """Values that complete `value`, as a connected server knows them; none within its bound otherwise."""
        server = next((one for one in self.connections(record) if one.name == prompt.server), None)
        if server is None or server.state is not ServerState.CONNECTED or not server.completes:
            return ()
        context = dict(others)
        request = Complete(id=0, server=server.key, ref=prompt.prompt, argument=field, value=value, context=context)
        try:
            return (await server.ask(request, Completions)).values
        except ServerGone:
            return ()

    def names(self, record: ConversationRecord) -> Sequence[str]:
        """Names of the servers of a conversation at the last look."""
        return [one.name for one in self.connections(record)]

    def resource_servers(self, record: ConversationRecord) -> Sequence[str]:
        """Names of the servers that have resources, as far as that is known."""
        servers = self.connections(record)
        return [one.name for one in servers if one.catalogue is not None and one.catalogue.has_resources]

    async def resources(self, record: ConversationRecord, server: str) -> Sequence[ServerResource]:
        """Resources and templates of a server.

        Raises:
            ServerTextError: it does not list them.
        """
        found = await self._server(record, server)
        try:
            async with asyncio.timeout(LISTING):
                items = await _await_answer(found.resources())
        except TimeoutError:
            raise ServerTextError(f"MCP server '{clean_line(server)}' has not listed its resources yet.") from None
        return [
            ServerResource(item.uri, _line(item.title or item.name), _line(item.description), "{" in item.uri)
            for item in items
        ]

    async def read(self, record: ConversationRecord, server: str, uri: str) -> ToolOutput:
        """The content of a resource.

        Raises:
            ServerTextError: the server does not give it.
        """
        found = await self._server(record, server)
        return await self._output(record, await _await_answer(found.read(uri)), uri)

    async def _server(self, record: ConversationRecord, name: str) -> ServerConnection:
        for server in await self.look_at_servers(record):
            if server.name == name:
                return server
        raise ServerTextError(f"There is no MCP server '{clean_line(name)}' here; /mcp lists all.")

    async def _output(self, record: ConversationRecord, content: Content, name: str) -> ToolOutput:
        call_id = f"message-{secrets.token_hex(8)}"  # names the files of long texts
        context = ToolContext(record.id, call_id, record.cwd, outside_allowed=False, report=lambda _: None)
        return await output_of(content, name, context, self.images, self.outputs)


async def _await_answer(asked: Awaitable[T]) -> T:
    try:
        return await asked
    except ServerGone as error:
        raise ServerTextError(str(error)) from error


def usages(server: str, catalogue: ServerCatalogue) -> tuple[str, ...]:
    """The prompts of a server as they are typed: `/mcp__SERVER__PROMPT CITY [UNIT]`."""
    return tuple(f"/{one.command} {one.hint}".rstrip() for one in _prompts([(server, catalogue)]))


def _prompts(catalogues: Sequence[tuple[str, ServerCatalogue | None]]) -> tuple[ServerPrompt, ...]:
    found: dict[str, ServerPrompt] = {}
    for server, catalogue in catalogues:
        for item in catalogue.prompts if catalogue is not None else ():
            command = tool_name(server, item.name)
            if command not in found and _is_typeable(item):
                fields = [PromptField(one.name, _line(one.description), one.required) for one in item.arguments]
                found[command] = ServerPrompt(
                    command, server, item.name, _line(item.description or item.title), tuple(fields)
                )
    return tuple(found[command] for command in sorted(found))


def _is_typeable(item: Item) -> bool:
    names = [one.name for one in item.arguments]
    return len(names) <= MOST_FIELDS and all(name and one_line(clean_line(name)) == name for name in names)


def _line(text: str) -> str:
    return one_line(clean_line(text), LONGEST_MEANING)


def _content(given: PromptText) -> Content:
    """The messages of a prompt as one text; who says what is named where the assistant says anything."""
    several = any(message.role == "assistant" for message in given.messages)
    return Content(parts=[_describe_part(message) if several else message.part for message in given.messages])


def _describe_part(message: PromptMessage) -> ContentPart:
    part = message.part
    if not isinstance(part, TextPart):
        return part
    return replace(part, text=f"{'Assistant' if message.role == 'assistant' else 'User'}: {part.text}")


OFF_FOR_GOOD: Final = "switched off for good"
OFF_HERE: Final = "switched off in this conversation"


def view_of(
    definition: ServerDefinition, server: ServerConnection | None, offered: Offered, *, is_on: bool, deferred: Set[str]
) -> ServerView:
    """One server; `server` is None where it is not used."""
    if server is None:
        state = ServerState.FAILED if definition.trouble and is_on else ServerState.OFF
        text = definition.trouble or (OFF_HERE if definition.is_enabled else "enabled = false")
        if definition.is_off:
            state, text = ServerState.OFF, OFF_FOR_GOOD
        return ServerView(
            definition.name,
            state,
            text,
            definition.source,
            definition.origin,
            definition.transport,
            definition.shown,
            is_required=definition.is_required,
            samples=definition.samples,
            is_on=is_on,
            secrets=definition.secrets,
            is_off=definition.is_off,
        )
    catalogue = server.catalogue
    sent = [one for one in offered.tools if one.spec.name not in deferred]
    said = catalogue.instructions if catalogue is not None else ""
    return ServerView(
        definition.name,
        server.state,
        server.text,
        definition.source,
        definition.origin,
        definition.transport,
        definition.shown,
        tools=tuple(one.spec.name for one in offered.tools),
        left_out=(*offered.left_out, *(f"{one.name}: {one.reason}" for one in server.left_out)),
        prompts=usages(definition.name, catalogue) if catalogue is not None else (),
        instructions=said,
        tokens=sum(one.tokens for one in sent) + len(said) // CHARACTERS_A_TOKEN,
        deferred=len(offered.tools) - len(sent),
        pid=server.pid,
        last_ms=server.last_ms,
        is_required=definition.is_required,
        samples=definition.samples,
        sandbox=server.sandbox,
        sandbox_reason=server.sandbox_reason,
        has_network=server.has_network,
        kept=server.kept if server.is_confined else None,
        folder=str(server.start_in or definition.cwd or server.root) if definition.transport == "stdio" else "",
    )


ServerOffer: TypeAlias = tuple[ServerConnection, Offered]


class KeptOffers(Struct, eq=False):
    """The offers of one conversation; a request asks for them several times."""

    _versions: list[tuple[str, ServerDefinition, ServerCatalogue]] = field(default_factory=list[Any])
    """Definitions and lists that the offers were made of."""
    _offers: Sequence[ServerOffer] = ()

    def of(self, servers: Sequence[ServerConnection]) -> Sequence[ServerOffer]:
        """Offers of the servers that have a list, in the same order."""
        listed = [(one, catalogue) for one in servers if (catalogue := one.catalogue) is not None]
        versions = [(one.key, one.definition, catalogue) for one, catalogue in listed]
        if versions != self._versions:
            taken: set[str] = set()
            self._versions = versions
            self._offers = [(one, choose_tools(one.definition, catalogue, taken)) for one, catalogue in listed]
        return self._offers
