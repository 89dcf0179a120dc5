"""The user of the conversations that are open here, for questions of MCP servers."""

from __future__ import annotations

from msgspec import Struct

from engine.engine import Engine
from tools.mcp_form import LEFT, FormAnswer, ServerForm


class ConversationAsker(Struct, frozen=True):
    """Implements `engine.extensions.mcp.server_asks.UserAsker`: for a sub-agent its parent's conversation asks."""

    engine: Engine

    async def ask(self, conversation_id: str, server: str, form: ServerForm) -> FormAnswer:
        """The user's answer; left where the conversation is not open here."""
        opened = {one.id: one for one in self.engine.live()}
        conversation = opened.get(conversation_id)
        while conversation is not None and (agent := conversation.record.agent) is not None:
            conversation = opened.get(agent.parent_id)
        return LEFT if conversation is None else await conversation.server_questions.ask(server, form)
