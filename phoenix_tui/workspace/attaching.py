"""Images for the next message: attached to the conversation in which they were dropped, and sent with that message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from engine.api.conversation import ConversationApi
from engine.api.errors import ENGINE_ERRORS
from engine.records import Attachment
from phoenix_tui.features.draft_codec import Unsent
from phoenix_tui.features.image_files import attach_image
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.workspace.active_conversation import ActiveConversation

LONGEST: Final = 10.0
"""Seconds that a message waits for images that were dropped before its Enter: a network disk may hang."""


class Place:
    """A message being written, to which images that are still being read belong."""

    def __init__(self) -> None:
        self.under_way = 0
        self.attached: list[Attachment] = []
        self.is_sent = False
        """True once its Enter was pressed: it takes its images itself."""
        self.settled = asyncio.Event()
        """Set while none is being read."""
        self.settled.set()


class Attaching:
    """Reads images while other keys are pressed, none of which makes them part of another message."""

    def __init__(self, active: ActiveConversation, toasts: Notifier) -> None:
        self._active = active
        self._toasts = toasts
        self._place = Place()
        self._departures = 0

    @property
    def place(self) -> Place:
        """The message being written now."""
        if self._departures != self._active.drafts.departures.count:
            self._departures, self._place = self._active.drafts.departures.count, Place()
        return self._place

    async def attach(self, images: Sequence[Path | bytes]) -> None:
        """Add images to the message being written."""
        active, place = self._active, self.place
        with active.in_flight.one():  # a conversation without anything else stays until it has them
            async with _under_way(place):
                try:
                    conversation = await active.current()  # before reading: another may come into view meanwhile
                except ENGINE_ERRORS as error:
                    self._toasts.tell(str(error), bad=True)
                    return
                for image in images:
                    try:
                        attachment = await attach_image(conversation, image)
                    except ENGINE_ERRORS as error:
                        self._toasts.tell(str(error), bad=True)
                    else:
                        await self._add(conversation, place, attachment)

    def take(self) -> Place:
        """Take the message being written with its images, as it is sent."""
        place, self._place = self.place, Place()
        chips = self._active.parts.dock.chips
        place.attached[:0], chips.images, place.is_sent = chips.images, (), True
        return place

    async def _add(self, conversation: ConversationApi, place: Place, attachment: Attachment) -> None:
        active = self._active
        if place.is_sent:
            place.attached.append(attachment)
            return
        async with active.changing:
            chips, departures = active.parts.dock.chips, active.drafts.departures
            if conversation is not active.conversation:
                active.forget_images(conversation.id)
                await active.drafts.add(conversation, Unsent("", (attachment.id,)))
            elif departures.are_waiting:
                departures.give_back(Unsent(""), (attachment,))
            else:
                chips.images = (*chips.images, attachment)


@asynccontextmanager
async def _under_way(place: Place) -> AsyncGenerator[None]:
    place.under_way += 1
    place.settled.clear()
    try:
        yield
    finally:
        place.under_way -= 1
        if not place.under_way:
            place.settled.set()


async def images_of(place: Place) -> tuple[Attachment, ...]:
    """The images of a message that is sent, once they are read; those that take longer than `LONGEST` stay behind."""
    try:
        async with asyncio.timeout(LONGEST):
            await place.settled.wait()
    except TimeoutError:
        place.is_sent = False
    return tuple(place.attached)
