"""MCP servers that the client of one conversation brings along, beside those of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from engine.ports.mcp import FolderServers, ServerDefinition
from engine.records import ConversationRecord


class GivenServers:
    """Definitions by conversation; its sub-agents have them too."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[ServerDefinition, ...]] = {}

    def put(self, conversation_id: str, servers: Sequence[ServerDefinition]) -> None:
        """Take these in the place of those given before."""
        self._given[conversation_id] = tuple(servers)

    def over(self, folder: FolderServers, record: ConversationRecord) -> FolderServers:
        """The servers of a conversation: those of its client win over others of the same name."""
        given = self._given.get(record.id)
        if given is None and record.agent is not None:
            given = self._given.get(record.agent.parent_id)
            if given is not None:
                self._given[record.id] = given
        if not given:
            return folder
        names = {one.name for one in given}
        others = (one for one in folder.servers if one.name not in names)
        return replace(folder, servers=tuple(sorted((*given, *others), key=lambda one: one.name)))

    def of(self, conversation_ids: Iterable[str]) -> tuple[ServerDefinition, ...]:
        """All that clients of these conversations bring along."""
        return tuple(one for own in conversation_ids for one in self._given.get(own, ()))

    def forget(self, conversation_id: str) -> None:
        """Drop those of a conversation that is closed."""
        self._given.pop(conversation_id, None)
