"""MCP servers that the test sets, without processes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from engine.ports.mcp import ServerDefinition, ServerOrigin, ServerState, ServerView
from engine.records import ConversationRecord


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


class FakeServers:
    """Implements `engine.ports.mcp.McpServers`."""

    def __init__(self, *views: ServerView, notices: Sequence[str] = ()) -> None:
        self.all, self.said = list(views), notices
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

    async def reconnect(self, record: ConversationRecord, name: str) -> None:
        """Connect a server."""
        self.done.append(f"reconnect {name}")
        self._set(name, ServerState.CONNECTED)

    async def end(self, record: ConversationRecord, name: str) -> None:
        """End a server."""
        self.done.append(f"end {name}")
        self._set(name, ServerState.WAITING)

    async def details(self, record: ConversationRecord, name: str) -> ServerView | None:
        """One server with a log."""
        view = next((one for one in self.all if one.name == name), None)
        return replace(view, log=("info: started",)) if view is not None else None

    def _set(self, name: str, state: ServerState) -> None:
        self.all = [replace(one, state=state, text="") if one.name == name else one for one in self.all]
