"""Services of the agent: conversations, and facts about folders and models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from engine.api.conversation import ConversationApi, Unsubscribe
from engine.api.engine import EngineApi
from engine.executor.requests import ConversationOptions, RunCaps
from engine.ports import ModelInfo
from engine.records import AgentFacts, ConversationRecord
from engine.updates import Update
from phoenix_tui.features.custom_commands import CustomCommand

AgentFollower = Callable[[ConversationApi, AgentFacts, Update], None]


class NewSession(Struct, frozen=True):
    """Options of a conversation in a folder, and sentences for the user about that folder."""

    options: ConversationOptions
    notices: tuple[str, ...]


class AcpServices(Protocol):
    """Opened services of one process."""

    @property
    def engine(self) -> EngineApi:
        """Conversations."""
        ...

    async def begin(self, cwd: Path) -> NewSession:
        """Options of a new conversation. Raises CommandError."""
        ...

    async def notices(self, cwd: Path) -> tuple[str, ...]:
        """Sentences about files of a folder that are left out. Raises CommandError."""
        ...

    async def models(self) -> Sequence[ModelInfo]:
        """Models on offer."""
        ...

    def caps(self, record: ConversationRecord) -> RunCaps:
        """Limits of a run."""
        ...

    async def custom_commands(self, cwd: Path) -> Sequence[CustomCommand]:
        """Skills and command files of a folder, as they are now."""
        ...

    async def use_folders(self, record: ConversationRecord, folders: Sequence[str]) -> list[str]:
        """Let files of these folders be read without a question; sentences about those that cannot be used."""
        ...

    def leave_folders(self, conversation_id: str) -> None:
        """Forget the folders of a session that closes."""
        ...

    def use_servers(self, record: ConversationRecord, tables: Mapping[str, object]) -> None:
        """Give a conversation the MCP servers of its client, by name."""
        ...

    async def failed_servers(self, record: ConversationRecord) -> list[str]:
        """Start the MCP servers of a conversation; sentences about those that cannot be used."""
        ...

    async def cost(self, conversation: ConversationApi) -> list[str]:
        """Lines about usage and cost. Raises StorageError."""
        ...

    def follow_agents(self, follower: AgentFollower) -> Unsubscribe:
        """Send `follower` every update of every sub-agent."""
        ...

    async def close(self) -> None:
        """Stop every run and end every program."""
        ...
