"""`/route`: the supervisor of a conversation on or off, and the answer to a decision that is open."""

from __future__ import annotations

from typing import Final

from engine.ports import ConversationChanges
from engine.updates import AnswerAlone, StartAgents
from phoenix_tui.features.front_end import FrontEnd, accepted

ON: Final = "A supervisor now chooses who answers: the main model or sub-agents. /route off turns this off."
OFF: Final = "Routing is off; the main model answers."
WRONG: Final = "Give on or off, or start or alone while a decision is open."
NOTHING_OPEN: Final = "No supervisor's decision is open."


async def route(front: FrontEnd, asked: str) -> None:
    """Carry out `/route ASKED`, or toggle the supervisor without an argument."""
    conversation = await front.current()
    asked = asked.lower() or ("off" if conversation.record.supervisor else "on")
    if asked in {"on", "off"}:
        await conversation.change(ConversationChanges(supervisor=asked == "on"))
        why = conversation.routing.why_alone
        on = f"{ON} For now the main model answers alone, because {why}." if why else ON
        front.tell(on if asked == "on" else OFF)
    elif asked not in {"start", "alone"}:
        front.tell(WRONG, bad=True)
    elif conversation.routing.card is None:
        front.tell(NOTHING_OPEN, bad=True)
    else:
        answer = StartAgents() if asked == "start" else AnswerAlone()
        accepted(conversation.routing.answer(conversation.routing.card.id, answer))
