"""Messages of a host that arrive during a run: its model reads them with its next tool results, or they wait."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from engine.conversation import Conversation
from engine.executor.requests import Refused, RunCaps
from engine.machine.states import is_busy
from engine.records import Delivery
from phoenix_tui.cli.control.user_message import HostMessage


class SteeredMessages(Struct, eq=False):
    """Offers messages to the run of one conversation, and takes back what it has not read."""

    conversation: Conversation
    delivered: list[HostMessage] = field(default_factory=list[HostMessage])
    """Messages that the present run has read, in order."""
    _offered: dict[str, HostMessage] = field(default_factory=dict[str, HostMessage])
    """Messages that it has not read yet, by their ids in the queue."""

    @property
    def waiting(self) -> list[HostMessage]:
        """Messages that were offered and not read."""
        return list(self._offered.values())

    async def offer(self, message: HostMessage, text: str, image_ids: Sequence[str], caps: RunCaps) -> bool:
        """Give a message to the run; False where it has to wait for a turn of its own."""
        queue = self.conversation.queue
        if not is_busy(self.conversation.state):
            return False
        before = {one.id for one in queue.waiting}
        receipt = await queue.add(text, image_ids, caps, delivery=Delivery.TOOL)
        if isinstance(receipt, Refused):
            return False
        added = next((one for one in queue.waiting if one.id not in before), None)
        if added is None:
            return True  # read already
        self._offered[added.id] = message
        self.hold_at_rest()  # the run may have ended meanwhile
        if added.delivery is Delivery.TOOL and not queue.held:
            return True
        del self._offered[added.id]
        await queue.remove(added.id)
        return False

    def saved(self) -> HostMessage | None:
        """The message that the run has read now; None where it was none of these."""
        if not self._offered:
            return None
        message = self._offered.pop(next(iter(self._offered)))
        self.delivered.append(message)
        return message

    def hold_at_rest(self) -> None:
        """Let a conversation at rest send none of them by itself: each gets a turn and a result of its own."""
        if self._offered and not is_busy(self.conversation.state):
            self.conversation.queue.hold()

    async def drop(self, uuid: str) -> bool:
        """Take one out of the queue for good; False where none of this id is in it."""
        found = next((queued for queued, message in self._offered.items() if message.uuid == uuid), None)
        if found is None:
            return False
        del self._offered[found]
        await self.conversation.queue.remove(found)
        return True

    async def take_back(self) -> list[HostMessage]:
        """Take out of the queue what the run has not read, in order."""
        left, self._offered = self._offered, {}
        for queued_id in left:
            await self.conversation.queue.remove(queued_id)
        return list(left.values())

    def begin(self) -> None:
        """Forget what the former run has read."""
        self.delivered = []
