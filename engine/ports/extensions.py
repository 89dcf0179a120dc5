"""Tools and prompt texts from elsewhere: skills, servers. A source answers from memory, for each request anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from msgspec import Struct

from engine.records import ConversationRecord
from tools.contract import Tool


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


@runtime_checkable
class ClosingSource(Protocol):
    """A source that holds something for a conversation while it is open."""

    def closed(self, conversation_id: str) -> None:
        """Take the end of a conversation in this process."""
        ...
