"""`/route`: the supervisor of a conversation on or off, and the answer to a decision that is open."""

from __future__ import annotations

from typing import Final

from engine.api.conversation import ConversationApi
from engine.executor.requests import Receipt, Refused
from engine.ports import ConversationChanges
from engine.routes import AnswerAlone, StartAgents

ON: Final = "A supervisor decides who answers here: the main model, or sub-agents. /route off ends that."
OFF: Final = "The main model answers here."
WRONG: Final = "/route takes on or off, and start or alone while a decision is open."
NOTHING_OPEN: Final = "No decision of a supervisor is open."


async def change_route(conversation: ConversationApi, asked: str) -> Receipt | str:
    """Carry out `/route ASKED`, or turn the supervisor over where nothing is asked; give what to say, or why not."""
    asked = asked.lower() or ("off" if conversation.record.supervisor else "on")
    if asked in {"on", "off"}:
        await conversation.change(ConversationChanges(supervisor=asked == "on"))
        if asked == "off":
            return OFF
        why = conversation.routing.why_alone
        return f"{ON} For now the main model answers alone: {why}." if why else ON
    if asked not in {"start", "alone"}:
        return Refused(WRONG)
    card = conversation.routing.card
    if card is None:
        return Refused(NOTHING_OPEN)
    return conversation.routing.answer(card.id, StartAgents() if asked == "start" else AnswerAlone())
