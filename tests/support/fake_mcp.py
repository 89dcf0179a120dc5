"""MCP servers that the test sets, without processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.ports.mcp import (
    PromptField,
    ServerDefinition,
    ServerOrigin,
    ServerPrompt,
    ServerResource,
    ServerState,
    ServerTextError,
    ServerView,
    SignInAddress,
)
from engine.records import ConversationRecord
from tools.contract import ToolOutput

if TYPE_CHECKING:
    pass


def a_server(name: str = "files", state: ServerState = ServerState.CONNECTED, text: str = "") -> ServerView:
    """A server with two tools."""
    return ServerView(
        name,
        state,
        text,
        "/home/me/config.toml",
        ServerOrigin.USER,
        shown="npx -y server-filesystem .",
        tools=(f"mcp__{name}__read", f"mcp__{name}__write"),
        instructions="Use with care.",
        tokens=1_234,
        last_ms=12,
    )


GREET = ServerPrompt("mcp__files__greet", "files", "greet", "Greets.", (PromptField("tone", required=True),))
PLAN = ServerPrompt("mcp__files__plan", "files", "plan")


class FakeTexts:
    """Implements `engine.ports.mcp.ServerTexts` for a server `files`."""

    def __init__(self, *prompts: ServerPrompt, resources: Sequence[ServerResource] = ()) -> None:
        self.all, self.listed = prompts, resources
        self.trouble = ""

    def prompts(self, record: ConversationRecord) -> Sequence[ServerPrompt]:
        """All of them."""
        return self.all

    async def look(self, record: ConversationRecord) -> None:
        """Find nothing new."""

    async def prompt(self, record: ConversationRecord, command: str) -> ServerPrompt | None:
        """One by its command."""
        return next((one for one in self.all if one.command == command), None)

    async def render(self, record: ConversationRecord, prompt: ServerPrompt, values: Mapping[str, str]) -> ToolOutput:
        """Name it and its values."""
        return ToolOutput(f"{prompt.prompt} {dict(values)}")

    async def values(
        self, record: ConversationRecord, prompt: ServerPrompt, field: str, value: str, others: Mapping[str, str]
    ) -> Sequence[str]:
        """Tones."""
        return [one for one in ("warm", "wary", "very cold") if one.startswith(value)]

    def names(self, record: ConversationRecord) -> Sequence[str]:
        """The server."""
        return ["files"]

    def resource_servers(self, record: ConversationRecord) -> Sequence[str]:
        """The server, where it has any."""
        return ["files"] if self.listed or self.trouble else []

    async def resources(self, record: ConversationRecord, server: str) -> Sequence[ServerResource]:
        """All of them."""
        if self.trouble:
            raise ServerTextError(self.trouble)
        return self.listed

    async def read(self, record: ConversationRecord, server: str, uri: str) -> ToolOutput:
        """Name it."""
        return ToolOutput(f"content of {uri}")


class FakeSignIns:
    """Implements `engine.ports.mcp.SignIns`."""

    def __init__(self, servers: FakeServers) -> None:
        self._servers = servers
        self.address: SignInAddress | str = SignInAddress("https://login.example.com/a?state=s", "login.example.com")

    async def begin(self, record: ConversationRecord, name: str) -> SignInAddress | str:
        """The address of the test."""
        return self.address

    async def paste(self, record: ConversationRecord, name: str, url: str) -> str:
        """Connect the server for the right address."""
        self._servers.done.append(f"paste {url}")
        if "code=" not in url:
            return "It has no code."
        await self._servers.reconnect(record, name)
        return ""

    async def forget(self, record: ConversationRecord, name: str) -> str:
        """Note it."""
        self._servers.done.append(f"forget {name}")
        return ""


class FakeServers:
    """Implements `engine.ports.mcp.McpHub`."""

    def __init__(self, *views: ServerView, notices: Sequence[str] = (), texts: FakeTexts | None = None) -> None:
        self.all, self.said = list(views), notices
        self.texts = texts or FakeTexts()
        self.sign_ins = FakeSignIns(self)
        self.choices = self
        self.settled: list[ServerView] = []
        """Views once they have settled, where they change."""
        self.done: list[str] = []
        self.given: dict[str, tuple[ServerDefinition, ...]] = {}

    async def views(self, record: ConversationRecord) -> Sequence[ServerView]:
        """All of them."""
        return tuple(self.all)

    async def notices(self, record: ConversationRecord) -> Sequence[str]:
        """Sentences of the test."""
        return self.said

    def give(self, conversation_id: str, servers: Sequence[ServerDefinition]) -> None:
        """Note them."""
        self.given[conversation_id] = tuple(servers)

    async def settle(self, record: ConversationRecord, seconds: float) -> None:
        """Note it."""
        self.done.append("settle")
        self.all = self.settled or self.all

    async def reconnect(self, record: ConversationRecord, name: str) -> None:
        """Connect a server."""
        self.done.append(f"reconnect {name}")
        self._set(name, ServerState.CONNECTED)

    async def end(self, record: ConversationRecord, name: str) -> None:
        """End a server."""
        self.done.append(f"end {name}")
        self._set(name, ServerState.WAITING)

    async def switch(self, record: ConversationRecord, name: str, *, on: bool) -> None:
        """Switch a server off for good, or on."""
        self.done.append(f"{'on' if on else 'off'} {name}")
        state = ServerState.CONNECTED if on else ServerState.OFF
        self.all = [replace(one, state=state, is_off=not on) if one.name == name else one for one in self.all]

    async def allow_secrets(self, record: ConversationRecord, name: str) -> None:
        """Give a server its secrets."""
        self.done.append(f"allow {name}")
        self.all = [
            replace(one, state=ServerState.CONNECTED, secrets=()) if one.name == name else one for one in self.all
        ]

    async def details(self, record: ConversationRecord, name: str) -> ServerView | None:
        """One server with a log."""
        view = next((one for one in self.all if one.name == name), None)
        return replace(view, log=("info: started",)) if view is not None else None

    def _set(self, name: str, state: ServerState) -> None:
        self.all = [replace(one, state=state, text="") if one.name == name else one for one in self.all]
