"""Texts of MCP servers for a user's message: prompts as `/mcp__SERVER__PROMPT`, resources as `@SERVER:URI`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from engine.records import ConversationRecord
from tools.contract import ToolOutput


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
