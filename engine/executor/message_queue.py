"""The user's queue: messages that are sent one by one whenever the conversation comes to rest (SPEC DOM-04)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.context.assemble import MOST, words_length
from engine.executor.attaching import UnknownMention, read_attachments, read_digests, read_resources
from engine.executor.event_hooks import ask_prompt_hooks
from engine.executor.expanding import calls_something
from engine.executor.guarding import check_message, inspect_message
from engine.executor.loop import MoveLoop
from engine.executor.requests import Accepted, Receipt, Refused, RunCaps, shell_line
from engine.executor.session import Deliveries, Session
from engine.executor.user_requests import explain_not_sent, load_message_blocks, run_shell, send, with_attachments
from engine.machine.effects import DrainInbox, Save, StartRun
from engine.machine.messages import NewMessage, Origin, Role, TextBlock
from engine.machine.states import Errored, Idle, is_busy, run_of
from engine.ports import DeliverQueued, StorageError, Write
from engine.records import Delivery, QueuedMessage, StoredMessage
from engine.updates import Noticed, QueueChanged, RunEnded, StateChanged, Update

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


class Steering(Struct, eq=False):
    """Prepares messages for the running turn, and gives them to the move that asks the model again."""

    session: Session
    queue: MessageQueue
    _ready: dict[str, SteeredMessage] = field(default_factory=dict[str, SteeredMessage])

    async def prepare(self, queued: QueuedMessage) -> Refused | None:
        """Make a message ready; a reason where it cannot be sent. Raises StorageError."""
        session = self.session
        blocks = await load_message_blocks(session, queued.text, queued.image_ids)
        if why := explain_not_sent(session, blocks, len(queued.image_ids)):
            return Refused(why)
        try:
            blocks += await read_digests(session, queued.text)
        except UnknownMention as error:
            return Refused(str(error))
        heard = await ask_prompt_hooks(session, queued.text)
        if heard.refusal:
            return Refused(heard.refusal)
        named = (*await read_attachments(session, queued.text), *await read_resources(session, queued.text))
        blocks = with_attachments(blocks, (*named, *heard.attached))
        message_id, length, run = session.ports.ids.new(), words_length(blocks), run_of(session.state)
        blocks, suspected, writes = inspect_message(session, blocks, message_id, run.id if run is not None else "")
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
            is_current = ready is not None and (ready.text, ready.image_ids) == (queued.text, queued.image_ids)
            if queued.delivery is Delivery.TOOL and ready is not None and is_current:
                found += [DeliverQueued(queued.id, queued.text, ready.message, run_id), *ready.writes]
        return tuple(found)

    def note_stored(self, writes: Sequence[Write], messages: Sequence[StoredMessage]) -> None:
        """A move is stored: its messages are no longer queued."""
        kept = {message.id for message in messages}
        ids = [one.id for one in writes if isinstance(one, DeliverQueued) and one.message.id in kept]
        for one in ids:
            self._ready.pop(one, None)
        if ids:
            self.queue.drop_delivered(ids)

    def forget(self, waiting: Mapping[str, QueuedMessage]) -> None:
        """Drop what was made for messages that are gone."""
        for one in [key for key in self._ready if key not in waiting]:
            del self._ready[one]


NOTHING_QUEUED = "There is nothing to queue; write a message first."
GONE = "This message is no longer in the queue."
SHELL_WAITS = "A shell command waits until the agent is done."
NOT_WORKING = "No turn is running that could read it."
CALL_WAITS = "The call of a skill or command waits until the turn is over; it is sent then."
MOST_WAITING = 100


class MessageQueue:
    """Queued messages, changed in one transaction each; a stop, an error or a restart holds them for the user."""

    def __init__(self, session: Session, loop: MoveLoop) -> None:
        self.waiting: tuple[QueuedMessage, ...] = ()
        self.held = False
        """True when reaching idle sends nothing."""
        self._told = False
        """True when subscribers know a non-empty queue: an emptied one is reported, held or not."""
        self._session = session
        self._loop = loop
        self._caps = RunCaps()
        self._lock = asyncio.Lock()
        self._sending: asyncio.Task[None] | None = None
        self._gone: set[str] = set()
        """Messages that a move has delivered while the queue was being changed."""
        self.steering = Steering(session, self)
        session.moves.steering = Deliveries(self.steering.writes, self.steering.note_stored)
        session.publisher.add(self._follow)

    async def load(self) -> None:
        """Read the messages that a former process left; they wait for the user (SPEC DEC-03)."""
        found = await self._session.ports.queue.read_queue(self._session.record.id)
        self.waiting = tuple(replace(one, delivery=Delivery.IDLE) for one in found)
        self.held = self._told = bool(self.waiting)

    async def add(
        self,
        text: str,
        image_ids: Sequence[str] = (),
        caps: RunCaps | None = None,
        *,
        is_shell: bool = False,
        delivery: Delivery = Delivery.IDLE,
    ) -> Receipt:
        """Queue a message or a shell line; where nothing runs and nothing holds the queue it is sent at once.

        With `Delivery.TOOL` the running turn reads it behind its next tool results; a shell line always waits, and so
        does the call of a skill or command, which may have lines and rules of its own.
        """
        if not text.strip() and not image_ids:
            return Refused(NOTHING_QUEUED)
        if not is_shell and (why := check_message(self._session, text)):
            return Refused(why)
        if len(self.waiting) >= MOST_WAITING:
            return Refused(f"The queue is full ({MOST_WAITING} messages); send or remove some first.")
        if not self.waiting:
            self.held = isinstance(self._session.state, Errored)  # the former reason for holding is over
        self._caps = caps or RunCaps()
        waits = is_shell or calls_something(self._session, text)
        steers = delivery is Delivery.TOOL and not waits and is_busy(self._session.state)
        chosen = Delivery.TOOL if steers else Delivery.IDLE
        message = QueuedMessage(self._session.ports.ids.new(), text, tuple(image_ids), is_shell, chosen)
        if (why_not := await self._prepare(message)) is not None:
            return why_not
        receipt = await self._change(lambda waiting: (*waiting, message))
        self._send_if_idle()
        return receipt

    async def deliver(self, message_id: str, delivery: Delivery) -> Receipt:
        """Choose when a waiting message is sent; a shell line always waits until the conversation is idle."""
        found = next((one for one in self.waiting if one.id == message_id), None)
        if found is None:
            return Refused(GONE)
        if delivery is Delivery.TOOL and found.is_shell:
            return Refused(SHELL_WAITS)
        if delivery is Delivery.TOOL and calls_something(self._session, found.text):
            return Refused(CALL_WAITS)
        if delivery is Delivery.TOOL and not is_busy(self._session.state):
            return Refused(NOT_WORKING)
        if (why_not := await self._prepare(replace(found, delivery=delivery))) is not None:
            return why_not

        def choose(waiting: tuple[QueuedMessage, ...]) -> tuple[QueuedMessage, ...]:
            return tuple(replace(one, delivery=delivery) if one.id == message_id else one for one in waiting)

        return await self._change(choose, message_id)

    async def edit(self, message_id: str, text: str) -> Receipt:
        """Give a waiting message another text; without text and images it goes. A shell line keeps its `!`."""
        if not text.startswith("!") and (why := check_message(self._session, text)):
            return Refused(why)
        found = next((one for one in self.waiting if one.id == message_id), None)
        if found is not None and text.strip() and (why_not := await self._prepare(replace(found, text=text))):
            return why_not

        def edit(waiting: tuple[QueuedMessage, ...]) -> tuple[QueuedMessage, ...]:
            return tuple(
                replace(one, text=text, is_shell=one.is_shell and text.startswith("!")) if one.id == message_id else one
                for one in waiting
                if one.id != message_id or text.strip() or one.image_ids
            )

        return await self._change(edit, message_id)

    async def move(self, message_id: str, place: int) -> Receipt:
        """Put a waiting message at this place, counted from 0; beyond an end it stops there."""

        def move(waiting: tuple[QueuedMessage, ...]) -> tuple[QueuedMessage, ...]:
            others = [one for one in waiting if one.id != message_id]
            [found] = [one for one in waiting if one.id == message_id]
            others.insert(max(place, 0), found)
            return tuple(others)

        return await self._change(move, message_id)

    async def remove(self, message_id: str) -> Receipt:
        """Take a waiting message out."""
        return await self._change(lambda waiting: tuple(one for one in waiting if one.id != message_id), message_id)

    async def go_on(self, caps: RunCaps | None = None) -> Receipt:
        """Release the queue; the first message is sent now or when the run is over."""
        self._caps = caps or self._caps
        self.release()
        self._send_if_idle()
        return Accepted()

    async def send_now(self, message_id: str = "", caps: RunCaps | None = None) -> Receipt:
        """Stop the current run and send this one, or the first; the rest follows after the answer."""
        if not self.waiting:
            return Refused(GONE)
        receipt = await self.move(message_id or self.waiting[0].id, 0)
        if isinstance(receipt, Accepted):
            self.hold()
            self._loop.runner.cancel()
            await self._loop.wait_idle()
            receipt = await self.go_on(caps)
        return receipt

    def hold(self) -> None:
        """Hold the queue until the user releases it."""
        if self._sending is not None or is_busy(self._session.state):
            self._stop_sending()

    def _stop_sending(self) -> None:
        if not self.held:
            self.held = True
            # A message for the stopped turn waits for the user like all others.
            self.waiting = tuple(replace(one, delivery=Delivery.IDLE) for one in self.waiting)
            self._tell()

    def release(self) -> None:
        """Let reaching idle send again."""
        if self.held:
            self.held = False
            self._tell()

    @property
    def sending(self) -> bool:
        """True while one of them is being sent."""
        return self._sending is not None

    def drop_delivered(self, ids: Sequence[str]) -> None:
        """Drop messages that a move has stored."""
        self._gone = {*(self._gone if self._lock.locked() else ()), *ids}
        self.waiting = tuple(one for one in self.waiting if one.id not in self._gone)
        self._tell()

    async def _prepare(self, message: QueuedMessage) -> Refused | None:
        """Make a message ready for the running turn; the reason where it cannot be sent."""
        if message.delivery is not Delivery.TOOL:
            return None
        try:
            return await self.steering.prepare(message)
        except StorageError as error:
            return Refused(str(error))

    async def close(self) -> None:
        """Send nothing more."""
        if self._sending is not None:
            self._sending.cancel()
            with suppress(asyncio.CancelledError):
                await self._sending

    async def _change(
        self, change: Callable[[tuple[QueuedMessage, ...]], tuple[QueuedMessage, ...]], message_id: str = ""
    ) -> Receipt:
        session = self._session
        if session.read_only:
            return Refused(session.read_only)
        async with self._lock:
            if message_id and all(one.id != message_id for one in self.waiting):
                return Refused(GONE)
            known = {one.id for one in self.waiting}
            waiting = change(self.waiting)
            try:
                await session.ports.queue.keep_queue(session.record.id, waiting, session.ports.clock.now(), known)
            except StorageError as error:
                return Refused(str(error))
            self.waiting = tuple(one for one in waiting if one.id not in self._gone)
            self.steering.forget({one.id: one for one in self.waiting})
            self._tell()
        return Accepted(message_id)

    def _follow(self, update: Update) -> None:
        match update:
            case RunEnded(status=status) if status != "success":
                self._stop_sending()  # the state is past the run already
            case StateChanged(state=Errored()):
                self._stop_sending()
            case StateChanged(state=Idle()):
                self._send_if_idle()
            case _:
                pass  # only the end of a run matters here

    def _send_if_idle(self) -> None:
        ready = self.waiting and not self.held and isinstance(self._session.state, Idle)
        if ready and self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_first())
            self._sending.add_done_callback(self._continue)

    def _continue(self, task: asyncio.Task[None]) -> None:
        self._sending = None
        if not task.cancelled():
            self._send_if_idle()

    async def _send_first(self) -> None:
        async with self._lock:
            if not self.waiting or self.held:
                return
            first = self.waiting[0]
            try:
                if first.is_shell:
                    receipt = await run_shell(self._session, *shell_line(first.text), first.id)
                else:
                    receipt = await send(self._session, first.text, first.image_ids, self._caps, first.id)
            except StorageError as error:
                receipt = Refused(str(error))
            if isinstance(receipt, Accepted):
                self.waiting = self.waiting[1:]
            elif not is_busy(self._session.state):  # otherwise another sender was first: retry when idle again
                self.held = True
                self._session.publisher.publish(Noticed(f"The queue is paused: {receipt.reason}"))
            self._tell()

    def _tell(self) -> None:
        if self.waiting or self._told or not self.held:
            self._told = bool(self.waiting)
            self._session.publisher.publish(QueueChanged(self.waiting, self.held))
