"""A message that was not sent: back to the composer, or to the draft of its conversation where that is out of view."""

from __future__ import annotations

from collections.abc import Sequence

from engine.api.conversation import ConversationApi
from engine.records import Attachment
from phoenix_tui.features.draft_codec import Unsent
from phoenix_tui.workspace.active_conversation import ActiveConversation


async def give_back(
    active: ActiveConversation, conversation: ConversationApi | None, text: str, images: Sequence[Attachment] = ()
) -> bool:
    """Put a text before the one written since; True if that is in the composer.

    Decided while no other conversation comes into view: the composer would belong to that one.
    """
    with active.in_flight.one():  # a conversation without anything else stays until it has this
        async with active.changing:
            if conversation is None or conversation is active.conversation:
                dock, departures = active.parts.dock, active.drafts.departures
                if departures.are_waiting:  # the composer belongs to a conversation that comes next
                    departures.give_back(Unsent(text), images)
                    return False
                dock.composer.give_back(text)
                dock.chips.images = (*images, *dock.chips.images)
                return True
            active.forget_images(conversation.id)
            await active.drafts.add(conversation, Unsent(text, tuple(image.id for image in images)))
            return False
