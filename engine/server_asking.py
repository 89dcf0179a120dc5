"""The user of the conversations that are open here, for questions of MCP servers."""

from __future__ import annotations

from msgspec import Struct

from engine.conversation import Conversation
from engine.engine import Engine
from engine.executor.sampling import ServerSampling
from tools.mcp_form import LEFT, FormAnswer, ServerForm
from tools.mcp_sampling import DECLINED, NOT_CALLED, SampleAnswer, SampleRefused, SampleRequest


class ConversationAsker(Struct, frozen=True):
    """Implements `engine.extensions.mcp.server_asks.UserAsker`: for a sub-agent its parent's conversation asks."""

    engine: Engine

    async def ask(self, conversation_id: str, server: str, form: ServerForm) -> FormAnswer:
        """The user's answer; left where the conversation is not open here."""
        conversation = asked_conversation(self.engine, conversation_id)
        return LEFT if conversation is None else await conversation.server_questions.ask(server, form)

    async def sample(self, conversation_id: str, server: str, request: SampleRequest) -> SampleAnswer:
        """See `UserAsker.sample`; the call of the model is the sub-agent's own."""
        conversation = asked_conversation(self.engine, conversation_id)
        calling = next((one for one in self.engine.live() if one.id == conversation_id), None)
        if conversation is None or calling is None:
            raise SampleRefused(NOT_CALLED, DECLINED)
        sampling = ServerSampling(conversation.server_questions.session, calling.server_questions.session)
        return await sampling.answer(server, request)


def asked_conversation(engine: Engine, conversation_id: str) -> Conversation | None:
    """The conversation in which a question is asked: for a sub-agent its parent's; None where it is not open here."""
    opened = {one.id: one for one in engine.live()}
    conversation = opened.get(conversation_id)
    while conversation is not None and (agent := conversation.record.agent) is not None:
        conversation = opened.get(agent.parent_id)
    return conversation
