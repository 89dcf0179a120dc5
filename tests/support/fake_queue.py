"""A queue in memory: keeps what was asked of it, sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from engine.executor.requests import Accepted, Receipt, Refused, RunCaps
from engine.records import Delivery, QueuedMessage
from engine.updates import QueueChanged


@dataclass
class FakeQueue:
    """`tell` reaches the subscribers of its conversation."""

    tell: Callable[[QueueChanged], None]
    waiting: tuple[QueuedMessage, ...] = ()
    held: bool = False
    went_on: int = 0
    sent_now: list[str] = field(default_factory=list[str])
    refusal: str = ""

    def become(self, *waiting: QueuedMessage, held: bool = False) -> Receipt:
        self.waiting, self.held = waiting, held
        self.tell(QueueChanged(waiting, held))
        return Accepted()

    def _keep(self, waiting: Sequence[QueuedMessage]) -> Receipt:
        return self.become(*waiting, held=self.held)

    async def add(
        self,
        text: str,
        image_ids: Sequence[str] = (),
        caps: RunCaps | None = None,
        *,
        is_shell: bool = False,
        delivery: Delivery = Delivery.IDLE,
    ) -> Receipt:
        if self.refusal:
            return Refused(self.refusal)
        one = QueuedMessage(f"q{len(self.waiting) + 1}", text, tuple(image_ids), is_shell, delivery)
        return self._keep((*self.waiting, one))

    async def deliver(self, message_id: str, delivery: Delivery) -> Receipt:
        return self._keep([replace(one, delivery=delivery) if one.id == message_id else one for one in self.waiting])

    async def edit(self, message_id: str, text: str) -> Receipt:
        return self._keep([replace(one, text=text) if one.id == message_id else one for one in self.waiting])

    async def move(self, message_id: str, place: int) -> Receipt:
        others = [one for one in self.waiting if one.id != message_id]
        others.insert(max(place, 0), next(one for one in self.waiting if one.id == message_id))
        return self._keep(others)

    async def remove(self, message_id: str) -> Receipt:
        return self._keep([one for one in self.waiting if one.id != message_id])

    async def go_on(self, caps: RunCaps | None = None) -> Receipt:
        self.went_on += 1
        return self.become(*self.waiting[1:])

    async def send_now(self, message_id: str = "", caps: RunCaps | None = None) -> Receipt:
        chosen = message_id or self.waiting[0].id
        self.sent_now.append(chosen)
        return await self.remove(chosen)
