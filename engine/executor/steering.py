"""Queued messages that the running turn reads behind its next tool results (SPEC REQ-STEER)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from engine.context.message_cap import MOST, words_length
from engine.executor.attaching import attachments
from engine.executor.guarding import inspected
from engine.executor.mentions import UnknownMention, digests
from engine.executor.prompt_hooks import heard_prompt
from engine.executor.requests import Refused
from engine.executor.resource_mentions import resources
from engine.executor.session import Session
from engine.executor.user_requests import message_blocks, why_not_sent, with_attachments
from engine.machine.effects import DrainInbox, Save, StartRun
from engine.machine.messages import NewMessage, Origin, Role, TextBlock
from engine.machine.states import run_of
from engine.ports import DeliverQueued, Write
from engine.records import Delivery, QueuedMessage, StoredMessage

TOLD: Final = (
    "[The user wrote this message while you were working. Take it into account from here on; go on with the task "
    "unless it says otherwise.]"
)
CHIP: Final = "written while the agent worked"
"""Name of the note to the model at the message."""


class SteeredMessage(Struct, frozen=True):
    """A queued message as it will be stored, made ahead: no move waits for a file."""

    text: str
    image_ids: tuple[str, ...]
    message: NewMessage
    writes: tuple[Write, ...]


class QueueView(Protocol):
    """The queue, as far as delivery needs it."""

    waiting: tuple[QueuedMessage, ...]
    held: bool

    @property
    def sending(self) -> bool:
        """True while one of them is being sent: then none is delivered, lest it be both."""
        ...

    def delivered(self, ids: Sequence[str]) -> None:
        """Drop messages that a move has stored."""
        ...


class Steering(Struct, eq=False):
    """Prepares messages for the running turn, and gives them to the move that asks the model again."""

    session: Session
    queue: QueueView
    _ready: dict[str, SteeredMessage] = field(default_factory=dict[str, SteeredMessage])

    async def prepare(self, queued: QueuedMessage) -> Refused | None:
        """Make a message ready; a reason where it cannot be sent. Raises StorageError."""
        session = self.session
        blocks = await message_blocks(session, queued.text, queued.image_ids)
        if why := why_not_sent(session, blocks, len(queued.image_ids)):
            return Refused(why)
        try:
            blocks += await digests(session, queued.text)
        except UnknownMention as error:
            return Refused(str(error))
        heard = await heard_prompt(session, queued.text)
        if heard.refusal:
            return Refused(heard.refusal)
        named = (*await attachments(session, queued.text), *await resources(session, queued.text))
        blocks = with_attachments(blocks, (*named, *heard.attached))
        message_id, length, run = session.ports.ids.new(), words_length(blocks), run_of(session.state)
        blocks, suspected, writes = inspected(session, blocks, message_id, run.id if run is not None else "")
        message = NewMessage(
            message_id,
            Role.USER,
            Origin.HUMAN,
            (*blocks, TextBlock(TOLD, CHIP)),
            original_length=length if length > MOST else None,
            suspected=suspected,
        )
        self._ready[queued.id] = SteeredMessage(queued.text, queued.image_ids, message, writes)
        return None

    def writes(self, saves: Sequence[Save], run_id: str) -> tuple[Write, ...]:
        """Writes for a move that asks the model again within a run: each message leaves the queue as it is stored."""
        boundary = any(isinstance(save, DrainInbox) for save in saves)
        if not boundary or self.queue.held or self.queue.sending or any(isinstance(save, StartRun) for save in saves):
            return ()
        found: list[Write] = []
        for queued in self.queue.waiting:
            ready = self._ready.get(queued.id)
            if queued.delivery is Delivery.TOOL and ready is not None and _is_current(ready, queued):
                found += [DeliverQueued(queued.id, queued.text, ready.message, run_id), *ready.writes]
        return tuple(found)

    def stored(self, writes: Sequence[Write], messages: Sequence[StoredMessage]) -> None:
        """A move is stored: its messages are no longer queued."""
        kept = {message.id for message in messages}
        ids = [one.id for one in writes if isinstance(one, DeliverQueued) and one.message.id in kept]
        for one in ids:
            self._ready.pop(one, None)
        if ids:
            self.queue.delivered(ids)

    def forget(self, waiting: Mapping[str, QueuedMessage]) -> None:
        """Drop what was made for messages that are gone."""
        for one in [key for key in self._ready if key not in waiting]:
            del self._ready[one]


def _is_current(ready: SteeredMessage, queued: QueuedMessage) -> bool:
    return (ready.text, ready.image_ids) == (queued.text, queued.image_ids)
