"""Turns of a run that a host drives: each message of the user becomes a run and a result, one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.engine import Engine
from engine.executor.requests import Refused, RunCaps
from engine.machine.messages import Origin
from engine.machine.states import Errored, StopCause, is_busy
from engine.ports import ConversationChanges, DatabaseBusy, ProviderError, StorageError
from engine.records import Delivery
from engine.updates import ApprovalAsked, CallEnded, MessageSaved, RunEnded, Snapshot, StateChanged, Update
from phoenix_tui.cli.control.approvals import HostApprovals
from phoenix_tui.cli.control.frames import HostMessage
from phoenix_tui.cli.control.options import HostOptions
from phoenix_tui.cli.control.reporter import (
    INTERRUPTED,
    INTERRUPTED_TOOL,
    ControlReporter,
    describe_deferred,
    is_api_failure,
    is_stopped_in_tool,
    name_failure,
    result_frame,
    store_notice,
)
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.headless import StructuredAnswer
from phoenix_tui.cli.outcome import RunOutcome, Used
from phoenix_tui.config.claude_settings import translate_model
from tools.contract import ImageRejected, JsonObject

ModelFinder: TypeAlias = Callable[[str], Awaitable[str]]
"""Finds PROVIDER/MODEL of a reference. Raises ProviderError."""


BUSY: Final = frozenset({"overloaded", "rate_limit", "server"})
"""Kinds of failures after which another model is asked."""
TOLD: Final = "phoenix: {model} failed ({kind}); {other} answers this turn."


class Fallback(Struct, eq=False):
    """The other model of one conversation."""

    reference: str
    """Value of the flag; empty: there is none."""
    find_model: ModelFinder
    say: Callable[[str], None]
    """Writes a line for the user."""
    _before: str = ""
    """Model to go back to; empty while the conversation has its own."""

    async def tries(self, conversation: Conversation, failed: Errored | None, caps: RunCaps) -> bool:
        """Run a failed turn again with the other model; False where that is no way out."""
        if not self.reference or self._before or failed is None or failed.kind not in BUSY:
            return False
        model = conversation.record.model
        try:
            other = await self.find_model(translate_model(self.reference))
        except ProviderError as error:
            self.say(f"phoenix: --fallback-model cannot be used: {error.message}")
            return False
        if other == model:
            return False
        await conversation.change(ConversationChanges(model=other))
        self._before = model
        self.say(TOLD.format(model=model, kind=failed.kind, other=other))
        return not isinstance(await conversation.retry(caps), Refused)

    async def leave(self, conversation: Conversation) -> None:
        """Go back to the model from before, unless the host has chosen one since."""
        if self._before and conversation.record.model == await self.find_model(translate_model(self.reference)):
            await conversation.change(ConversationChanges(model=self._before))
        self._before = ""


@dataclass(slots=True)
class TurnStart:
    """The begin of a turn, which an interruption ends before there is a run to stop."""

    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by an interruption of the present turn."""
    _ready: asyncio.Future[str] | None = None

    async def wait(self, ready: Callable[[], Awaitable[str]]) -> str:
        """Reason why the turn cannot begin; empty where it can, or is interrupted.

        What an interruption leaves unready goes on: the next turn waits for the same.
        """
        if self._ready is None or self._ready.done():
            self._ready = asyncio.ensure_future(ready())
        stopped = asyncio.ensure_future(self.interrupted.wait())
        await asyncio.wait((self._ready, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        return self._ready.result() if self._ready.done() else ""

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._ready is not None:
            self._ready.cancel()


@dataclass(slots=True)
class SteeredMessages:
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

    def note_read(self) -> HostMessage | None:
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


MOST_WAITING: Final = 1_000
"""Messages that may wait for their turn."""
MOST_BYTES: Final = 64 << 20
"""Bytes of all of them."""
STOPPING: Final = 2.0
"""Seconds a stopped run gets to end properly."""
IMAGE_LEFT_OUT: Final = "[an image was left out: {reason}]"
EMPTY: Final = "The message is empty: send a text or an image."
NO_MORE_BUDGET: Final = "The --max-budget-usd limit is used up."


@dataclass(slots=True)
class Turns:
    """The messages of one connection, and their results."""

    engine: Engine
    conversation: Conversation
    reporter: ControlReporter
    approvals: HostApprovals
    outcome: RunOutcome
    options: HostOptions
    caps: RunCaps
    """Limits of each run; the budget is that of the connection."""
    structured: StructuredAnswer
    """The answer of `--json-schema`."""
    fallback: Fallback
    init: Callable[[], JsonObject]
    """The init frame as it is now."""
    ready: Callable[[], Awaitable[str]]
    """Waits until a turn may begin; returns why it cannot."""
    stopped_by: Exit | None = None
    """The signal that ended it, as its exit code."""
    last: RunOutcome | None = None
    """The outcome of the newest turn."""
    seqs: dict[str, int] = field(default_factory=dict[str, int])
    """Places of the host's messages in the conversation, by their ids."""
    steered: SteeredMessages = field(init=False)
    _start: TurnStart = field(default_factory=TurnStart)
    _waiting: deque[HostMessage] = field(default_factory=deque[HostMessage])
    _bytes: int = 0
    _offering: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a message goes over to the run, when it is in neither queue or may still come into both."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _is_closed: bool = False
    _runs: int = 0
    _used: Used = field(default_factory=Used)
    _cost: float | None = 0.0
    _uuids: tuple[str, ...] = ()
    _started: float = 0.0
    _state: str = "idle"
    _asked: int = 0
    """Questions that the host has not answered yet."""
    _is_error: bool = False
    """True where the newest result is one."""

    def __post_init__(self) -> None:
        self.steered = SteeredMessages(self.conversation)

    def add(self, message: HostMessage) -> str:
        """Let a message wait for its turn; returns why it cannot. One behind the end is left out."""
        if self.stopped_by is not None:
            return ""
        if len(self._waiting) >= MOST_WAITING or self._bytes + message.size > MOST_BYTES:
            return f"more than {MOST_WAITING} messages, or {MOST_BYTES >> 20} MB of them, wait for their turn"
        self._bytes += message.size
        self._waiting.append(message)
        self._changed.set()
        return ""

    def close(self) -> None:
        """Take no more messages: those that wait are still answered."""
        self._is_closed = True
        self._changed.set()

    def stop(self, code: Exit | None = None) -> None:
        """Stop the run under way; with an exit code, everything."""
        if code is not None:
            self.stopped_by = self.stopped_by or code
            self._is_closed = True
            self._waiting.clear()
            self._changed.set()
            asyncio.get_running_loop().call_later(STOPPING, self._over.set)
        self._start.interrupted.set()
        self.conversation.cancel(self._cause)

    @property
    def _cause(self) -> StopCause:
        """Cause of a stop: the host's wish, or the end of Phoenix."""
        return StopCause.USER if self.stopped_by in {None, Exit.INTERRUPTED} else StopCause.ENDING

    @property
    def waiting(self) -> list[str]:
        """Ids of the messages that wait."""
        return [message.uuid for message in (*self.steered.waiting, *self._waiting)]

    async def drop(self, uuid: str) -> bool:
        """Forget a message that waits; False where none of this id does."""
        async with self._offering:
            found = next((message for message in self._waiting if message.uuid == uuid), None)
            if found is None:
                return await self.steered.drop(uuid)
            self._waiting.remove(found)
            self._bytes -= found.size
            return True

    @property
    def state(self) -> str:
        """`idle`, `running` or `requires_action`."""
        return self._state

    async def perform(self) -> Exit:
        """Answer messages until no more can come; the exit code is that of the last result."""
        leave_agents = self.engine.follow_agents(self._follow_agent)
        leave = await self.conversation.subscribe(self._follow)
        try:
            while True:
                self._changed.clear()
                if self._waiting:
                    await self._perform_turn(self._waiting.popleft())
                elif self._is_closed:
                    return self._exit_code()
                else:
                    await self._changed.wait()
        finally:
            leave()
            leave_agents()
            self.approvals.close()
            self._start.close()

    def tell_state(self, state: str) -> None:
        """Report a state of the session once."""
        if state != self._state:
            self._state = state
            self.reporter.state(state)

    def tell_waiting(self, waits: bool) -> None:
        """Count a question to the host that opens or ends: `requires_action` while one is open."""
        self._asked += 1 if waits else -1
        if self._asked or self._state == "requires_action":
            self.tell_state("requires_action" if self._asked else "running")

    async def _perform_turn(self, message: HostMessage) -> None:
        self._bytes -= message.size
        if self.stopped_by is None:
            self._start.interrupted.clear()
        self.tell_state("running")
        self._begin((message.uuid,))
        why_not = await self._start.wait(self.ready)
        self.reporter.tell(self.init())
        if self.options.mirrors and self.last is None:
            self.reporter.tell(store_notice(self.conversation.id))
        self._replay(message)
        try:
            await (self._refuse(Refused(why_not)) if why_not else self._say(message))
        except StorageError as error:  # of an image that cannot be kept; the next message may go through
            await self._refuse(Refused(str(error), is_busy=isinstance(error, DatabaseBusy)))
        await self._wait_for_agents()
        await self.fallback.leave(self.conversation)
        self.reporter.model = self.conversation.record.model
        if not self._waiting:
            self.tell_state("idle")

    async def _refuse(self, refused: Refused) -> None:
        self.outcome.refused = refused
        await self._end()

    def _replay(self, message: HostMessage) -> None:
        if self.options.replay:
            replayed: JsonObject = {"type": "user", "message": {"role": "user", "content": message.content}}
            self.reporter.tell(replayed | {"parent_tool_use_id": None, "isReplay": True}, message.uuid)

    async def _attach_images(self, message: HostMessage) -> tuple[str, list[str]]:
        """Text and ids of images of a message."""
        text, image_ids = message.text, list[str]()
        for image in message.images:
            try:
                image_ids.append((await self.conversation.attach(image)).id)
            except ImageRejected as error:
                text = f"{text}\n\n{IMAGE_LEFT_OUT.format(reason=error)}"
        return text, image_ids

    async def _say(self, message: HostMessage) -> None:
        text, image_ids = await self._attach_images(message)
        caps = self._caps()
        if isinstance(caps, Refused) or not (text.strip() or image_ids):
            await self._refuse(caps if isinstance(caps, Refused) else Refused(EMPTY))
            return
        caps = replace(caps, expands=not message.is_composed)
        while (text or image_ids) and not self._start.interrupted.is_set():
            self._over.clear()
            receipt = await self.conversation.say(text, image_ids, caps)
            if isinstance(receipt, Refused):
                self.outcome.refused = None if self._start.interrupted.is_set() else receipt
                break
            if self._start.interrupted.is_set():  # while it was stored
                self.conversation.cancel(self._cause)
            await self._run_over(caps)
            while await self._fall_back(caps):
                await self._run_over(caps)
            text, image_ids = await self._next_text(), []
        await self._end()

    async def _run_over(self, caps: RunCaps) -> None:
        """Wait for the end of the run; messages that come meanwhile steer it. What it did not read waits again."""
        over = asyncio.ensure_future(self._over.wait())
        while not self._over.is_set():
            changed = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((over, changed), return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            self._changed.clear()
            await self._steer(caps)
        over.cancel()
        for message in reversed(await self.steered.take_back()):
            self._bytes += message.size
            self._waiting.appendleft(message)

    async def _steer(self, caps: RunCaps) -> None:
        """Offer the messages that wait to the run, until one has to wait for a turn of its own."""
        while self._waiting and not self._over.is_set():
            async with self._offering:
                if not self._waiting:
                    return
                message = self._waiting[0]
                if not await self.steered.offer(message, *await self._attach_images(message), caps):
                    return
                if self._waiting and self._waiting[0] is message:  # else everything is being stopped
                    self._bytes -= self._waiting.popleft().size

    async def _fall_back(self, caps: RunCaps) -> bool:
        """Run again with the other model where the turn failed for want of this one."""
        self.outcome.settle(await self.conversation.wait_idle())
        if self.stopped_by is not None or self.outcome.exit_code is Exit.OK:
            return False
        self._over.clear()
        tries = await self.fallback.tries(self.conversation, self.outcome.failed, caps)
        self.reporter.model = self.conversation.record.model
        return tries

    async def _next_text(self) -> str:
        """Next text instead of an end; empty for an end."""
        self.outcome.settle(await self.conversation.wait_idle())
        is_good = self.outcome.exit_code is Exit.OK and self.outcome.deferred is None
        if not is_good or self.stopped_by is not None:
            return ""
        return self.structured.reminder()

    async def _wait_for_agents(self) -> None:
        """Wait for sub-agents in the background and the turns that they wake, until the host says more."""
        sub_agents = self.engine.sub_agents
        if sub_agents is None:
            return
        seen, is_settled = self._runs, False
        while not is_settled:
            if not self.options.run.wait_agents or self.stopped_by is not None:
                sub_agents.stop_all(self.conversation.id)
            settled = asyncio.ensure_future(self._wait_until_settled())
            changed = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((settled, changed), return_when=asyncio.FIRST_COMPLETED)
            is_settled = settled.done() and self._runs == seen
            settled.cancel()
            changed.cancel()
            if self._runs != seen:
                seen = self._runs
                await self._end()
            if self._waiting and not is_busy(self.conversation.state):
                return
            self._changed.clear()

    async def _wait_until_settled(self) -> None:
        if self.engine.sub_agents is not None:
            await self.engine.sub_agents.wait_finished(self.conversation.id)
        await self.conversation.wait_idle()

    def _caps(self) -> RunCaps | Refused:
        """The limits of the next run: what the connection has left of its budget."""
        caps = self.caps
        if not caps.max_budget_usd:
            return caps
        left = caps.max_budget_usd - (self._cost or 0.0)
        if left <= 0:
            return Refused(NO_MORE_BUDGET, is_cap=True)
        return RunCaps(caps.max_turns, left, caps.timeout)

    def _begin(self, uuids: tuple[str, ...]) -> None:
        self._uuids, self._started = uuids, monotonic()
        self.steered.begin()
        self.structured.begin()

    async def _end(self) -> None:
        """Report the result of what has happened since the last one."""
        outcome = self.outcome
        outcome.settle(await self.conversation.wait_idle())
        outcome.stopped_by = self.stopped_by
        if outcome.deferred is None:
            self.structured.settle(outcome)
        outcome.duration_ms = round((monotonic() - self._started) * 1000)
        self._used.add(outcome.whole())
        self._cost = None if self._cost is None or outcome.cost is None else self._cost + outcome.cost
        if outcome.exit_code in {Exit.INTERRUPTED, Exit.TERMINATED}:
            self.reporter.note(INTERRUPTED_TOOL if is_stopped_in_tool(outcome) else INTERRUPTED)
        elif is_api_failure(outcome):
            self.reporter.failure(outcome.error, name_failure(outcome.failed))
        read = (message.uuid for message in self.steered.delivered)
        result = result_frame(outcome, self._used, self._cost, (*self._uuids, *read))
        if outcome.deferred is not None:
            result |= describe_deferred(outcome.deferred, self.conversation.record.cwd)
        self.reporter.tell(result)
        self._is_error = result["is_error"] is True
        self.last, self.outcome = outcome, outcome.next_one()
        self._begin(())

    def _exit_code(self) -> Exit:
        if self.stopped_by is not None:
            return self.stopped_by
        return self.last.exit_code if self.last is not None and self._is_error else Exit.OK

    def _follow(self, update: Update) -> None:
        self.outcome.follow(update)
        self._check_price(update)
        match update:
            case ApprovalAsked(question):
                self.approvals.follow(self.conversation, question)
            case MessageSaved(message) if message.origin is Origin.HUMAN:
                self._note_saved(message.seq)
            case StateChanged():
                self.steered.hold_at_rest()
            case RunEnded():
                self._runs += 1
                self._over.set()
            case _:
                pass  # the reporter has it
        if not isinstance(update, Snapshot):
            self.reporter.follow(update)

    def _note_saved(self, seq: int) -> None:
        """Note the place of a message of the host: of the one that began the run, later of one that steered it."""
        if own := [uuid for uuid in self._uuids if uuid not in self.seqs]:
            self.seqs |= dict.fromkeys(own, seq)
        elif (steered := self.steered.note_read()) is not None:
            self.seqs[steered.uuid] = seq
            self._replay(steered)

    def _follow_agent(self, agent: Conversation, update: Update) -> None:
        facts = agent.record.agent
        if facts is None or facts.parent_id != self.conversation.id:
            return
        self.outcome.denials.follow(update, agent.id)
        self.outcome.agents.follow_agent(agent.id, update)
        self._check_price(update)
        if isinstance(update, ApprovalAsked):
            self.approvals.follow(agent, update.question)
        self.reporter.follow_agent(agent.record, facts, update)

    def _check_price(self, update: Update) -> None:
        """Stop when a price that the budget needs turns out to be unknown."""
        if self.caps.max_budget_usd and isinstance(update, CallEnded) and update.call.cost_usd is None:
            self.outcome.capped = "price"
            self.conversation.cancel()
